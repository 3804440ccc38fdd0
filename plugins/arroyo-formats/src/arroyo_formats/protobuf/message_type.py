"""The message type of resolved settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2

from arroyo_core.errors import ConfigError
from arroyo_formats.protobuf.compiling import ProtoError, from_base64
from arroyo_formats.protobuf.descriptors import find_message, pruned
from arroyo_formats.protobuf.shape import Field, fields_of
from arroyo_formats.schemas_pb2 import ProtobufSettings


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message with the fields that are columns."""

    files: descriptor_pb2.FileDescriptorSet
    name: str
    descriptor: Any
    fields: tuple[Field, ...]
    #: Of times: `us`, and `ns` where a column is so exact.
    unit: str


def message_type(settings: ProtobufSettings, columns: pa.Schema | None) -> MessageType:
    """The message of resolved settings, with all its fields, or with those that are columns; raises `ConfigError`."""
    unit = "ns" if columns is not None and any(_has_nanos(field.type) for field in columns) else "us"
    try:
        files = from_base64(settings.descriptor_set)
        if columns is not None:
            files = pruned(files, settings.message, columns.names)
        descriptor = find_message(files, settings.message)
        return MessageType(files, settings.message, descriptor, fields_of(descriptor, unit), unit)
    except ProtoError as error:
        raise ConfigError(f"message {settings.message} cannot be used: {error}", field="format.message") from error


def _has_nanos(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanos(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else False
