"""Nested columns, made safe for SQL: a field of a null struct is null.

Arrow lets the fields of a null struct hold anything, and pyarrow leaves zeros and empty texts there. DataFusion 55
reads them as if the struct were there (apache/datafusion#25120), and trusts a field that is declared not nullable.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def nullable_type(data_type: pa.DataType) -> pa.DataType:
    """The same type, all fields of structs in it nullable; maps are left alone."""
    if pa.types.is_struct(data_type):
        return pa.struct([_nullable_field(field) for field in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(_nullable_field(data_type.value_field))
    if pa.types.is_large_list(data_type):
        return pa.large_list(_nullable_field(data_type.value_field))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_nullable_field(data_type.value_field), data_type.list_size)
    return data_type


def has_struct(data_type: pa.DataType) -> bool:
    """Whether there is a struct anywhere in the type, maps aside."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return has_struct(data_type.value_type)
    return bool(pa.types.is_struct(data_type))


def spread_nulls(array: pa.Array) -> pa.Array:
    """The same values under `nullable_type`, with nulls in every field of a null struct."""
    if not has_struct(array.type):
        return array.cast(nullable_type(array.type))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(array.type):
        # flatten() takes the struct's nulls into its fields.
        fields = [spread_nulls(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(nullable_type(array.type)), mask=mask)
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        elements = spread_nulls(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(elements, type=nullable_type(array.type), mask=mask)
    kind, offset_type = (
        (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(array.type) else (pa.ListArray, pa.int32())
    )
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), offset_type)
    return kind.from_arrays(offsets, spread_nulls(pc.list_flatten(array)), type=nullable_type(array.type), mask=mask)


def _nullable_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, nullable_type(field.type))
