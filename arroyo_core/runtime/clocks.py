"""One clock for a job: processing time is the driver's, carried on by monotonic time wherever tasks run.

The clocks of executors may be wrong, each in its own way; state that expires and windows of processing time must not
depend on which host ran a subtask. So a task takes the driver's time of the epoch and adds what has passed since it
learned of it. What it shows is never ahead of the driver's clock, and behind it by the time that the request took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import lru_cache

from arroyo_core.api import Clock, SystemClock
from arroyo_core.runtime.request import EpochRequest

#: How many epochs a process remembers having heard of; there are few at a time, also of several jobs.
_REMEMBERED = 64


class EpochClock:
    """The time of one epoch: starts with the driver's, and goes on by this machine's monotonic clock."""

    def __init__(self, start_us: int, *, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._start_us = start_us
        self._monotonic_ns = monotonic_ns
        self._since_ns = monotonic_ns()

    def now_us(self) -> int:
        return self._start_us + (self._monotonic_ns() - self._since_ns) // 1000


class DriverClock:
    """The machine's clock, except that it never goes back, and never stands still.

    Where the machine's clock is set back, or a checkpoint was written by a driver whose clock was ahead, time goes on
    from the greatest that was shown, until the machine's clock has caught up. May be asked by several threads.
    """

    def __init__(self, wall: Clock | None = None, *, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall = wall or SystemClock()
        self._monotonic_ns = monotonic_ns
        self._lock = threading.Lock()
        #: The greatest time shown, and when that was.
        self._shown_us = 0
        self._shown_ns = monotonic_ns()

    def now_us(self) -> int:
        with self._lock:
            now_ns = self._monotonic_ns()
            passed_us = (now_ns - self._shown_ns) // 1000
            self._shown_us = max(self._wall.now_us(), self._shown_us + passed_us)
            self._shown_ns = now_ns
            return self._shown_us

    def go_on_from(self, time_us: int) -> int:
        """Show no time before `time_us` from now on; by how much the clock would have been behind it."""
        behind_us = time_us - self.now_us()
        with self._lock:
            if time_us > self._shown_us:
                self._shown_us, self._shown_ns = time_us, self._monotonic_ns()
        return max(behind_us, 0)


def task_clock(request: EpochRequest) -> Clock:
    """The clock of a task of the epoch.

    All tasks of a process share it: one that starts late, because it is of a later wave or had to wait for a core, goes
    on from when the first heard of the epoch. In a process that had no earlier one, it starts with the epoch's time.
    """
    if request.clock is not None:
        return request.clock
    return _epoch_clock(request.storage_url, request.epoch, request.timestamp_us)


@lru_cache(maxsize=_REMEMBERED)
def _epoch_clock(_storage_url: str, _epoch: int, timestamp_us: int) -> EpochClock:
    return EpochClock(timestamp_us)
