"""Event time of partitions: each has a level of its own, and the source has the least of them. Without I/O.

A partition that is behind holds event time back, so that its rows are not late. It does so before its first row too,
unless it is idle. One that is idle, or read to its end, holds nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from arroyo_core.api import END_OF_TIME_US, Watermark

Ints = npt.NDArray[np.int64]

#: No row is earlier: year 1. Says that a source is not idle any more, and nothing about event time.
BEGINNING_OF_TIME_US = -62_135_596_800_000_000
#: Stands for no event time.
NO_TIME = int(np.iinfo(np.int64).min)


@dataclass(slots=True)
class PartitionTime:
    """The level of one partition."""

    #: The greatest event time so far, less the lateness; None before the first row.
    watermark_us: int | None = None
    is_idle: bool = False
    #: When the last row came, by the job's clock.
    last_row_us: int = 0
    #: Whether there was nothing after the last message. Only such a partition can be idle: another has rows to come.
    is_at_end: bool = False
    #: Whether it is read as far as it is to be read.
    is_done: bool = False

    def quiet_us(self, now_us: int) -> int:
        return max(now_us - self.last_row_us, 0)


class EventTime:
    """The levels of a subtask's partitions, which have numbers. None as lateness: only idleness is told."""

    def __init__(self, *, max_lateness_us: int | None, idle_after_us: int | None) -> None:
        self._lateness_us = max_lateness_us
        self._idle_after_us = idle_after_us
        self._partitions: list[PartitionTime] = []
        #: What was sent last in this epoch.
        self._sent: Watermark | None = None

    def __getitem__(self, number: int) -> PartitionTime:
        return self._partitions[number]

    def add(self, partition: PartitionTime) -> None:
        """One more partition; its number is how many there were."""
        self._partitions.append(partition)

    def observe(self, numbers: Ints, times_us: Ints | None, *, now_us: int) -> None:
        """Rows came, of the partitions of these numbers; `times_us` are their event times, None where nobody asks.

        Rows without event time, which have the least integer, do not end idleness: there would be nothing to send.
        """
        if self._lateness_us is None or times_us is None:
            for number in np.unique(numbers).tolist():
                self._stir(number, now_us)
            return
        latest = np.full(len(self._partitions), NO_TIME, dtype=np.int64)
        np.maximum.at(latest, numbers, times_us)
        for number in np.flatnonzero(latest > NO_TIME).tolist():
            partition = self._stir(number, now_us)
            # The end of time is for the end of the stream: a row cannot claim it.
            watermark_us = min(int(latest[number]) - self._lateness_us, END_OF_TIME_US - 1)
            if partition.watermark_us is None or watermark_us > partition.watermark_us:
                partition.watermark_us = watermark_us

    def check_idle(self, *, now_us: int) -> None:
        """Called when all rows that were there have been taken: what waits to be read is not idle."""
        if self._idle_after_us is None:
            return
        for partition in self._partitions:
            if partition.is_at_end and partition.quiet_us(now_us) >= self._idle_after_us:
                partition.is_idle = True

    def take(self) -> Watermark | None:
        """What is to be sent now; None where nothing changed since."""
        current = self._current()
        if current is None or current == self._sent:
            return None
        self._sent = current
        return current

    def _current(self) -> Watermark | None:
        open_partitions = [partition for partition in self._partitions if not partition.is_done]
        active = [partition for partition in open_partitions if not partition.is_idle]
        if not active:
            return Watermark.idle()
        if self._lateness_us is None:
            # Nothing is known but that it is not idle: which is only worth a word where it was.
            return Watermark.event_time(BEGINNING_OF_TIME_US) if self._was_idle() else None
        least = _least(partition.watermark_us for partition in active)
        return None if least is None else Watermark.event_time(least)

    def _was_idle(self) -> bool:
        return self._sent is not None

    def _stir(self, number: int, now_us: int) -> PartitionTime:
        partition = self._partitions[number]
        partition.is_idle, partition.last_row_us = False, now_us
        return partition


def _least(watermarks_us: Iterable[int | None]) -> int | None:
    """None if one of them is."""
    found = list(watermarks_us)
    known = [watermark_us for watermark_us in found if watermark_us is not None]
    return min(known) if len(known) == len(found) else None
