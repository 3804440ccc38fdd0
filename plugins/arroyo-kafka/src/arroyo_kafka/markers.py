"""Markers: how far the commits of a sink are, kept by the cluster, in the transaction of the messages themselves.

A marker says what is to be committed next: an epoch, and how many of its batches are committed already. It is the
offset of a consumer group that has no members; or a message of a compacted topic, which never expires.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from arroyo_core.errors import ExternalError
from arroyo_kafka.client import CALL_SECONDS, Client

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

#: Batches of an epoch have so many bits of an offset: a million of them, of some megabytes each.
_BATCH_BITS = 20
#: How long to wait for the end of other jobs' transactions in a progress topic.
_TOPIC_SECONDS = 60.0
_COMPACTED = {
    "cleanup.policy": "compact",
    # Markers are read from the beginning of the topic when a driver starts: compaction has to keep up with them.
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """What is to be committed next."""

    epoch: int
    #: So many batches of the epoch are committed.
    batches: int = 0

    def to_offset(self) -> int:
        return (self.epoch << _BATCH_BITS) + self.batches

    @classmethod
    def of_offset(cls, offset: int) -> Position:
        return cls(offset >> _BATCH_BITS, offset & ((1 << _BATCH_BITS) - 1))

    @classmethod
    def after(cls, epoch: int) -> Position:
        """All of the epoch is committed."""
        return cls(epoch + 1)


class Marker(msgspec.Struct, frozen=True):
    """A position, and the generation of the driver that came to it."""

    next_epoch: int
    batches: int
    generation: int

    @property
    def position(self) -> Position:
        return Position(self.next_epoch, self.batches)

    @classmethod
    def at(cls, position: Position, generation: int) -> Marker:
        return cls(position.epoch, position.batches, generation)


class MarkerStore(ABC):
    """Where the marker of one sink is."""

    #: Whether the cluster forgets a marker that is not written for long.
    expires: bool

    @abstractmethod
    def read(self) -> Marker | None:
        """The last committed marker; None where there is none. Only after `init_transactions`: then it cannot change.

        Raises `KafkaException`.
        """

    @abstractmethod
    def write(self, producer: Producer, marker: Marker) -> None:
        """Make it a part of the producer's transaction. Raises `KafkaException`."""

    @abstractmethod
    def close(self) -> None: ...


class GroupMarkers(MarkerStore):
    """The marker as the committed offset of partition 0 of the sink's topic, in a group of its own."""

    expires = True

    def __init__(self, client: Client, *, group: str, topic: str) -> None:
        self._topic = topic
        self._consumer: Consumer = client.consumer(
            {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
        )

    def read(self) -> Marker | None:
        from confluent_kafka import KafkaException, TopicPartition

        (found,) = self._consumer.committed([TopicPartition(self._topic, 0)], CALL_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        if found.offset < 0:
            return None
        position = Position.of_offset(found.offset)
        generation = msgspec.json.decode(found.metadata, type=Marker).generation if found.metadata else 0
        return Marker.at(position, generation)

    def write(self, producer: Producer, marker: Marker) -> None:
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._topic, 0, marker.position.to_offset(), msgspec.json.encode(marker).decode())
        producer.send_offsets_to_transaction([place], self._consumer.consumer_group_metadata(), CALL_SECONDS)

    def close(self) -> None:
        self._consumer.close()


class TopicMarkers(MarkerStore):
    """The marker as the last message with the sink's key in partition 0 of a compacted topic."""

    expires = False

    def __init__(self, client: Client, *, key: str, topic: str) -> None:
        self._client = client
        self._key = key.encode()
        self._topic = topic
        self._consumer: Consumer = client.consumer(
            {
                "group.id": key,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )

    def read(self) -> Marker | None:
        from confluent_kafka import KafkaException

        self._make_topic()
        try:
            return self._read()
        except KafkaException as error:
            if error.args[0].code() not in _unknown_codes():
                raise
            raise ExternalError(f"topic {self._topic!r} is there, and not all brokers know of it yet") from error

    def _read(self) -> Marker | None:
        from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

        end, deadline = self._end(), time.monotonic() + _TOPIC_SECONDS
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        found: Marker | None = None
        try:
            while time.monotonic() < deadline:
                for message in self._consumer.consume(1000, 0.05):
                    error = message.error()
                    if error is None:
                        value = message.value()
                        if message.key() == self._key and value is not None:
                            found = msgspec.json.decode(value, type=Marker)
                    elif error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    elif (message.offset() or 0) >= end:
                        return found
        finally:
            self._consumer.unassign()
        raise ExternalError(
            f"the markers in topic {self._topic!r} cannot be read up to their end: a transaction of another job is open"
        )

    def write(self, producer: Producer, marker: Marker) -> None:
        producer.produce(self._topic, msgspec.json.encode(marker), self._key, partition=0)

    def close(self) -> None:
        self._consumer.close()

    def _end(self) -> int:
        """Behind the last message, open transactions included: markers of ours may stand behind those of others."""
        from confluent_kafka import TopicPartition

        looking = self._client.consumer({"group.id": self._key.decode(), "isolation.level": "read_uncommitted"})
        try:
            _, end = looking.get_watermark_offsets(TopicPartition(self._topic, 0), CALL_SECONDS)
            return end
        finally:
            looking.close()

    def _make_topic(self) -> None:
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.cimpl import NewTopic

        if self._topic in self._consumer.list_topics(timeout=CALL_SECONDS).topics:
            return
        new = NewTopic(self._topic, num_partitions=1, replication_factor=-1, config=_COMPACTED)
        # It must live until it has answered.
        admin = self._client.admin()
        try:
            admin.create_topics([new])[self._topic].result(CALL_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _unknown_codes() -> tuple[int, ...]:
    """What is said of a topic, or of its partition, that is not known."""
    from confluent_kafka import KafkaError

    return (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
