"""Rows as messages: a batch of rows becomes a batch of keys, values, times, headers and topics.

topic      string        only where a column has it
key        large_binary  only where there are key columns; null is a message without a key
value      large_binary  null is a tombstone
hash       uint64        only where columns choose the partition: it is this modulo the number of partitions
time_ms    int64         only where there is a time; null is the clock of the producer
header_0   binary        one for each header, in order; null is a header without a value
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats import Indices, MessageWriter, read_choice
from google.protobuf import struct_pb2

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.hashing import hash_batch
from arroyo_core.api.updating import UPDATING_META, is_updating, retract_mask
from arroyo_core.errors import ConfigError, DataError
from arroyo_kafka.sink_settings import SinkSettings

TOPIC, KEY, VALUE, HASH, TIME_MS = "topic", "key", "value", "hash", "time_ms"
_HEADER = "header_"

Mask = npt.NDArray[np.bool_]


def header_column(index: int) -> str:
    return f"{_HEADER}{index}"


def message_schema(settings: SinkSettings, stream: ArroyoSchema) -> pa.Schema:
    """The columns of the messages that `MessageEncoder` makes."""
    fields = [pa.field(VALUE, pa.large_binary())]
    if settings.topic_field:
        fields.append(pa.field(TOPIC, pa.string()))
    if settings.key_fields:
        fields.append(pa.field(KEY, pa.large_binary()))
    if settings.partition_by:
        fields.append(pa.field(HASH, pa.uint64()))
    if settings.timestamp_field or stream.timestamp_column:
        fields.append(pa.field(TIME_MS, pa.int64()))
    fields += [pa.field(header_column(index), pa.binary()) for index in range(len(settings.headers))]
    return pa.schema(fields)


class MessageEncoder:
    """Makes messages of the rows of one subtask. Making one checks columns and types, and raises `ConfigError`."""

    def __init__(self, settings: SinkSettings, stream: ArroyoSchema) -> None:
        self._settings = settings
        _check_columns(settings, stream)
        self._is_upsert = is_upsert(settings, stream)
        self._time = settings.timestamp_field or stream.timestamp_column
        self._values = settings.format.writer(_value_schema(settings, stream))
        self._keys = _key_writer(settings, stream)
        self.schema = message_schema(settings, stream)

    def encode(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The messages, in the order of the rows; of upserts the last change of each key.

        Raises `DataError` for a row that cannot be a message.
        """
        keys = self._encode_keys(rows) if self._settings.key_fields else None
        removed: Mask | None = None
        if self._is_upsert and keys is not None:
            last = last_of_each(keys)
            keys, removed, rows = keys.take(last), retract_mask(rows)[last], rows.take(pa.array(last))
        encoded = self._values.write(self._value_rows(rows))
        values, origins = encoded.messages, encoded.origins
        if origins is not None:
            rows = rows.take(pa.array(origins))
            keys = keys.take(pa.array(origins)) if keys is not None else None
            removed = removed[origins] if removed is not None else None
        if removed is not None:
            values = pc.if_else(pa.array(removed), pa.scalar(None, pa.large_binary()), values)
        columns = {VALUE: values, KEY: keys}
        if self._settings.topic_field:
            columns[TOPIC] = self._topics(rows)
        if self._settings.partition_by:
            columns[HASH] = pa.array(hash_batch(rows, self._settings.partition_by))
        if self._time:
            columns[TIME_MS] = _time_ms(rows.column(self._time))
        for index, (_, name) in enumerate(self._settings.headers):
            columns[header_column(index)] = rows.column(name).cast(pa.binary())
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _value_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        left_out = [name for name in (self._settings.topic_field, *self._dropped()) if name in rows.schema.names]
        return rows.drop_columns(left_out) if left_out else rows

    def _dropped(self) -> tuple[str, ...]:
        return (UPDATING_META,) if self._is_upsert else ()

    def _encode_keys(self, rows: pa.RecordBatch) -> pa.Array:
        if self._keys is not None:
            return self._keys.write(rows.select(list(self._settings.key_fields))).messages
        keys = rows.column(self._settings.key_fields[0]).cast(pa.large_binary())
        if self._is_upsert and keys.null_count:
            raise DataError(
                f"a row has no key: {self._settings.key_fields[0]!r} is null, and an upsert replaces what has its key"
            )
        return keys

    def _topics(self, rows: pa.RecordBatch) -> pa.Array:
        topics = rows.column(self._settings.topic_field).cast(pa.string())
        if topics.null_count or pc.any(pc.equal(topics, "")).as_py():
            raise DataError(f"a row has no topic: column {self._settings.topic_field!r} is null or empty")
        return topics


