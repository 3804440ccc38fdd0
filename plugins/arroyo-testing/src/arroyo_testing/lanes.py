"""Lanes of a job that does one thing after the other, and is watched, or killed, at each of its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arroyo_core.runtime.events import Event, Lane, TimerFired
from arroyo_core.runtime.lanes import Work


class InlineLanes:
    """Everything in the caller's thread, in an order that is always the same; waiting takes no time.

    `order` says which lane's work is done first where several have some: with the run lane first,
    each epoch runs to its end before the one before it is published.
    """

    def __init__(self, order: Sequence[Lane] = (Lane.PUBLISH, Lane.COLLECT, Lane.RUN)) -> None:
        self._order = tuple(order)
        self._work: dict[Lane, Work] = {}
        self._posted: list[Event] = []
        self._timer: tuple[int, int] | None = None
        self._time_ms = 0

    def start(self, lane: Lane, work: Work) -> None:
        assert lane not in self._work, f"lane {lane} is busy"
        self._work[lane] = work

    def start_timer(self, number: int, delay_ms: int) -> None:
        self._timer = (number, self._time_ms + delay_ms)

    def post(self, event: Event) -> None:
        self._posted.append(event)

    def next_event(self) -> Event:
        if self._posted:
            return self._posted.pop(0)
        for lane in self._order:
            if lane in self._work:
                return self._work.pop(lane)()
        if self._timer is None:
            raise AssertionError("the job waits for nothing")
        (number, self._time_ms), self._timer = self._timer, None
        return TimerFired(number)

    def time_ms(self) -> int:
        return self._time_ms

    def close(self) -> None:
        return


class Killed(BaseException):
    """The process is dead: nobody may catch this and go on."""


class WatchedLanes(InlineLanes):
    """Does one thing after the other, and tells `on_event` of each event before the job knows of it.

    What `on_event` raises ends the job; with `Killed`, as `kill -9` would.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        super().__init__()
        self._on_event = on_event

    def next_event(self) -> Event:
        event = super().next_event()
        self._on_event(event)
        return event


class MortalLanes(WatchedLanes):
    """Dies when the first event of a kind has happened."""

    def __init__(self, death: type[Event]) -> None:
        super().__init__(self._die)
        self._death = death

    def _die(self, event: Event) -> None:
        if isinstance(event, self._death):
            raise Killed
