"""Writes rows as Protobuf messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.columns import cast
from arroyo_formats.format import Encoded, MessageWriter
from arroyo_formats.protobuf.compiling import ProtoError
from arroyo_formats.protobuf.descriptors import place_of
from arroyo_formats.protobuf.fast import FastEncoder, is_fast
from arroyo_formats.protobuf.fields import to_fields
from arroyo_formats.protobuf.message_type import MessageType
from arroyo_formats.protobuf.plain import PlainEncoder
from arroyo_formats.registry import Reference, RegisteredSchema, SchemaRegistry, UnknownSchemaError, frame, header
from arroyo_formats.registry.client import PROTOBUF
from arroyo_formats.registry.framing import write_indexes
from arroyo_formats.schemas_pb2 import ProtobufSettings


def fit_columns(kind: MessageType, schema: pa.Schema) -> None:
    """Raise `ConfigError` where columns can never be written as this message."""
    fields = {field.name: field for field in kind.fields}
    for column in schema:
        if column.name not in fields:
            raise ConfigError(
                f"message {kind.name} has no field {column.name!r}", field="format.message", value=column.name
            )
        wanted = fields[column.name].type
        try:
            pa.nulls(0, column.type).cast(wanted)
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(
                f"column {column.name!r} is {column.type}, and cannot be written as {wanted}",
                field="format.message",
                value=column.name,
            ) from error


class ProtobufWriter(MessageWriter):
    """Writes rows as messages of one type, whose file the registry gets with the first of them."""

    def __init__(self, settings: ProtobufSettings, kind: MessageType, schema: pa.Schema) -> None:
        """`kind` has the fields that are columns."""
        self._fields = kind.fields
        self._encoder: Any = (
            FastEncoder(kind.descriptor, kind.fields, kind.unit)
            if is_fast(kind.descriptor)
            else PlainEncoder(kind.descriptor, kind.fields)
        )
        self._registry = SchemaRegistry.of(settings.registry) if settings.HasField("registry") else None
        self._subject = settings.registry.subject
        self._may_register = settings.registry.register
        self._files = [(file.name, file.text) for file in settings.files]
        self._schema_id = settings.schema_id
        self._prefix = b""
        self._place = b""
        if self._registry is not None:
            self._place = self._place_of(kind)

    def _place_of(self, kind: MessageType) -> bytes:
        if not self._files:
            raise ConfigError(
                "writing with a registry needs a schema_file, whose text it gets", field="format.schema_file"
            )
        if not self._subject:
            raise ConfigError("writing needs the subject of the registry", field="format.registry.subject")
        try:
            return write_indexes(place_of(kind.files, kind.name))
        except ProtoError as error:
            raise ConfigError(str(error), field="format.message") from error

    def check(self) -> None:
        """Raise `ConfigError` where the registry would refuse the file; changes nothing."""
        if self._registry is None or self._schema_id or len(self._files) > 1:
            # It is the registry's own; or what it imports may not be there yet, and only then has a number.
            return
        ((_, text),) = self._files
        if self._may_register:
            self._registry.check(self._subject, RegisteredSchema(PROTOBUF, text))
        else:
            self._lookup(self._subject, RegisteredSchema(PROTOBUF, text))

    def write(self, batch: pa.RecordBatch) -> Encoded:
        if self._registry is not None and not self._prefix:
            self._prefix = header(self._register(self._registry)) + self._place
        columns = [self._column(field, batch) for field in self._fields]
        messages = self._encoder.encode(to_fields(self._fields, columns))
        return Encoded(frame(messages, self._prefix) if self._prefix else messages.cast(pa.large_binary()))

    def _column(self, field: Any, batch: pa.RecordBatch) -> pa.Array:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            # Another field of a `oneof` that is a column.
            return pa.nulls(batch.num_rows, field.type)
        column = cast(batch.column(place), field.type)
        if column.bad:
            row, reason = next(iter(column.bad.items()))
            raise DataError(f"column {field.name!r}, row {row}: {reason}")
        return column.values

    def _register(self, registry: SchemaRegistry) -> int:
        """Imports first, each under its own path as the subject, as other writers do it."""
        if self._schema_id:
            return self._schema_id
        references: list[Reference] = []
        for name, text in self._files[:-1]:
            schema = RegisteredSchema(PROTOBUF, text, _imported(text, references))
            self._add(registry, name, schema)
            references.append(Reference(name, name, registry.lookup_version(name, schema)))
        text = self._files[-1][1]
        return self._add(registry, self._subject, RegisteredSchema(PROTOBUF, text, _imported(text, references)))

    def _add(self, registry: SchemaRegistry, subject: str, schema: RegisteredSchema) -> int:
        return registry.register(subject, schema) if self._may_register else self._lookup(subject, schema)

    def _lookup(self, subject: str, schema: RegisteredSchema) -> int:
        assert self._registry is not None, "without a registry nothing is looked up"
        try:
            return self._registry.lookup(subject, schema)
        except UnknownSchemaError as error:
            raise ConfigError(f"{error}, and register is false", field="format.registry.subject") from error


def _imported(text: str, known: list[Reference]) -> tuple[Reference, ...]:
    """Those of the known files that a text imports."""
    return tuple(each for each in known if f'"{each.name}"' in text or f"'{each.name}'" in text)
