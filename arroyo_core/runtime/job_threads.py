"""Which job a thread works for: a driver may run several jobs, and what is logged must say whose it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context

#: The job of the current thread; empty where the process has one job at most.
current_job: ContextVar[str] = ContextVar("arroyo_job", default="")


def start_job_thread(work: Callable[..., None], *args: object, name: str) -> threading.Thread:
    """Start a daemon thread that works for the same job as the one that starts it."""
    thread = threading.Thread(target=copy_context().run, args=(work, *args), name=name, daemon=True)
    thread.start()
    return thread