def is_upsert(settings: SinkSettings, stream: ArroyoSchema) -> bool:
    """Whether changes become the last value of a key, or its tombstone; raises `ConfigError` for what cannot be."""
    if not is_updating(stream) or settings.format.format.is_updating:
        return False
    if settings.key_fields:
        return True
    raise ConfigError(
        f"the input is updating: it takes back rows, and messages of format {settings.format.name} cannot. Name the "
        "columns of the key in key_fields, so that a row replaces the one before it, and a tombstone ends it; or write "
        "format: debezium_json",
        field="format",
        value=settings.format.name,
        suggestion="debezium_json",
    )


def last_of_each(keys: pa.Array) -> Indices:
    """The index of the last row of each key, in order."""
    if len(keys) == 0:
        return np.zeros(0, dtype=np.int64)
    table = pa.table({"key": keys, "index": np.arange(len(keys))})
    last: Indices = table.group_by("key").aggregate([("index", "max")]).column("index_max").to_numpy()
    return np.sort(last)


def _time_ms(column: pa.Array) -> pa.Array:
    """Milliseconds since 1970; null for what a message cannot have: no time, and times before that."""
    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return pc.if_else(pc.greater(times, 0), times, pa.scalar(None, pa.int64()))


def _value_schema(settings: SinkSettings, stream: ArroyoSchema) -> pa.Schema:
    dropped = {settings.topic_field} | ({UPDATING_META} if is_upsert(settings, stream) else set())
    return pa.schema([field for field in stream.schema if field.name not in dropped])


def _key_writer(settings: SinkSettings, stream: ArroyoSchema) -> MessageWriter | None:
    """None where the key is one column of text or bytes, and there as it is."""
    if not settings.key_fields:
        return None
    fields = [stream.schema.field(name) for name in settings.key_fields]
    if len(fields) == 1 and _is_bytes(fields[0].type):
        return None
    return read_choice(struct_pb2.Value(string_value="json")).writer(pa.schema(fields))


def _check_columns(settings: SinkSettings, stream: ArroyoSchema) -> None:
    for index, name in enumerate(settings.key_fields):
        _column(stream, name, f"key_fields[{index}]")
    for index, name in enumerate(settings.partition_by):
        _check_hashable(_column(stream, name, f"partition_by[{index}]"), f"partition_by[{index}]")
    for header, name in settings.headers:
        field = _column(stream, name, f"headers.{header}")
        if not _is_bytes(field.type):
            raise ConfigError(
                f"header {header!r}: column {name!r} is {field.type}, not string or binary",
                field=f"headers.{header}",
                value=name,
            )
    if settings.timestamp_field:
        field = _column(stream, settings.timestamp_field, "timestamp_field")
        if not pa.types.is_timestamp(field.type):
            raise ConfigError(
                f"column {field.name!r} is {field.type}, not a timestamp", field="timestamp_field", value=field.name
            )
    if settings.topic_field:
        field = _column(stream, settings.topic_field, "topic_field")
        if not _is_text(field.type):
            raise ConfigError(
                f"column {field.name!r} is {field.type}, not a string", field="topic_field", value=field.name
            )


def _column(stream: ArroyoSchema, name: str, where: str) -> pa.Field:
    names = [each for each in stream.names if each != UPDATING_META]
    if name not in names:
        raise ConfigError(f"no column {name!r}", field=where, value=name, allowed=names)
    return stream.schema.field(name)


def _check_hashable(field: pa.Field, where: str) -> None:
    try:
        hash_batch(pa.RecordBatch.from_pylist([{field.name: None}], schema=pa.schema([field])), [field.name])
    except (TypeError, pa.ArrowException) as error:
        raise ConfigError(
            f"column {field.name!r} of type {field.type} cannot choose a partition", field=where, value=field.name
        ) from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
