"""Where the controller's instructions are carried out: in threads beside each other."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Protocol

from arroyo_core.runtime.events import Event, Lane, TimerFired
from arroyo_core.runtime.job_threads import start_job_thread

#: Does one thing and says what came of it; never raises but to end the process.
Work = Callable[[], Event]


class Lanes(Protocol):
    """Each lane does one thing at a time; events come back in the order in which they happen."""

    def start(self, lane: Lane, work: Work) -> None:
        """Begin `work`; its event comes out of `next_event`."""
        ...

    def start_timer(self, number: int, delay_ms: int) -> None:
        """Takes the place of the timer before."""
        ...

    def post(self, event: Event) -> None:
        """An event from elsewhere; safe in a signal handler and in other threads."""
        ...

    def next_event(self) -> Event:
        """Waits for it."""
        ...

    def time_ms(self) -> int:
        """A clock that never goes back."""
        ...

    def close(self) -> None:
        """Work under way is left to itself."""
        ...


class ThreadLanes:
    """A thread for each lane."""

    def __init__(self) -> None:
        # A SimpleQueue's put is reentrant: a signal handler may call `post` at any moment.
        self._events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._work: dict[Lane, queue.SimpleQueue[Work | None]] = {}
        self._timer: tuple[int, float] | None = None

    def start(self, lane: Lane, work: Work) -> None:
        if lane not in self._work:
            self._work[lane] = queue.SimpleQueue()
            start_job_thread(self._serve, self._work[lane], name=f"arroyo-{lane}")
        self._work[lane].put(work)

    def start_timer(self, number: int, delay_ms: int) -> None:
        self._timer = (number, time.monotonic() + delay_ms / 1000)

    def post(self, event: Event) -> None:
        self._events.put(event)

    def next_event(self) -> Event:
        while True:
            timeout = None if self._timer is None else max(0.0, self._timer[1] - time.monotonic())
            try:
                event = self._events.get(timeout=timeout)
            except queue.Empty:
                assert self._timer is not None
                number, self._timer = self._timer[0], None
                return TimerFired(number)
            if isinstance(event, BaseException):
                raise event
            return event

    def time_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def close(self) -> None:
        for work in self._work.values():
            work.put(None)

    def _serve(self, todo: queue.SimpleQueue[Work | None]) -> None:
        while (work := todo.get()) is not None:
            try:
                event: Event | BaseException = work()
            except BaseException as error:
                # Whoever waits for events must not wait for ever.
                event = error
            self._events.put(event)
