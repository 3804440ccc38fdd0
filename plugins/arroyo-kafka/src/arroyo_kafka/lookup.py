"""`kafka.lookup`: a compacted topic as a table, the last message of each key a row of it."""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from arroyo_formats import FormatChoice, read_choice
from arroyo_formats.schemas import read_schema

from arroyo_core.api import LookupTable
from arroyo_core.api.units import format_bytes
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_kafka.bad_messages import describe_bad, describe_place
from arroyo_kafka.client import CALL_SECONDS, Client, check_settings, read_client
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.kafka_pb2 import LookupConfig
from arroyo_kafka.open_consumers import OpenConsumer
from arroyo_kafka.partitions import Partition, TopicSelection
from arroyo_kafka.source import make_reading_consumer
from arroyo_kafka.topic_format import resolve_format

if TYPE_CHECKING:
    from confluent_kafka import Message

#: librdkafka wants a group of every consumer; this one takes no part in it.
GROUP = "arroyo-lookup"
#: How many messages are taken, and how many are decoded, at a time.
TAKEN_MESSAGES = 16_384
TAKE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """A checked config."""

    client: Client
    topic: str
    format: FormatChoice
    #: The columns of the values, without that of the key.
    columns: pa.Schema
    key_column: str | None
    #: The config itself, as bytes: tables of equal configs are the same.
    identity: bytes


