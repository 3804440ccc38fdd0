"""Lanes of a job that is watched, or killed, at each of its events."""

from __future__ import annotations

from collections.abc import Callable

from arroyo_core.runtime.events import Event
from arroyo_core.runtime.lanes import InlineLanes


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
