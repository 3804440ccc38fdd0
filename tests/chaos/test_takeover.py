"""A driver sleeps while another one finishes its job, and wakes up: it is fenced, and has harmed nothing.

Both kinds of sinks are behind the job: files that are moved to their names, and rows of which the last writer wins.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..integration.processes import is_stopped
from ..integration.tally import Tally, published_epoch
from ..waiting import wait_until
from .supervisor import Asleep, tail

EPOCH = 4


def start(path: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(path), "--master", "local[2]"]
    with log.open("wb") as out:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=path.parent, start_new_session=True
        )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", ["within its commit", "after it has published"])
def test_a_driver_that_wakes_up_after_its_job_was_finished_by_another_one_harms_nothing(tmp_path, moment):
    is_within = moment == "within its commit"
    job = Tally.of_epochs(14, has_latest=True, pause_epoch=EPOCH if is_within else 0)
    path = job.write(tmp_path / "job")
    first = Asleep(start(path, tmp_path / "first.log"), tmp_path / "first.log")
    try:
        if is_within:
            wait_until(lambda: first.is_gone or is_stopped(first.process.pid))
        else:
            wait_until(lambda: first.is_gone or published_epoch(path.parent) >= EPOCH)
        assert not first.is_gone, tail(first.log)
        first.pause(path.parent / "latest.db")
        second = Asleep(start(path, tmp_path / "second.log"), tmp_path / "second.log")
        try:
            assert second.process.wait() == 0, tail(second.log)
        finally:
            second.end()
        before = job.assert_exact(path.parent, tmp_path / "expected")
        first.wake()
        wait_until(lambda: first.is_gone)
        assert first.is_fenced, tail(first.log)
    finally:
        first.end()
    assert job.assert_exact(path.parent, tmp_path / "expected") == before