class KafkaLookup(LookupTable):
    """Reads a topic from its beginning to what is its end when it begins; only what is committed."""

    def __init__(self, settings: LookupSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return self._settings.topic

    def cache_key(self) -> Hashable:
        return ("kafka.lookup", self._settings.identity)

    def schema(self) -> pa.Schema:
        """What the config says. Asks nobody: a pipeline can be planned where there is no broker."""
        settings = self._settings
        added = [pa.field(settings.key_column, pa.string())] if settings.key_column else []
        return pa.schema([*settings.columns, *added])

    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        """All rows; raises `ConfigError` where there is no such topic.

        `max_bytes` is the limit of the messages that rows are made of, and of the rows.
        """
        messages = self._last_messages(max_bytes)
        table = pa.Table.from_batches(self._decode(messages), schema=self.schema())
        self._check_size(table.nbytes, max_bytes)
        return table

    def _last_messages(self, max_bytes: int) -> list[Message]:
        """The last message of each key, without those that were deleted."""
        settings = self._settings
        last: dict[Partition, dict[bytes, Message]] = {}
        size = 0
        with closing(_read_to_end(settings.client, settings.topic)) as messages:
            for message in messages:
                key = message.key()
                if key is None:
                    raise DataError(f"{describe_place(message)} has no key: in a table the key says which row it is")
                known = last.setdefault(Partition(settings.topic, message.partition() or 0), {})
                former = known.get(key)
                size += _size(message) - (_size(former) if former is not None else 0)
                self._check_size(size, max_bytes)
                known[key] = message
        return [message for message in _merge(last).values() if message.value() is not None]

    def _decode(self, messages: Sequence[Message]) -> Iterator[pa.RecordBatch]:
        settings, schema = self._settings, self.schema()
        reader = settings.format.reader(settings.columns)
        for begin in range(0, len(messages), TAKEN_MESSAGES):
            taken = messages[begin : begin + TAKEN_MESSAGES]
            decoded = reader.read([message.value() or b"" for message in taken])
            if decoded.bad:
                raise DataError(describe_bad(taken[decoded.bad[0].index], decoded.bad[0].error))
            columns = list(decoded.batch.columns)
            if settings.key_column:
                keys = pa.array([_key_text(message) for message in taken], pa.string())
                columns.append(keys if decoded.origins is None else keys.take(pa.array(decoded.origins)))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _check_size(self, size: int, max_bytes: int) -> None:
        if size > max_bytes:
            raise DataError(
                f"the table {self._settings.topic!r} is larger than cache.max_bytes, {format_bytes(max_bytes)}"
            )


def resolve_lookup(config: LookupConfig) -> LookupConfig:
    """A copy of a config as executors need it, with what the format has in files of the driver; on the driver, once."""
    resolved = LookupConfig()
    resolved.CopyFrom(config)
    resolved.format.CopyFrom(resolve_format(config.format, config.topic))
    check_settings(read_client(config.bootstrap_servers, config.client))
    return resolved


def check_lookup(config: LookupConfig) -> LookupSettings:
    """The settings of a resolved config; raises `ConfigError`."""
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    for field in ("bootstrap_servers", "topic"):
        if not getattr(config, field):
            raise ConfigError(f"{field!r} is missing", field=field)
    choice = read_choice(config.format)
    if choice.format.is_updating:
        raise ConfigError(
            f"{choice.name} messages are changes of rows, and a table has the last message of each key as its row",
            field="format",
            value=choice.name,
        )
    columns = choice.schema(read_schema(config.schema))
    if config.key_column in columns.names:
        raise ConfigError(
            f"the messages have a column {config.key_column!r} already", field="key_column", value=config.key_column
        )
    return LookupSettings(
        client=read_client(config.bootstrap_servers, config.client),
        topic=config.topic,
        format=choice,
        columns=columns,
        key_column=config.key_column or None,
        identity=config.SerializeToString(deterministic=True),
    )


def _read_to_end(client: Client, topic: str) -> Generator[Message, None, None]:
    """The messages of all partitions, each in order, up to where they end now, but for transactions that are open."""
    from confluent_kafka import OFFSET_BEGINNING

    cluster = Cluster(client)
    found = cluster.find_topics(TopicSelection((topic,)))
    if not found:
        raise ConfigError(
            f"there is no topic {topic!r} (brokers {client.bootstrap_servers})", field="topic", value=topic
        )
    ends = cluster.latest(found[0].each(), is_committed=True)
    left = {partition: end for partition, end in ends.items() if end > 0}
    if not left:
        return
    # Not an error: what is first may be compacted away while we read.
    own = {"group.id": GROUP, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = OpenConsumer(make_reading_consumer(client, own))
    try:
        consumer.go_to(dict.fromkeys(left, OFFSET_BEGINNING))
        deadline = time.monotonic() + CALL_SECONDS
        while left:
            taken = consumer.take(TAKEN_MESSAGES, TAKE_SECONDS)
            if any(not _is_failure(item) for item in taken):
                deadline = time.monotonic() + CALL_SECONDS
            elif time.monotonic() > deadline:
                raise ExternalError(f"cannot read topic {topic!r}: no answer (brokers {client.bootstrap_servers})")
            yield from _wanted(taken, left, consumer, client)
    finally:
        consumer.close()


def _wanted(
    taken: Sequence[Message], left: dict[Partition, int], consumer: OpenConsumer, client: Client
) -> Iterator[Message]:
    """Messages before the ends; partitions that are at theirs go out of `left`."""
    for item in taken:
        partition, offset, error = (
            Partition(item.topic() or "", item.partition() or 0),
            item.offset() or 0,
            item.error(),
        )
        if error is not None and _is_failure(item):
            failure = client.translate(error, f"cannot read {partition}")
            # An outage passes, and librdkafka goes on trying until nobody has answered for long.
            if not isinstance(failure, ExternalError):
                raise failure
            continue
        end = left.get(partition)
        if end is None:
            continue
        if error is None and offset < end:
            yield item
        # The end of a partition says where it is; a message is one before.
        if offset + (error is None) >= end:
            del left[partition]
            consumer.drop(partition)


def _is_failure(item: Message) -> bool:
    """Whether it is neither a message nor the end of a partition."""
    from confluent_kafka import KafkaError

    error = item.error()
    return error is not None and error.code() != KafkaError._PARTITION_EOF


def _merge(last: Mapping[Partition, Mapping[bytes, Message]]) -> dict[bytes, Message]:
    """One message for each key. A topic that got more partitions may have a key in two: the later message counts."""
    merged: dict[bytes, Message] = {}
    for partition in sorted(last):
        for key, message in last[partition].items():
            other = merged.get(key)
            if other is None or other.timestamp()[1] <= message.timestamp()[1]:
                merged[key] = message
    return merged


def _size(message: Message) -> int:
    return len(message.key() or b"") + len(message.value() or b"")


def _key_text(message: Message) -> str:
    try:
        return (message.key() or b"").decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{describe_place(message)}: the key is not a text, which key_column needs: {error}") from error
