"""Checkpoints that vanish or rot: noticed at the next epoch, and at the next start, warm cache or not."""

from __future__ import annotations

import shutil

import pytest

from arroyo_core.cli.exits import DAMAGED, exit_code
from arroyo_core.errors import OperatorError
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.state import WarmCache
from arroyo_core.state.failures import DamagedStateError, RemovedStateError

NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 40}},
    {"id": "totals", "operator": "test.totals", "inputs": ["in"]},
    {"id": "out", "operator": "test.sink", "inputs": ["totals"]},
]
EVERY = {"checkpoint": {"interval": "1h", "rows": 3}}


@pytest.fixture
def warm(lab, tmp_path):
    """Executors that find the state of every epoch in a cache of their own."""
    return lambda: LocalExecutor(lab.plugins, cache=WarmCache(tmp_path / "cache"))


def finish(job):
    while not job.is_ended:
        job.step()


def table_files(tmp_path, epoch):
    return sorted(tmp_path.glob(f"lab/checkpoints/{epoch}/table-*.parquet"))


@pytest.mark.parametrize(
    ("victim", "error", "message"),
    [
        ("lab", RemovedStateError, r"the claim of this driver \(generation 1\) is gone"),
        ("lab/checkpoints", DamagedStateError, r"checkpoints/2 was removed while job 'lab' ran, which goes on from it"),
        ("lab/checkpoints/2", DamagedStateError, r"checkpoints/2 was removed while job 'lab' ran"),
        ("lab/generations", RemovedStateError, r"the claim of this driver \(generation 1\) is gone"),
    ],
)
def test_state_that_vanishes_while_the_job_runs_fails_it_at_the_next_epoch(lab, warm, tmp_path, victim, error, message):
    job = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(job, Published, 2)
    shutil.rmtree(tmp_path / victim)
    with pytest.raises(error, match=message):
        finish(job)
    # The commit of epoch 2 may have been under way; nothing comes after it.
    assert max((epoch for epoch, _ in lab.trace.committed), default=0) <= 2


def test_it_is_noticed_between_two_commits_too(lab, warm, tmp_path):
    nodes = [NODES[0], {"id": "out", "operator": "test.sink", "inputs": ["in"]}]
    job = lab.job(nodes, executor=warm(), **EVERY)
    lab.run_until(job, Committed, 2)
    shutil.rmtree(tmp_path / "lab/checkpoints")
    with pytest.raises(DamagedStateError, match="was removed"):
        finish(job)


@pytest.fixture
def look_at_all(monkeypatch):
    """The next epoch is one of those that look for all files, and not only for their own."""
    monkeypatch.setattr("arroyo_core.state.backend.LOOK_AT_ALL_EPOCHS", 3)


@pytest.mark.usefixtures("look_at_all")
def test_files_of_earlier_epochs_that_vanish_are_noticed_when_all_are_looked_for(lab, warm, tmp_path):
    job = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(job, Published, 2)
    shutil.rmtree(tmp_path / "lab/checkpoints/1")
    with pytest.raises(DamagedStateError, match=r"checkpoints/1/.* was removed or changed while job 'lab' ran"):
        finish(job)


@pytest.mark.usefixtures("look_at_all")
def test_a_file_that_is_cut_while_the_job_runs_fails_it(lab, warm, tmp_path):
    job = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(job, Published, 2)
    victim = next(path for path in table_files(tmp_path, 2) if "totals" in path.name)
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(DamagedStateError, match=victim.name):
        finish(job)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_flipped_bit_is_refused_at_the_start_though_the_cache_is_warm(lab, warm, tmp_path):
    job = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(job, Published, 3)
    job.close()
    for path in table_files(tmp_path, 3):
        flip(path)
    with pytest.raises(OperatorError, match="does not match its checksum") as raised:
        lab.run(NODES, executor=warm(), **EVERY)
    assert exit_code(raised.value) == DAMAGED


def test_after_the_first_epoch_the_cache_serves_again(lab, warm, tmp_path):
    job = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(job, Published, 3)
    job.close()
    again = lab.job(NODES, executor=warm(), **EVERY)
    lab.run_until(again, Published, 5)
    # Of the content of files the driver looks at the sizes only: they are not read any more.
    for epoch in (4, 5):
        for path in table_files(tmp_path, epoch):
            flip(path)
    lab.go_on_until(again, Published, 6)
    again.close()
