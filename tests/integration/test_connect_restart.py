"""A job on Spark Connect goes on after its driver was killed, and after the server was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..waiting import wait_until
from .servers import connect_server
from .tally import Tally, published_epoch
from .terminal import run_until_epochs


@pytest.mark.timeout(900)
def test_a_driver_and_a_server_that_are_killed_in_turn_change_nothing(arroyo, tmp_path):
    job = Tally.of_epochs(24)
    path = job.write(tmp_path / "job")
    with connect_server(tmp_path) as connect:
        killed = run_until_epochs(path, 3, master=connect.url, number=signal.SIGKILL)
        assert killed.code == -signal.SIGKILL, killed.text
        reached = published_epoch(path.parent)
        assert reached >= 3

        command = [str(Path(sys.executable).with_name("arroyo")), "run", str(path), "--master", connect.url]
        with (tmp_path / "driver.log").open("wb") as log:
            driver = subprocess.Popen(command, stdout=log, stderr=log, cwd=path.parent)
        try:
            wait_until(lambda: published_epoch(path.parent) >= reached + 3 or driver.poll() is not None)
            connect.restart()
            wait_until(lambda: driver.poll() is not None)
        finally:
            driver.kill()
        told = (tmp_path / "driver.log").read_text()
        # The new server does not know the old session: the driver cannot go on, and must say so.
        assert driver.returncode == 1, told
        assert "the Spark session is gone" in told
        assert "Traceback" not in told
        reached = published_epoch(path.parent)

        done = arroyo("run", path, "--master", connect.url)
        assert done.returncode == 0, done.stderr
        assert f"going on after epoch {reached}" in done.stderr
    print(job.assert_exact(path.parent, tmp_path / "expected"))
