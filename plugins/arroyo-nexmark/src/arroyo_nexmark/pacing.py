"""How many events are due, for sources that keep to a rate."""

from __future__ import annotations

import math
import random

from arroyo_core.api import Clock

#: Slower sources wait for single events, faster ones for this much time's worth, so that batches are not tiny.
_INTERVAL_S = 0.05


class Pace:
    """Counts what is due since the epoch began; the time between two epochs is not made up for."""

    def __init__(self, clock: Clock, rate: float) -> None:
        """`rate` is this subtask's share, in events per second."""
        self._clock = clock
        self._rate = rate
        self._start_us = clock.now_us()
        self._emitted = 0

    def due(self) -> int:
        """Events that may be emitted now; 0 until it is worth a batch."""
        due = int(self._elapsed_s() * self._rate) - self._emitted
        return due if due >= self._least() else 0

    def rest(self) -> int:
        """Events to emit before the epoch ends, however few.

        An epoch may be shorter than the time to the next event. Of a part of an event there is one as often as that
        part says, so that the rate is kept over many epochs.
        """
        part, whole = math.modf(max(self._elapsed_s() * self._rate - self._emitted, 0.0))
        return int(whole) + (random.random() < part)

    def emitted(self, count: int) -> None:
        self._emitted += count

    def seconds_to_wait(self) -> float:
        """Until `due` gives something."""
        return max((self._emitted + self._least()) / self._rate - self._elapsed_s(), 0.001)

    def _least(self) -> int:
        return max(int(self._rate * _INTERVAL_S), 1)

    def _elapsed_s(self) -> float:
        return (self._clock.now_us() - self._start_us) / 1e6
