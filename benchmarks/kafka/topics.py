"""Topics of the benchmark: bids are put into them, and answers taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ..nexmark.dataset import Dataset
from .cases import AVRO_SCHEMA, COLUMNS, PARTITIONS

BATCH = 10_000
WAIT_S = 60.0
#: The time of a message is the event time of its row, where it has one: retention would remove what is that old.
_KEPT = {"retention.ms": "-1"}


def create(servers: str, *topics: str) -> None:
    made = [NewTopic(topic, PARTITIONS, 1, config=_KEPT) for topic in topics]
    # Its requests end with it, so that it has a name.
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for done in admin.create_topics(made).values():
        done.result(WAIT_S)


def delete(servers: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for done in admin.delete_topics(list(topics)).values():
        done.result(WAIT_S)


def bids(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """The columns of messages, in the order of time."""
    for file in sorted((dataset.folder / "bid").iterdir()):
        for batch in pq.ParquetFile(file).iter_batches(BATCH, columns=list(COLUMNS)):
            yield from batch.to_pylist()


def encoder(format: str) -> Callable[[dict[str, Any]], bytes]:
    """Not by our own formats: what is read was written by others."""
    if format == "json":
        return msgspec.json.encode
    schema = fastavro.parse_schema(msgspec.json.decode(AVRO_SCHEMA))

    def encode(row: dict[str, Any]) -> bytes:
        written = BytesIO()
        fastavro.schemaless_writer(written, schema, row)
        return written.getvalue()

    return encode


def produce(servers: str, topic: str, values: Iterable[bytes]) -> int:
    """Put them into the partitions in turn; returns their bytes."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    size = 0
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
        size += len(value)
        if number % BATCH == 0:
            producer.poll(0)
    if left := producer.flush(WAIT_S):
        raise TimeoutError(f"{left} messages of {topic} were not taken by the broker")
    return size


def committed(servers: str, topic: str) -> Consumer:
    """A consumer of what is committed, from the beginning; ends of partitions come as events."""
    settings = {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    return consumer


def values_of(messages: Sequence[Message]) -> list[bytes]:
    return [message.value() or b"" for message in messages if message.error() is None]


def write_lines(servers: str, topic: str, path: Path) -> None:
    """Write all committed messages of a topic that is at rest to a file, one a line."""
    consumer = committed(servers, topic)
    left = set(range(PARTITIONS))
    with path.open("wb") as file:
        while left:
            messages = consumer.consume(BATCH, 1.0)
            file.writelines(value + b"\n" for value in values_of(messages))
            for message in messages:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
    consumer.close()
