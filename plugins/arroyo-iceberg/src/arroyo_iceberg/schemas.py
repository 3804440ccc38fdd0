"""Columns of streams as columns of tables, and back.

Types that Iceberg has not become the next larger ones: `int16` is `int`, `uint32` is `long`, times count microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_WIDER = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_SAME = (
    pa.types.is_boolean,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date32,
    pa.types.is_decimal128,
)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as a table has them; all may be null, so that later rows need not have them. Raises `ConfigError`."""
    return pa.schema([pa.field(field.name, stored_type(field.type, field.name)) for field in schema])


def stored_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The type that a table has for it; raises `ConfigError` where there is none."""
    if kind in _WIDER:
        return _WIDER[kind]
    if any(check(kind) for check in _SAME):
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type, column)
    if isinstance(kind, pa.UuidType):
        return kind
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([_stored_field(field, column) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_stored_field(kind.value_field, column))
    if pa.types.is_map(kind):
        return pa.map_(stored_type(kind.key_type, column), _stored_field(kind.item_field, column))
    raise ConfigError(f"column {column!r} is {kind}, which Iceberg has no type for: cast it in front of the sink")


def _stored_field(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, stored_type(field.type, column))


def stream_schema(schema: Schema) -> pa.Schema:
    """The columns of a table as a stream has them; raises `ConfigError` for types that streams have not."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.schema(
        [
            pa.field(field.name, _plain(field.type, field.name), nullable=field.nullable)
            for field in schema_to_pyarrow(schema, include_field_ids=False)
        ]
    )


def select_columns(schema: Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns of a table that are named, in that order, as a stream has them; all where none is.

    Raises `ConfigError` for a column that the table has not, or that streams have not.
    """
    if not columns:
        return stream_schema(schema)
    check_names(columns, pa.schema([pa.field(column.name, pa.null()) for column in schema.columns]), field="columns")
    found = stream_schema(schema.select(*columns))
    return pa.schema([found.field(name) for name in columns])


def _plain(kind: pa.DataType, column: str) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if isinstance(kind, pa.UuidType):
        return pa.binary(16)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field, column) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field, column))
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field, column), _plain_field(kind.item_field, column))
    if pa.types.is_null(kind) or isinstance(kind, pa.ExtensionType):
        raise ConfigError(f"column {column!r} is {kind}, which streams have not: leave it out by columns")
    return kind


def _plain_field(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, _plain(field.type, column), nullable=field.nullable)


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema, *, doing: str) -> pa.RecordBatch:
    """The columns of `schema`, by name; null where there is none. Raises `DataError` for a value that does not fit."""
    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(place)
        if column.type != field.type:
            try:
                column = _cast(column, field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise DataError(f"{doing}: column {field.name!r}: {error}") from error
        if not field.nullable and column.null_count:
            raise DataError(f"{doing}: column {field.name!r} is null, and the table requires a value")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column.type, pa.UuidType) and not isinstance(kind, pa.UuidType):
        column = column.storage
    if isinstance(kind, pa.UuidType) and not isinstance(column.type, pa.UuidType):
        return pa.ExtensionArray.from_storage(kind, column.cast(pa.binary(16)))
    return column.cast(kind)


def check_names(wanted: Sequence[str], schema: pa.Schema, *, field: str) -> None:
    """Raise `ConfigError` unless all are columns, each named once."""
    for index, name in enumerate(wanted):
        place = f"{field}[{index}]"
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=place, value=name, allowed=schema.names)
        if name in wanted[:index]:
            raise ConfigError(f"column {name!r} is named twice", field=place, value=name)
