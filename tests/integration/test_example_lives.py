"""Examples that are stopped twice and resumed on Spark give the rows of a whole run.

Of Nexmark only some queries, of different shapes, and one in SQL: `tests/nexmark` resumes all of them in process, at
every epoch.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from .example_runs import Rows, difference, printed_rows, run_in_pieces, run_whole, written_rows

ROOT = Path(__file__).resolve().parents[2]
#: A join of two streams with changing results, windows over windows, a join of windows, and the last row of each key.
QUERIES = ("q4", "q5", "q8", "q18")
EXAMPLES = [
    *sorted(path for path in (ROOT / "examples").glob("*.yaml") if not path.stem.endswith("_test")),
    *(ROOT / "examples" / "nexmark" / f"{query}.yaml" for query in QUERIES),
    ROOT / "examples" / "nexmark" / "sql" / "q18.sql",
]


@pytest.fixture
def fresh_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Moves into an empty folder from which the examples find their data, and into which they write.

    It is always the same one, because some rows report paths; what was in it is lost.
    """

    def move() -> Path:
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        monkeypatch.chdir(folder)
        return folder

    return move


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(path.relative_to(ROOT / "examples")) for path in EXAMPLES])
def test_an_example_that_is_stopped_twice_gives_the_rows_of_a_whole_run(example, spark, fresh_folder, capsys):
    def rows_of(folder: Path) -> Rows:
        # Not `+`: that would drop rows that were taken back and never added.
        return Counter({**written_rows(folder / "out"), **printed_rows(capsys.readouterr().out)})

    folder = fresh_folder()
    assert run_whole(example, spark, folder / "state").is_finished
    expected = rows_of(folder)
    assert expected, "the example gives no rows at all"

    folder = fresh_folder()
    results = run_in_pieces(example, spark, folder / "state")
    assert not results[0].is_finished
    assert results[-1].is_finished
    assert results[-1].resumed_from >= results[0].epochs > 0
    assert difference(expected, rows_of(folder)) == {}
