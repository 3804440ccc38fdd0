"""Processes by session: what a server started, and what those started, also after their parents are gone."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from ..waiting import wait_until

END_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as `/proc` showed it; it may be gone by now."""

    pid: int
    session: int
    parent: int
    command: str
    #: Together with the pid this names one process for ever: pids are used again.
    start_ticks: int

    @property
    def is_executor(self) -> bool:
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in self.command

    @property
    def is_driver_jvm(self) -> bool:
        return "org.apache.spark.deploy.SparkSubmit" in self.command

    @property
    def is_python_daemon(self) -> bool:
        """The daemon that forks Python workers, or one of these: they share a command line."""
        entries = ("arroyo_core.spark.daemon_entry", "arroyo_core.spark.ready_daemon")
        return any(entry in self.command for entry in entries)


def session_processes(session: int) -> list[Process]:
    """Every living process of the session, by pid."""
    found = [_read(int(path.name), session) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return sorted((process for process in found if process is not None), key=lambda process: process.pid)


def python_workers(processes: list[Process]) -> list[Process]:
    """The processes that run tasks: children of a daemon."""
    daemons = {process.pid for process in processes if process.is_python_daemon}
    return [process for process in processes if process.is_python_daemon and process.parent in daemons]


def kill(process: Process) -> bool:
    """SIGKILL, unless it is gone already; whether it was there."""
    return send(process, signal.SIGKILL)


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal, unless it is gone already; whether it was there."""
    now = _read(process.pid, process.session)
    if now is None or now.start_ticks != process.start_ticks:
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def is_stopped(pid: int) -> bool:
    """Whether none of its threads runs, after SIGSTOP; so it is if the process is gone."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return all(thread.rpartition(")")[2].split()[0] in "TZX" for thread in threads)


def end_session(session: int) -> None:
    """SIGKILL everything in the session, until nothing is left: what is being forked meanwhile too."""

    def is_over() -> bool:
        processes = session_processes(session)
        for process in processes:
            kill(process)
        return not processes

    wait_until(is_over, patience_s=END_S, problem=lambda: f"these do not end: {session_processes(session)}")


def _read(pid: int, session: int) -> Process | None:
    """The process if it lives and belongs to the session."""
    folder = Path(f"/proc/{pid}")
    try:
        # The name in parentheses may hold anything; the fields behind it are numbers and a letter.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        if int(fields[3]) != session or fields[0] in "ZX":
            return None
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid=pid, session=session, parent=int(fields[1]), command=command, start_ticks=int(fields[19]))
