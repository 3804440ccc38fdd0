"""Hands messages to a producer: in order, with bounded memory, and with the reason of the first that was refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError
from arroyo_kafka.client import CALL_SECONDS, Client
from arroyo_kafka.messages import HASH, KEY, TIME_MS, TOPIC, VALUE, header_column
from arroyo_kafka.staging import Staged

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

#: What may wait in the producer. One more batch must fit into its queue, which is never full then.
FLUSH_BYTES = 32 << 20
FLUSH_MESSAGES = 100_000
_QUEUE_MESSAGES = 1_000_000
#: For reports of messages whose transaction has failed already.
_REPORT_SECONDS = 1.0

#: The columns that are parameters of a message.
_FIELDS = {VALUE: "value", KEY: "key", TIME_MS: "timestamp"}
_BY_KEY = -1
Headers = list[tuple[str, str | bytes | None]]

#: What `client` may say otherwise.
_DEFAULTS = {
    "linger.ms": "5",
    # As Kafka's own producers: the same key is in the same partition, whoever wrote it.
    "partitioner": "murmur2_random",
    # A transaction that follows the last one at once is refused for a moment.
    "retry.backoff.ms": "20",
}


class _Refused:
    """The first message since the last reset that was not delivered, and why."""

    def __init__(self) -> None:
        self.first: tuple[KafkaError, Message] | None = None

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self.first is None:
            self.first = (error, message)


class Sender:
    """A producer, and what became of its messages. Raises `KafkaException` where the cluster fails."""

    def __init__(self, client: Client, own: Mapping[str, Any]) -> None:
        self._client = client
        self._refused = _Refused()
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in client.settings}
        self.producer: Producer = client.producer(
            {
                **defaults,
                "queue.buffering.max.messages": _QUEUE_MESSAGES,
                "delivery.report.only.error": True,
                # Not a method of the sender: a producer ends when nothing refers to it, and must not refer to itself.
                "on_delivery": self._refused.note,
                **own,
            }
        )
        self._waiting_bytes = 0
        self._waiting_messages = 0
        self._partitions: dict[str, int] = {}

    def send(self, messages: pa.RecordBatch, staged: Staged) -> None:
        """Queue a batch; returns when there is room for another."""
        for topic, batch in _by_topic(messages, staged.topic):
            if topic not in self._partitions:
                self._partitions[topic] = self._count_partitions(topic)
            self._queue(topic, batch, staged)
        self._waiting_bytes += messages.nbytes
        self._waiting_messages += messages.num_rows
        if self._waiting_bytes > FLUSH_BYTES or self._waiting_messages > FLUSH_MESSAGES:
            self.flush()

    def flush(self) -> None:
        """Wait until the cluster has all messages; raises why the first one was refused.

        Raises `ExternalError` where none gets there for a while.
        """
        left = len(self.producer)
        while left:
            before, left = left, self._wait(CALL_SECONDS)
            self._check()
            if left >= before:
                raise ExternalError(f"{left} messages have not reached the cluster: it does not answer")
        self._check()
        self._waiting_bytes = self._waiting_messages = 0

    def explain(self, error: KafkaError) -> None:
        """Raise why a message was refused, where that has failed the transaction, and so a call that gave `error`."""
        from confluent_kafka import KafkaError as Code

        if error.txn_requires_abort() or error.code() == Code._STATE:
            # The report of the message may come after the error that it causes.
            self._wait(_REPORT_SECONDS)
            self._check()

    def forget(self) -> None:
        """Begin again: what was sent before is of no interest. Numbers of partitions are asked for again."""
        self._refused.first = None
        self._waiting_bytes = self._waiting_messages = 0
        self._partitions.clear()

    def _queue(self, topic: str, batch: pa.RecordBatch, staged: Staged) -> None:
        for partition, rows in self._by_partition(topic, batch):
            messages = _messages(rows)
            if staged.headers or TIME_MS in rows.schema.names:
                # A batch of librdkafka's own has neither, and would drop them without a word.
                self._queue_one_by_one(topic, partition, messages, _headers(rows, staged.headers))
            elif self.producer.produce_batch(topic, messages, partition) != len(messages):
                first = next(message for message in messages if "_error" in message)
                raise self._refusal(first["_error"], topic, first)

    def _queue_one_by_one(
        self, topic: str, partition: int, messages: Sequence[dict[str, Any]], headers: Iterable[Headers]
    ) -> None:
        from confluent_kafka import KafkaException

        for message, names_and_values in zip(messages, headers, strict=True):
            try:
                self.producer.produce(topic, partition=partition, headers=names_and_values, **message)
            except KafkaException as error:
                raise self._refusal(error.args[0], topic, message) from error

    def _by_partition(self, topic: str, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The messages of each partition, in order; together, without one, where the producer chooses by the key."""
        if HASH not in batch.schema.names:
            yield _BY_KEY, batch
            return
        chosen = batch.column(HASH).to_numpy() % self._partitions[topic]
        for partition in np.unique(chosen).tolist():
            yield partition, batch.filter(pa.array(chosen == partition))

    def _count_partitions(self, topic: str) -> int:
        found = self.producer.list_topics(topic, timeout=CALL_SECONDS).topics[topic]
        if found.error is not None:
            raise self._reason(found.error, topic, 0)
        return len(found.partitions)

    def _wait(self, seconds: float) -> int:
        """Wait for reports of messages; how many are still without one."""
        try:
            return self.producer.flush(seconds)
        except SystemError as error:
            # What ends a producer, such as a newer one, interrupts the reports of its messages; so it comes out.
            raise ExternalError(f"the producer has ended: {error.__cause__ or error}") from error

    def _check(self) -> None:
        if self._refused.first is not None:
            error, message = self._refused.first
            raise self._reason(error, str(message.topic()), len(message.value() or b""))

    def _refusal(self, error: KafkaError, topic: str, message: Mapping[str, Any]) -> ArroyoError:
        """Why the producer does not take a message."""
        self.explain(error)
        return self._reason(error, topic, len(message.get("value") or b""))

    def _reason(self, error: KafkaError, topic: str, size: int) -> ArroyoError:
        from confluent_kafka import KafkaError as Code

        if error.code() in (Code.UNKNOWN_TOPIC_OR_PART, Code._UNKNOWN_TOPIC):
            return ConfigError(
                f"there is no topic {topic!r} at {self._client.bootstrap_servers}: create it, with the partitions and "
                "replicas that it needs",
                field="topic",
                value=topic,
            )
        if error.code() == Code.MSG_SIZE_TOO_LARGE:
            return DataError(
                f"a message of {size} bytes is too large for topic {topic!r}: raise message.max.bytes in client, and "
                "max.message.bytes of the topic"
            )
        if error.code() == Code.INVALID_TIMESTAMP:
            return DataError(
                f"topic {topic!r} refuses the time of a message: choose another timestamp_field, or change "
                "message.timestamp.after.max.ms of the topic"
            )
        return self._client.translate(error, f"cannot write topic {topic!r}")


