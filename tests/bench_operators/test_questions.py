"""Arroyo and DuckDB answer the questions of the benchmark alike, and a wrong answer is found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from arroyo_testing import run_in_process

HERE = Path(__file__).parent
EVENTS = 60_000
CASES = ("tumbling", "sliding", "session", "updating", "window_join", "interval_join", "join")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """Modules of the benchmark by name: it is a folder that is run, not a package."""
    monkeypatch.syspath_prepend(str(HERE.with_name("bench")))
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data(load, root: Path) -> Path:
    return load("dataset").prepare(root, EVENTS).folder


@pytest.fixture
def checker(load, data: Path, root: Path):
    return load("checking").Checker(data, root / "right")


def run(load, name: str, data: Path, folder: Path) -> Path:
    answer, scratch = folder / "answer", folder / "scratch"
    scratch.mkdir()
    task = load("tasks").Task(case=name, data=str(data), answer=str(answer), scratch=str(scratch))
    file = scratch / "pipeline.yaml"
    file.write_text(yaml.safe_dump(load("on_arroyo").pipeline(task), sort_keys=False))
    assert run_in_process(file).epochs > 4
    return answer


def test_every_case_is_tested(load):
    assert tuple(case.name for case in load("operators").CASES) == CASES


@pytest.mark.parametrize("name", CASES)
def test_both_answer_alike(load, checker, data: Path, tmp_path: Path, name: str):
    found = checker.check(load("operators").case_of(name), "arroyo", run(load, name, data, tmp_path))
    assert found.rows > 1000


def test_a_missing_row_is_found(load, checker, data: Path, tmp_path: Path):
    answer = run(load, "tumbling", data, tmp_path)
    path = next(path for path in sorted(answer.glob("part-*.parquet")) if pq.read_metadata(path).num_rows > 1)
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(load("answers").WrongAnswerError, match="rows, not the"):
        checker.check(load("operators").case_of("tumbling"), "arroyo", answer)


def test_what_structured_streaming_keeps_to_itself_is_not_missed(load, checker):
    case = load("operators").case_of("sliding")
    assert 0 < checker.right(case, is_closed=True).rows < checker.right(case).rows
