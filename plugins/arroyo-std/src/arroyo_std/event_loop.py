"""The event loop in which coroutines of users run: one for the process, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading

_LOCK = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = -1


def event_loop() -> asyncio.AbstractEventLoop:
    """The process's loop, running. It outlives epochs, so that a client that a coroutine keeps can be used on.

    A process that was forked gets one of its own.
    """
    global _loop, _pid
    with _LOCK:
        if _loop is None or _pid != os.getpid():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_run, args=(_loop,), name="udf-event-loop", daemon=True).start()
        return _loop


def abandon(loop: asyncio.AbstractEventLoop) -> None:
    """Never use this loop again: something in it does not return."""
    global _loop
    with _LOCK:
        if _loop is loop:
            _loop = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