def _by_topic(messages: pa.RecordBatch, topic: str) -> list[tuple[str, pa.RecordBatch]]:
    """The messages of each topic, in order."""
    if TOPIC not in messages.schema.names:
        return [(topic, messages)]
    column = messages.column(TOPIC)
    return [(each, messages.filter(pc.equal(column, each))) for each in pc.unique(column).to_pylist()]


def _messages(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """As the producer takes them: what a message does not have is left out."""
    fields = [_FIELDS[name] for name in _FIELDS if name in batch.schema.names]
    columns = [batch.column(name) for name in _FIELDS if name in batch.schema.names]
    items = [column.to_pylist() for column in columns]
    if any(column.null_count for column in columns):
        rows = zip(*items, strict=True)
        return [{field: item for field, item in zip(fields, row, strict=True) if item is not None} for row in rows]
    # A driver does this for every message of the job, so the usual cases are worth a line each.
    if len(fields) == 1:
        return [{fields[0]: item} for item in items[0]]
    return [dict(zip(fields, row, strict=True)) for row in zip(*items, strict=True)]


def _headers(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[Headers]:
    if not names:
        return itertools.repeat([], batch.num_rows)
    columns = [batch.column(header_column(index)).to_pylist() for index in range(len(names))]
    return (list(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
