"""Whole rows as values: which are equal, and a stable hash of each, lists and maps included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.hashing import Hashes, hash_columns
from arroyo_core.state import take_in_parts
from arroyo_std.aggregates.groups import Groups, canonical
from arroyo_std.columns import normal_type

ROW_HASH = pa.binary(16)
#: Why the state of an updating stream gets no new columns.
TAKEN_BACK = "rows from before may be taken back, and would not be known by it"


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in plain types, all nullable: as state keeps them and updating outputs have them."""
    return pa.schema([pa.field(field.name, normal_type(field.type)) for field in schema])


def plain_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, which is plain, from a batch that may have them in other types."""
    columns = [batch.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(
        [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def group_rows(columns: Sequence[Any], rows: int) -> Groups:
    """Group rows by equal values in all columns; null equals null. Lists and maps are compared by a 64-bit hash."""
    if not any(isinstance(column, pa.ChunkedArray) for column in columns):
        return Groups.of_columns([_comparable(column) for column in columns], rows)
    # The columns are large: whole values are compared only where all that is small is equal.
    codes = Groups.of_columns([_outline(column) for column in columns], rows).codes
    shared = np.flatnonzero(np.bincount(codes)[codes] > 1)
    if not len(shared):
        return Groups(codes, rows)
    table = take_in_parts(
        pa.Table.from_arrays(list(columns), names=[str(place) for place in range(len(columns))]), shared
    )
    codes[shared] = rows + Groups.of_columns([_comparable(column) for column in table.columns], len(shared)).codes
    return Groups.of_columns([pa.array(codes)], rows)


def row_hashes(columns: Sequence[pa.Array], rows: int) -> pa.FixedSizeBinaryArray:
    """Sixteen bytes for each row, the same wherever and whenever they are computed."""
    words = [pa.array(value_hashes(column)) for column in columns]
    first = hash_columns(words) if words else np.zeros(rows, dtype=np.uint64)
    second = hash_columns([pa.array(first), *words])
    pair = np.ascontiguousarray(np.stack([first, second], axis=1).astype("<u8"))
    return pa.FixedSizeBinaryArray.from_buffers(ROW_HASH, rows, [None, pa.py_buffer(pair)])


def is_nested(kind: pa.DataType) -> bool:
    """Whether there are lists or maps in the type, which Arrow can neither compare nor sort."""
    if pa.types.is_struct(kind):
        return any(is_nested(field.type) for field in kind)
    return bool(pa.types.is_nested(kind))


def value_hashes(column: Any) -> Hashes:
    """A stable 64-bit hash of each value of any type, of an array or a chunked column."""
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([np.empty(0, np.uint64), *(value_hashes(chunk) for chunk in column.chunks)])
    kind = column.type
    if pa.types.is_struct(kind):
        fields = [pa.array(value_hashes(field)) for field in column.flatten()]
        return hash_columns([column.is_valid(), *fields])
    if pa.types.is_map(kind):
        entry = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
        return value_hashes(column.cast(pa.list_(entry)))
    if pa.types.is_fixed_size_list(kind):
        return value_hashes(column.cast(pa.list_(kind.value_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_hashes(column)
    return hash_columns([canonical(column)])


def _comparable(column: Any) -> Any:
    return pa.array(value_hashes(column)) if is_nested(column.type) else column


def _outline(column: pa.ChunkedArray) -> Any:
    """Something small that is equal where values are: the length of what has one."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.binary_length(column)
    if pa.types.is_list(kind):
        return pc.list_value_length(column)
    return column.is_valid() if pa.types.is_nested(kind) else column


def _list_hashes(column: pa.Array) -> Hashes:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    # Not `list_parent_indices`: it counts the elements that a null list may have below it, `flatten` does not.
    parents = np.repeat(np.arange(len(column)), lengths)
    places = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    elements = hash_columns([pa.array(value_hashes(column.flatten())), pa.array(places)])
    sums = np.zeros(len(column), dtype=np.uint64)
    # Every element is hashed with its place, so a sum tells orders apart.
    np.add.at(sums, parents, elements)
    return hash_columns([column.is_valid(), pa.array(lengths), pa.array(sums)])
