"""Writes rows as Avro messages."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.avro.arrow_types import arrow_type, avro_schema
from arroyo_formats.avro.fast import FastEncoder, is_fast, storage_schema
from arroyo_formats.avro.reading import single_object_mark
from arroyo_formats.avro.resolution import IncompatibleError, default_column
from arroyo_formats.avro.schema import MISSING, Field, Record, SchemaError, members, parse
from arroyo_formats.avro.storage import to_storage
from arroyo_formats.columns import cast
from arroyo_formats.format import Encoded, MessageWriter
from arroyo_formats.registry import RegisteredSchema, SchemaRegistry, UnknownSchemaError, frame, header
from arroyo_formats.registry.client import AVRO
from arroyo_formats.schemas_pb2 import AvroSettings


def schema_to_write(settings: AvroSettings, schema: pa.Schema) -> tuple[str, Record]:
    """Text and tree: the schema of the settings, or one of the columns; raises `ConfigError`."""
    text = settings.schema or json.dumps(avro_schema(schema))
    try:
        return text, parse(text)
    except SchemaError as error:
        raise ConfigError(f"the schema cannot be used: {error}", field="format.schema") from error


def fit_columns(record: Record, schema: pa.Schema) -> None:
    """Raise `ConfigError` where columns can never be written with this schema."""
    names = [field.name for field in record.fields]
    for column in schema:
        if column.name not in names:
            raise ConfigError(
                f"the Avro schema has no field {column.name!r}", field="format.schema", value=column.name, allowed=names
            )
    for field in record.fields:
        if len(members(field.type)[0]) > 1:
            raise ConfigError(
                f"field {field.name!r} is a union of several types, which cannot be written", field="format.schema"
            )
        if field.name not in schema.names:
            _default(field)
            continue
        kind = schema.field(field.name).type
        try:
            pa.nulls(0, kind).cast(arrow_type(field.type))
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(
                f"column {field.name!r} is {kind}, and cannot be written as {arrow_type(field.type)}",
                field="format.schema",
                value=field.name,
            ) from error


class FastavroEncoder:
    """Encodes storage of any schema."""

    def __init__(self, record: Record) -> None:
        self._schema = fastavro.parse_schema(storage_schema(record))

    def encode(self, rows: pa.StructArray) -> pa.Array:
        """`binary`, a value for each row."""
        messages = []
        for row in rows.to_pylist(maps_as_pydicts="strict"):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, self._schema, row)
            messages.append(out.getvalue())
        return pa.array(messages, pa.large_binary())


class AvroWriter(MessageWriter):
    """Writes rows with one schema, which the registry gets with the first of them."""

    def __init__(self, settings: AvroSettings, text: str, record: Record, schema: pa.Schema) -> None:
        self._text = text
        self._record = record
        self._registry = SchemaRegistry.of(settings.registry) if settings.HasField("registry") else None
        self._subject = settings.registry.subject
        self._may_register = settings.registry.register
        self._is_confluent = settings.framing == "confluent"
        self._encoder: Any = FastEncoder(record) if is_fast(record) else FastavroEncoder(record)
        self._prefix = single_object_mark(text) if settings.framing == "single_object" else b""

    def check(self) -> None:
        """Raise `ConfigError` where the registry would refuse the schema; changes nothing."""
        if not self._is_confluent:
            return
        assert self._registry is not None, "the format has refused this framing without a registry"
        if not self._subject:
            raise ConfigError("writing needs the subject of the registry", field="format.registry.subject")
        if self._may_register:
            self._registry.check(self._subject, self._registered())
        else:
            self._known()

    def write(self, batch: pa.RecordBatch) -> Encoded:
        if self._is_confluent and not self._prefix:
            self._prefix = header(self._register())
        columns = [self._column(field, batch) for field in self._record.fields]
        names = [field.name for field in self._record.fields]
        messages = self._encoder.encode(pa.StructArray.from_arrays(columns, names))
        return Encoded(frame(messages, self._prefix) if self._prefix else messages.cast(pa.large_binary()))

    def _column(self, field: Field, batch: pa.RecordBatch) -> pa.Array:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            values = default_column(field, batch.num_rows)
        else:
            column = cast(batch.column(place), arrow_type(field.type))
            if column.bad:
                row, reason = next(iter(column.bad.items()))
                raise DataError(f"column {field.name!r}, row {row}: {reason}")
            values = column.values
        return to_storage(field.type, values, field.name)

    def _registered(self) -> RegisteredSchema:
        return RegisteredSchema(AVRO, self._text)

    def _register(self) -> int:
        assert self._registry is not None, "the format has refused this framing without a registry"
        return self._registry.register(self._subject, self._registered()) if self._may_register else self._known()

    def _known(self) -> int:
        assert self._registry is not None, "the format has refused this framing without a registry"
        try:
            return self._registry.lookup(self._subject, self._registered())
        except UnknownSchemaError as error:
            raise ConfigError(f"{error}, and register is false", field="format.registry.subject") from error


def _default(field: Field) -> pa.Array:
    if field.default is MISSING:
        raise ConfigError(
            f"there is no column {field.name!r}, and the field of the Avro schema has no default",
            field="format.schema",
            value=field.name,
        )
    try:
        return default_column(field, 1)
    except IncompatibleError as error:
        raise ConfigError(str(error), field="format.schema", value=field.name) from error
