"""Keeps `arroyo run` running, as systemd or Kubernetes would: whenever it dies, it is started again."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ..integration.processes import Process, end_session, is_stopped, send, session_processes
from ..waiting import wait_until

#: A driver that fails so often with no epoch between is not a victim of chaos, but broken.
MAX_FAILURES = 5

#: What a driver says that has lost its job to another one.
FENCED = "this driver must stop"

#: What a driver says about an epoch that it has committed.
EPOCH = re.compile(r"\bepochs? +\d+ ")


class DriverFailedError(Exception):
    """The driver fails again and again, and the job does not advance."""


class Asleep:
    """A driver that is paused, with its JVM, while another one has the job."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def pause(self, store: Path) -> None:
        """At a moment when it does not hold the lock of the sink's store: nobody could take its job over then.

        A server of a database would end the transaction of a client that is gone for so long.
        """
        self._stop()
        while is_locked(store):
            self.wake()
            # Time in which it runs, and so lets go of the lock; who holds it cannot be asked while it runs.
            time.sleep(0.05)
            self._stop()

    def _stop(self) -> None:
        """Until nothing runs: what is forked meanwhile too."""
        stopped: set[int] = set()
        while running := [each for each in session_processes(self.process.pid) if each.pid not in stopped]:
            for each in running:
                send(each, signal.SIGSTOP)
                stopped.add(each.pid)
        # They stop a moment later.
        wait_until(lambda: all(is_stopped(pid) for pid in stopped))

    def wake(self) -> None:
        for each in session_processes(self.process.pid):
            send(each, signal.SIGCONT)

    def end(self) -> None:
        end_session(self.process.pid)
        self.process.wait()

    @property
    def is_gone(self) -> bool:
        return self.process.poll() is not None

    @property
    def is_fenced(self) -> bool:
        """Whether it ended, and said that it has lost the job."""
        return self.process.poll() not in (None, 0) and FENCED in self.log.read_text(errors="replace")


def is_locked(store: Path) -> bool:
    """Whether somebody has begun to read from the database or to write into it, and has not ended."""
    if not store.exists():
        return False
    with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as database:
        try:
            # Exclusive: one who only reads would keep another one from committing, too.
            database.execute("begin exclusive")
            database.execute("rollback")
        except sqlite3.OperationalError:
            return True
    return False


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


class Supervisor:
    """One driver process at a time, in a session of its own with the JVM that belongs to it."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._command = [str(Path(sys.executable).with_name("arroyo")), "run", *arguments]
        self._folder = folder
        self._parallelism: list[str] = []
        self.starts = 0
        #: How often the driver ended by itself with an error.
        self.failures = 0
        self._failures_in_a_row = 0
        self._last_epoch = 0
        self._asleep: list[Asleep] = []
        self._process = self._start()

    @property
    def is_finished(self) -> bool:
        return self._process.poll() == 0

    @property
    def log(self) -> Path:
        """What the present driver says."""
        return self._folder / f"driver-{self.starts}.log"

    @property
    def has_the_job(self) -> bool:
        """Whether the present driver has committed an epoch, and its JVM is there.

        One that is just starting has not claimed the job; one whose JVM was killed ends over that, and says so.
        """
        if self._process.poll() is not None or not any(process.is_driver_jvm for process in self.processes()):
            return False
        return EPOCH.search(self.log.read_text(errors="replace")) is not None

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

    def request_end(self) -> None:
        """Ask the driver to end at a checkpoint: one that dies over it is started again, and goes on."""
        self._process.send_signal(signal.SIGTERM)

    def rescale(self, parallelism: int) -> None:
        """The same, and it goes on with so many subtasks; also when it is started again later."""
        self._parallelism = ["--parallelism", str(parallelism)]
        self.kill()

    def replace(self) -> Asleep:
        """Pause the driver with its JVM, and start another one for the same job; the first one, for `wake`."""
        asleep = Asleep(self._process, self.log)
        asleep.pause(self._folder / "latest.db")
        self._asleep.append(asleep)
        self._process = self._start()
        return asleep

    def stop(self) -> None:
        for asleep in self._asleep:
            asleep.end()
        end_session(self._process.pid)
        self._process.wait()

    def tail(self) -> str:
        return tail(self.log)

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("wb") as out:
            return subprocess.Popen(
                [*self._command, *self._parallelism],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            )
