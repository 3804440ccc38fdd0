"""The SQL of every query answers as DuckDB does over files, and the page says what was found."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from arroyo_testing import run_in_process

from ..nexmark.answers import Answers
from ..nexmark.dataset import prepare
from ..nexmark.engine_arroyo import answer_format
from ..nexmark.tasks import Timing
from .page import Measured, document
from .sides import ASKED, SQL, compile_script, documents, task_of

EVENTS = 20_000


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("query", ASKED)
def test_what_sql_compiles_to_answers_as_duckdb_over_files(root: Path, tmp_path: Path, query: str):
    dataset = prepare(root, EVENTS)
    task = task_of(query, data=dataset.folder, folder=tmp_path, side=SQL)
    pipeline = documents(task, compile_script(query).text)[SQL]
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    assert run_in_process(file).is_finished
    timing = Timing(job_s=1, epochs=1, answer=answer_format(pipeline))
    assert Answers(dataset).check(ASKED[query], Path(task.answer), timing).rows > 0


def test_the_page_has_the_mean_of_the_ratios_of_medians():
    page = document(
        [
            Measured(
                query="q1", seconds={"yaml": [1, 2, 9], "sql": [2, 2, 9]}, nodes={"yaml": 3, "sql": 4}, compiling_s=0.02
            ),
            Measured(
                query="q0", seconds={"yaml": [1, 1, 1], "sql": [4, 4, 1]}, nodes={"yaml": 2, "sql": 2}, compiling_s=0.01
            ),
        ],
        events=1000,
    )
    assert "**2.00** over 2 queries; wanted is at most 1.1: not met. The most is 4.00, of q0." in page
    assert page.index("| q0 |") < page.index("| q1 | currency conversion | 2.00 | 2.00 | 1.00 | 3 | 4 | 20 ms |")
