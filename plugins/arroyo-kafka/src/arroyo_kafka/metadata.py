"""Columns of what a message has beside its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_kafka.kafka_pb2 import MetadataColumn

if TYPE_CHECKING:
    from confluent_kafka import Message

TIMESTAMP = pa.timestamp("us", "UTC")
HEADERS = pa.map_(pa.string(), pa.binary())


def _topics(messages: Sequence[Message]) -> pa.Array:
    return pa.array([message.topic() for message in messages], pa.string())


def _partitions(messages: Sequence[Message]) -> pa.Array:
    return pa.array([message.partition() for message in messages], pa.int32())


def _offsets(messages: Sequence[Message]) -> pa.Array:
    return pa.array([message.offset() for message in messages], pa.int64())


def _timestamps(messages: Sequence[Message]) -> pa.Array:
    """Null for a message of a time before messages had one."""
    times = [message.timestamp()[1] for message in messages]
    return pa.array([time * 1000 if time >= 0 else None for time in times], TIMESTAMP)


def _keys(messages: Sequence[Message]) -> pa.Array:
    return pa.array([message.key() for message in messages], pa.binary())


def _headers(messages: Sequence[Message]) -> pa.Array:
    """No headers are an empty map."""
    return pa.array([message.headers() or [] for message in messages], HEADERS)


_PARTS: Mapping[str, tuple[pa.DataType, Callable[[Sequence[Message]], pa.Array]]] = {
    "topic": (pa.string(), _topics),
    "partition": (pa.int32(), _partitions),
    "offset": (pa.int64(), _offsets),
    "timestamp": (TIMESTAMP, _timestamps),
    "key": (pa.binary(), _keys),
    "headers": (HEADERS, _headers),
}


class MetadataColumns:
    """The metadata columns of a source, in their order. Only those that are asked for cost anything."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        """`parts` by the name of the column: `{"at": "timestamp"}`."""
        self._parts = parts

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, _PARTS[part][0]) for name, part in self._parts.items()]

    def build(self, messages: Sequence[Message]) -> list[pa.Array]:
        """A value for each message."""
        return [_PARTS[part][1](messages) for part in self._parts.values()]


def read_metadata(columns: Sequence[MetadataColumn]) -> MetadataColumns:
    """The columns of the config field `metadata`; raises `ConfigError` for one that is wrong."""
    parts: dict[str, str] = {}
    for column in columns:
        place = f"metadata.{column.name}"
        if column.part not in _PARTS:
            raise ConfigError(
                f"a message has no {column.part!r}", field=place, value=column.part, allowed=sorted(_PARTS)
            )
        if column.name in parts:
            raise ConfigError(f"column {column.name!r} is declared twice", field=place, value=column.name)
        parts[column.name] = column.part
    return MetadataColumns(parts)
