"""Processes of this machine by pid and start: a pid alone may be another process by now."""

from __future__ import annotations

import contextlib
import os
import signal

from arroyo_core.runtime.status import boot_id, process_start

__all__ = ["boot_id", "end_group", "is_alive", "process_start", "reap", "send_signal"]


def is_alive(pid: int, started: int) -> bool:
    """Whether the process that started then still runs, and not only its exit code is left."""
    return process_start(pid) == started


def reap(pid: int) -> None:
    """Take the exit code of a process that has ended, if this process has started it: it is in a file as well."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def send_signal(pid: int, started: int, number: signal.Signals, *, to_group: bool = False) -> bool:
    """Send a signal to that process, or to the group that it leads; whether it was there."""
    if not is_alive(pid, started):
        return False
    try:
        if to_group:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_group(leader: int) -> None:
    """End what is left of the group of a process that has ended itself: Spark may be slow to see that it has."""
    # Where there is a process of this pid, it is another one, and so is its group: a group keeps its number taken.
    if process_start(leader) is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
