"""The check of the answers finds what is wrong with them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
PARTS = r"part-(\d{5})-"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark is a folder that is run, not a package."""
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("answers")


@pytest.fixture
def shuffled(answers: ModuleType, tmp_path: Path) -> tuple[Path, Path]:
    """Some bids, and the bare loop's answer to the query with a shuffle."""
    dataset = importlib.import_module("dataset").prepare(tmp_path, 20_000)
    cases, engine = importlib.import_module("cases"), importlib.import_module("engine_pyarrow")
    answer = tmp_path / "answer"
    engine.run(cases.Task(case="shuffle", data=str(dataset.folder), answer=str(answer), scratch=str(tmp_path)))
    return dataset.folder, answer


def test_the_right_answer_is_accepted(answers, shuffled):
    data, answer = shuffled
    right = answers.expected(data)
    assert 5000 < right.rows < 7000
    answers.check(answer, right, part_pattern=PARTS)


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.slice(1),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        lambda table: pa.concat_tables([table.slice(2), table.slice(0, 1), table.slice(0, 1)]),
        lambda table: table.set_column(2, "euros", pa.array([0.0] * len(table))),
    ],
    ids=["a row less", "a row more", "one row twice and another not at all", "another value"],
)
def test_wrong_rows_are_refused(answers, shuffled, damage):
    data, answer = shuffled
    path = answer / "part-00000-bare.parquet"
    pq.write_table(damage(pq.read_table(path)), path)
    with pytest.raises(answers.WrongAnswerError, match="rows, not the"):
        answers.check(answer, answers.expected(data), part_pattern=PARTS)


def test_an_auction_in_two_parts_is_refused_after_a_shuffle(answers, shuffled):
    data, answer = shuffled
    first, second = (answer / f"part-{part:05}-bare.parquet" for part in range(2))
    rows = pq.read_table(first)
    pq.write_table(pa.concat_tables([pq.read_table(second), rows.slice(0, 1)]), second)
    pq.write_table(rows.slice(1), first)
    right = answers.expected(data)
    answers.check(answer, right, part_pattern=None)
    with pytest.raises(answers.WrongAnswerError, match="1 auctions are in more than one of 2 parts"):
        answers.check(answer, right, part_pattern=PARTS)


def test_an_answer_without_files_is_refused(answers, shuffled, tmp_path: Path):
    with pytest.raises(answers.WrongAnswerError, match="no Parquet files"):
        answers.check(tmp_path / "nowhere", answers.expected(shuffled[0]), part_pattern=None)
