"""The partitions of one subtask while an epoch runs: where it is in each of them. Without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from arroyo_kafka.event_time import EventTime, Ints, PartitionTime
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import PartitionState

_NEVER = int(np.iinfo(np.int64).max)


class Assignment:
    """Partitions have numbers, in the order in which they became known: whole batches of messages are looked up."""

    def __init__(self, event_time: EventTime, *, now_us: int) -> None:
        self.event_time = event_time
        self._now_us = now_us
        self._partitions: list[Partition] = []
        self._numbers: dict[tuple[str | None, int | None], int] = {}
        self._states: list[PartitionState] = []
        #: The offset to read next, and the one to end before.
        self._offsets: Ints = np.zeros(0, dtype=np.int64)
        self._untils: Ints = np.zeros(0, dtype=np.int64)
        #: Those of topics that are not there now.
        self._absent: set[Partition] = set()

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._numbers

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    @property
    def numbers(self) -> Mapping[tuple[str | None, int | None], int]:
        """The number of each partition."""
        return self._numbers

    @property
    def is_done(self) -> bool:
        """Whether every partition is read as far as it is to be read."""
        return bool((self._offsets >= self._untils).all())

    def add(self, partition: Partition, state: PartitionState) -> None:
        """Read a partition from where its state says."""
        self._numbers[partition] = len(self._partitions)
        self._partitions.append(partition)
        self._states.append(state)
        self._offsets = np.append(self._offsets, state.offset)
        self._untils = np.append(self._untils, _NEVER if state.until is None else state.until)
        self.event_time.add(
            PartitionTime(
                watermark_us=state.watermark_us,
                is_idle=state.is_idle,
                last_row_us=self._now_us - state.quiet_us,
                is_done=state.is_done,
            )
        )

    def move(self, partition: Partition, state: PartitionState) -> None:
        """Go on elsewhere; `state` is of a partition that is known."""
        number = self._numbers[partition]
        self._states[number] = state
        self._offsets[number] = state.offset
        self._untils[number] = _NEVER if state.until is None else state.until
        self._absent.discard(partition)
        self.event_time[number].is_done = state.is_done
        self.event_time[number].is_at_end = False

    def miss(self, partition: Partition) -> None:
        """Its topic is not there."""
        self._absent.add(partition)

    def is_absent(self, partition: Partition) -> bool:
        return partition in self._absent

    def is_partition_done(self, partition: Partition) -> bool:
        return self.event_time[self._numbers[partition]].is_done

    def state(self, partition: Partition) -> PartitionState:
        """Where it is now, as far as offsets go."""
        number = self._numbers[partition]
        return msgspec.structs.replace(self._states[number], offset=int(self._offsets[number]))

    def until(self, partition: Partition) -> int | None:
        return self._states[self._numbers[partition]].until

    def positions(self) -> dict[Partition, int]:
        """The partitions that are to be read, and from where."""
        return {
            partition: int(self._offsets[number])
            for number, partition in enumerate(self._partitions)
            if partition not in self._absent and not self.event_time[number].is_done
        }

    def is_wanted(self, numbers: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
        """Which messages are before the end of what is to be read."""
        return offsets < self._untils[numbers]

    def advance(self, numbers: Ints, offsets: Ints) -> Iterator[tuple[Partition, int]]:
        """The messages before these offsets have come; each partition that moved, with its new offset."""
        former = self._offsets.copy()
        np.maximum.at(self._offsets, numbers, offsets)
        np.minimum(self._offsets, np.maximum(self._untils, former), out=self._offsets)
        for number in np.unique(numbers).tolist():
            time = self.event_time[number]
            time.is_at_end = False
            time.is_done = bool(self._offsets[number] >= self._untils[number])
            yield self._partitions[number], int(self._offsets[number])

    def reach_end(self, partition: Partition, offset: int) -> bool:
        """There is nothing before this offset that has not come; False if that is old news."""
        number = self._numbers[partition]
        if offset < self._offsets[number]:
            return False
        for _ in self.advance(np.array([number]), np.array([offset])):
            self.event_time[number].is_at_end = True
        return True

    def stored(self, *, now_us: int, is_timed: bool) -> Iterator[tuple[Partition, PartitionState, bool]]:
        """What is to be kept of each partition, and whether its offset has moved; `is_timed` where idleness counts."""
        for number, partition in enumerate(self._partitions):
            time, offset = self.event_time[number], int(self._offsets[number])
            state = msgspec.structs.replace(
                self._states[number],
                offset=offset,
                watermark_us=time.watermark_us,
                is_idle=time.is_idle,
                quiet_us=time.quiet_us(now_us) if is_timed else 0,
            )
            yield partition, state, offset != self._states[number].offset
