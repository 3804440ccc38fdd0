"""Brings batches of any file to the one schema of the source, by column name."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type as the pipeline sees it: views and dictionaries become plain values."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata and without promises that a next file may not keep (not null)."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def missing_columns(schema: pa.Schema, found: pa.Schema) -> list[str]:
    """The columns that a file does not have; they are null."""
    return [name for name in schema.names if name not in found.names]


def conform(batch: pa.RecordBatch, schema: pa.Schema, *, place: str) -> pa.RecordBatch:
    """The batch in `schema`: columns found by name, cast where that is safe, null where absent.

    Raises `DataError` naming the place and the column where a value does not fit.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [_column(batch, field, place) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, place: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        if field.name in batch.schema.names:
            raise DataError(f"{place}: column {field.name!r} appears twice")
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(index)
    if column.type.equals(field.type):
        return column
    try:
        return _cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(
            f"{place}: column {field.name!r} is {column.type} and does not fit {field.type}: {error}"
        ) from error


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(kind) and pa.types.is_integer(column.type):
        # Nothing in the file says in which unit such a number counts.
        raise pa.ArrowTypeError("a number is not a timestamp unless the schema of the file says so")
    return pc.cast(column, kind, safe=True)
