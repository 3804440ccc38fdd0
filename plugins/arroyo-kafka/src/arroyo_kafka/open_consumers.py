"""Consumers that stay open between the epochs of one process.

A new consumer connects, asks for the brokers and fetches before it gives its first message; one that is where the next
epoch goes on has messages waiting. It is only a shortcut: whoever borrows one says where to read.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arroyo_kafka.partitions import Partition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

#: One that nobody has borrowed for so long is closed.
UNUSED_SECONDS = 30.0


@dataclass(slots=True)
class OpenConsumer:
    """A consumer, and what it gives next."""

    consumer: Consumer
    #: The next offset of every partition that it reads.
    positions: dict[Partition, int] = field(default_factory=dict)
    #: Partitions that had nothing more.
    at_end: set[Partition] = field(default_factory=set)

    def go_to(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions from these offsets, and no others."""
        from confluent_kafka import TopicPartition

        if self.positions != positions:
            self.consumer.assign([TopicPartition(part.topic, part.number, at) for part, at in positions.items()])
            self.positions = dict(positions)
            self.at_end.clear()

    def add(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions too; one that is read already, from another offset."""
        from confluent_kafka import TopicPartition

        for partition in positions.keys() & self.positions.keys():
            self.drop(partition)
        self.consumer.incremental_assign(
            [TopicPartition(part.topic, part.number, at) for part, at in positions.items()]
        )
        self.positions.update(positions)

    def drop(self, partition: Partition) -> None:
        """Read this partition no more."""
        from confluent_kafka import TopicPartition

        if self.positions.pop(partition, None) is not None:
            self.consumer.incremental_unassign([TopicPartition(partition.topic, partition.number)])
            self.at_end.discard(partition)

    def take(self, limit: int, seconds: float) -> list[Message]:
        """Messages and events, at most so many; returns when they are there, or the time is over."""
        return self.consumer.consume(limit, seconds)

    def end_offset(self, partition: Partition) -> int | None:
        """The end of a partition as of the last answer of its broker; asks nobody."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            place = TopicPartition(partition.topic, partition.number)
            _, high = self.consumer.get_watermark_offsets(place, cached=True)
        except KafkaException:
            return None
        return high if high >= 0 else None

    def close(self) -> None:
        self.consumer.close()


class OpenConsumers:
    """Those of a process, by who uses them. A borrower has its consumer alone, and gives it back or closes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, tuple[OpenConsumer, threading.Timer]] = {}

    def borrow(self, key: Hashable, make: Callable[[], Consumer]) -> OpenConsumer:
        with self._lock:
            found = self._waiting.pop(key, None)
        if found is None:
            return OpenConsumer(make())
        found[1].cancel()
        return found[0]

    def give_back(self, key: Hashable, consumer: OpenConsumer) -> None:
        timer = threading.Timer(UNUSED_SECONDS, self._close, (key,))
        timer.daemon = True
        with self._lock:
            former = self._waiting.pop(key, None)
            self._waiting[key] = (consumer, timer)
        timer.start()
        if former is not None:
            former[1].cancel()
            former[0].close()

    def close_all(self) -> None:
        for key in list(self._waiting):
            self._close(key)

    def forget(self) -> None:
        """In a forked process: the threads of these consumers are not here, so that nothing of them may be touched."""
        self._lock = threading.Lock()
        _untouchable.append(self._waiting)
        self._waiting = {}

    def _close(self, key: Hashable) -> None:
        with self._lock:
            found = self._waiting.pop(key, None)
        if found is not None:
            found[1].cancel()
            # It is gone for us in any case.
            with contextlib.suppress(Exception):
                found[0].close()


#: Keeps consumers of a parent process from being ended by the garbage collector.
_untouchable: list[object] = []
open_consumers = OpenConsumers()
atexit.register(open_consumers.close_all)
os.register_at_fork(after_in_child=open_consumers.forget)
