"""Rows as values of one schema, without anything around them."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.avro.arrow_types import arrow_type
from arroyo_formats.avro.fast import FastEncoder, is_fast, storage_schema
from arroyo_formats.avro.resolution import IncompatibleError, default_column
from arroyo_formats.avro.schema import MISSING, Field, Record, members
from arroyo_formats.avro.storage import to_storage
from arroyo_formats.columns import cast


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


class Encoding:
    """Encodes rows with one schema, that `fit_columns` has nothing against."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._encoder: Any = FastEncoder(record) if is_fast(record) else FastavroEncoder(record)

    def encode(self, batch: pa.RecordBatch) -> pa.Array:
        """`large_binary`, a value for each row; raises `DataError` for one that the schema cannot hold."""
        columns = [_column(field, batch) for field in self._record.fields]
        names = [field.name for field in self._record.fields]
        return self._encoder.encode(pa.StructArray.from_arrays(columns, names)).cast(pa.large_binary())


def _column(field: Field, batch: pa.RecordBatch) -> pa.Array:
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
