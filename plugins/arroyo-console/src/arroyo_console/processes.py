"""Processes of this machine by pid and start: a pid alone may be another process by now."""

from __future__ import annotations

import os
import signal

from arroyo_core.runtime.status import boot_id, process_start

__all__ = ["boot_id", "is_alive", "process_start", "send_signal"]


def is_alive(pid: int, started: int) -> bool:
    """Whether the process that started then still runs, and not only its exit code is left."""
    return process_start(pid) == started


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
