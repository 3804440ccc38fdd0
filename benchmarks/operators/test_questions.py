"""Arroyo and DuckDB answer the questions of the benchmark alike, and a wrong answer is found."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from arroyo_testing import run_in_process

from ..nexmark.answers import WrongAnswerError
from ..nexmark.dataset import prepare
from ..nexmark.tasks import Task
from .cases import CASES, case_of
from .checking import Checker
from .on_arroyo import pipeline

EVENTS = 60_000
NAMES = ("tumbling", "sliding", "session", "updating", "window_join", "interval_join", "join")


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data(root: Path) -> Path:
    return prepare(root, EVENTS).folder


@pytest.fixture
def checker(data: Path, root: Path):
    return Checker(data, root / "right")


def run(name: str, data: Path, folder: Path) -> Path:
    answer, scratch = folder / "answer", folder / "scratch"
    scratch.mkdir()
    task = Task(case=name, data=str(data), answer=str(answer), scratch=str(scratch))
    file = scratch / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline(task), sort_keys=False))
    assert run_in_process(file).epochs > 4
    return answer


def test_every_case_is_tested():
    assert tuple(case.name for case in CASES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_both_answer_alike(checker, data: Path, tmp_path: Path, name: str):
    found = checker.check(case_of(name), "arroyo", run(name, data, tmp_path))
    assert found.rows > 1000


def test_a_missing_row_is_found(checker, data: Path, tmp_path: Path):
    answer = run("tumbling", data, tmp_path)
    path = next(path for path in sorted(answer.glob("part-*.parquet")) if pq.read_metadata(path).num_rows > 1)
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(WrongAnswerError, match="rows, not the"):
        checker.check(case_of("tumbling"), "arroyo", answer)


def test_what_structured_streaming_keeps_to_itself_is_not_missed(checker):
    case = case_of("sliding")
    assert 0 < checker.right(case, is_closed=True).rows < checker.right(case).rows
