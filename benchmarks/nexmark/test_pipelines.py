"""Every example runs over files, in process, and answers as DuckDB does; on Parquet and on CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from arroyo_testing import run_in_process

from . import engine_arroyo
from .answers import Answers
from .dataset import prepare
from .queries import QUERIES
from .tasks import Task, Timing

EVENTS = 20_000
ALL = [*(f"q{number}" for number in range(23)), "q12e"]
COMPARED = ["q0", "q1", "q2", "q5", "q7", "q8", "q11", "q12e", "q17", "q18"]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize(
    ("query", "format"), [*((query, "parquet") for query in ALL), *((query, "csv_header") for query in COMPARED)]
)
def test_a_pipeline_over_files_answers_as_duckdb(root: Path, tmp_path: Path, query: str, format: str):
    dataset = prepare(root, EVENTS, format=format)
    task = Task(
        case=query, data=str(dataset.folder), answer=str(tmp_path / "answer"), scratch=str(tmp_path), format=format
    )
    document = engine_arroyo.document_of(task)
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    assert run_in_process(file).is_finished
    timing = Timing(job_s=1, epochs=1, answer=engine_arroyo.answer_format(document))
    found = Answers(dataset).check(QUERIES[query], tmp_path / "answer", timing)
    assert found.rows > 0
