"""The answer that chaos is measured by notices every kind of harm; without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from arroyo_testing import run_in_process

from arroyo_core.plugin import discover

from ..integration.tally import Tally

JOB = Tally(events=4000, rows_per_epoch=2000, rate=20_000)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the answer is kept once it is worked out."""
    return tmp_path_factory.mktemp("expected")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run_in_process(JOB.write(folder), plugins=discover())
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A finished job, to do harm to."""
    return Path(shutil.copytree(finished, tmp_path / "job"))


def some_file(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def test_a_run_without_failure_is_exact(folder, expected):
    assert "state of 64 keys: exact" in JOB.assert_exact(folder, expected)


@pytest.mark.parametrize("sink", ["rows", "windows"])
def test_a_lost_file_is_noticed(folder, expected, sink):
    some_file(folder, f"{sink}/part-*").unlink()
    with pytest.raises(AssertionError, match=f"{sink} differ: missing"):
        JOB.assert_exact(folder, expected)


@pytest.mark.parametrize("sink", ["rows", "windows"])
def test_a_file_that_was_committed_twice_is_noticed(folder, expected, sink):
    path = some_file(folder, f"{sink}/part-*")
    shutil.copy(path, path.with_name("part-again.parquet"))
    with pytest.raises(AssertionError, match=f"{sink} differ.*too many"):
        JOB.assert_exact(folder, expected)


def test_a_state_of_an_earlier_epoch_is_noticed(folder, expected):
    last = max((folder / "state/tally/checkpoints").iterdir(), key=lambda path: int(path.name))
    (last / "checkpoint.metadata").unlink()
    with pytest.raises(AssertionError, match="state of totals differ"):
        JOB.assert_exact(folder, expected)


def test_a_damaged_state_file_is_noticed(folder, expected):
    last = max(folder.glob("state/tally/checkpoints/*/table-tally-totals-*"), key=lambda path: int(path.parent.name))
    last.write_bytes(last.read_bytes()[:-20] + bytes(20))
    with pytest.raises(AssertionError, match=r"checksum|damaged"):
        JOB.assert_exact(folder, expected)
