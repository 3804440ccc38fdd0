"""Keeps `arroyo run` running, as systemd or Kubernetes would: whenever it dies, it is started again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..integration.processes import Process, end_session, session_processes

#: A driver that fails so often with no epoch between is not a victim of chaos, but broken.
MAX_FAILURES = 5


class DriverFailedError(Exception):
    """The driver fails again and again, and the job does not advance."""


class Supervisor:
    """One driver process at a time, in a session of its own with the JVM that belongs to it."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._command = [str(Path(sys.executable).with_name("arroyo")), "run", *arguments]
        self._folder = folder
        self.starts = 0
        #: How often the driver ended by itself with an error.
        self.failures = 0
        self._failures_in_a_row = 0
        self._last_epoch = 0
        self._process = self._start()

    @property
    def is_finished(self) -> bool:
        return self._process.poll() == 0

    @property
    def log(self) -> Path:
        """What the present driver says."""
        return self._folder / f"driver-{self.starts}.log"

    def look(self, epoch: int) -> None:
        """Start the driver again if it has failed; `epoch` is the last published one."""
        if epoch > self._last_epoch:
            self._last_epoch = epoch
            self._failures_in_a_row = 0
        if self._process.poll() in (None, 0):
            return
        self.failures += 1
        self._failures_in_a_row += 1
        if self._failures_in_a_row > MAX_FAILURES:
            raise DriverFailedError(f"{MAX_FAILURES} times in a row after epoch {epoch}:\n{self.tail()}")
        end_session(self._process.pid)
        self._process = self._start()

    def processes(self) -> list[Process]:
        """The driver and what it started."""
        return session_processes(self._process.pid)

    def kill(self) -> None:
        """SIGKILL the driver and its JVM, and start it again."""
        self.stop()
        self._process = self._start()

    def stop(self) -> None:
        end_session(self._process.pid)
        self._process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("wb") as out:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            )
