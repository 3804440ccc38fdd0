"""docs/tutorial.md, command by command, on Spark: the driver is killed, and the answers are those that are shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..document_pages import ROOT, read_commands, read_steps
from ..waiting import wait_until
from .processes import end_session

PAGE = ROOT / "docs" / "tutorial.md"
NOT_RUN = ["it sets up the environment that the test runs in"]
KILL = "kill -9 $!"


class Shell:
    """What a reader types, in one folder, with `arroyo` and `python` of this environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        self._background: subprocess.Popen[bytes] | None = None

    def run(self, line: str) -> str:
        """What the command prints; one with `&` is left running, and `kill` ends that when epoch 3 is committed."""
        if line.endswith(" &"):
            self._background = self._start(line.removesuffix(" &"), subprocess.DEVNULL)
            return ""
        if line == KILL:
            return self._kill()
        with self._start(line, subprocess.PIPE) as process:
            printed, _ = process.communicate(timeout=400)
        return "".join(each for each in printed.decode().splitlines(keepends=True) if not each.startswith("WARNING: "))

    def end(self) -> None:
        if self._background is not None:
            end_session(self._background.pid)

    def _start(self, line: str, output: int) -> subprocess.Popen[bytes]:
        command = ["bash", "-c", f"exec {line}"]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _kill(self) -> str:
        driver = self._background
        assert driver is not None
        marker = self.folder / "state" / "auctions" / "checkpoints" / "3" / "committed.marker"
        wait_until(lambda: marker.exists() or driver.poll() is not None)
        assert driver.poll() is None, "the job ended before it was killed"
        driver.send_signal(signal.SIGKILL)
        assert driver.wait() == -signal.SIGKILL
        return ""


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.end()


@pytest.mark.timeout(900)
def test_the_tutorial_goes_as_it_is_written(shell):
    ran, not_run = [], []
    for step in read_steps(PAGE):
        if step.reason is not None:
            not_run.append(step.reason)
        elif step.name is not None:
            (shell.folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            assert step.kind == "console"
            for command in read_commands(step.text):
                command.check(shell.run(command.line))
                ran.append(command.line)
    assert not_run == NOT_RUN
    assert KILL in ran
    assert (shell.folder / "auctions.svg").exists()
