"""Topics of a broker: made, written, read and removed, without the code that is tested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.waiting import wait_until

SECONDS = 30.0
Headers = list[tuple[str, str | bytes | None]]
_QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: None}


@dataclass(frozen=True, slots=True)
class Record:
    """One message as it is in the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Cluster:
    """A broker as tests use it; `client` are settings that all its clients need, such as `sasl.username`."""

    def __init__(self, bootstrap_servers: str, client: Mapping[str, Any] | None = None) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._settings = {**_QUIET, "bootstrap.servers": bootstrap_servers, **(client or {})}
        self.admin = AdminClient(self._settings)
        self._producer = Producer({**self._settings, "linger.ms": 5, "message.max.bytes": 10_000_000})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer.flush(SECONDS)

    def create(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Return when the topic can be written."""
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.admin.create_topics([new])[topic].result(SECONDS)
        self._wait_for_partitions(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions, up to this number."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(SECONDS)
        self._wait_for_partitions(topic, partitions)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS)
        wait_until(lambda: topic not in self.admin.list_topics(timeout=SECONDS).topics)

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Remove the messages before this offset, as retention does."""
        place = TopicPartition(topic, partition, offset)
        for done in self.admin.delete_records([place]).values():
            done.result(SECONDS)

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | None],
        *,
        partition: int = 0,
        keys: Sequence[bytes | None] | None = None,
        timestamp_ms: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Return when the broker has them all."""
        for index, value in enumerate(values):
            key = keys[index] if keys is not None else None
            self._produce(topic, partition, key, value, timestamp_ms, headers)
        assert self._producer.flush(SECONDS) == 0

    def _produce(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers | None,
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=timestamp_ms, headers=headers, on_delivery=_delivered
                )
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                # It is new, and the producer has not heard of it.
                self._producer.list_topics(topic, SECONDS)

    def transaction(
        self, topic: str, values: Iterable[bytes], *, partition: int = 0, is_committed: bool = True
    ) -> None:
        """One transaction of its own producer, committed or aborted."""
        with self.open_transaction(topic, values, partition=partition, is_committed=is_committed):
            pass

    @contextmanager
    def open_transaction(
        self, topic: str, values: Iterable[bytes], *, partition: int = 0, is_committed: bool = True
    ) -> Iterator[None]:
        """One that is open while the block runs."""
        producer = Producer({**self._settings, "transactional.id": f"tests-{topic}-{partition}"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=partition)
        producer.flush(SECONDS)
        yield
        if is_committed:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)

    def read(self, topic: str, *, isolation: str = "read_committed") -> list[Record]:
        """All messages of a topic up to its end, by partition and offset."""
        consumer = Consumer(
            {
                **self._settings,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            partitions = self.partitions(topic)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            open_partitions, records = set(partitions), []
            while open_partitions:
                for message in consumer.consume(1000, 1.0):
                    error = message.error()
                    if error is None:
                        records.append(_record(message))
                    elif error.name() == "_PARTITION_EOF":
                        open_partitions.discard(message.partition())
            return sorted(records, key=lambda record: (record.partition, record.offset))
        finally:
            consumer.close()

    def partitions(self, topic: str) -> list[int]:
        return sorted(self.admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions)

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """What a consumer group has committed, by partition; those without a commit are left out."""
        consumer = Consumer({**self._settings, "group.id": group})
        try:
            places = [TopicPartition(topic, number) for number in self.partitions(topic)]
            return {place.partition: place.offset for place in consumer.committed(places, SECONDS) if place.offset >= 0}
        finally:
            consumer.close()

    def _wait_for_partitions(self, topic: str, count: int) -> None:
        def is_ready() -> bool:
            found = self.admin.list_topics(timeout=SECONDS).topics.get(topic)
            return found is not None and len([part for part in found.partitions.values() if part.leader >= 0]) == count

        wait_until(is_ready)


def _delivered(error: Any, message: Message) -> None:
    assert error is None, error


def _record(message: Message) -> Record:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    return Record(partition, offset, message.key(), message.value(), message.timestamp()[1], tuple(headers))
