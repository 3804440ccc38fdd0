"""Values of rows as a test sees them, whatever their Arrow type.

A cell is None, a boolean, a number, a text, bytes, or a tuple of cells for what is nested. Points in time and
durations are whole numbers of the unit of their type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

Cell: TypeAlias = Any
Row: TypeAlias = tuple[Cell, ...]

#: Digits of a floating-point number that count; the last ones depend on the order in which numbers were added.
_DIGITS = {16: 3, 32: 6, 64: 12}
_FLOATS: dict[int, type[np.floating[Any]]] = {16: np.float16, 32: np.float32, 64: np.float64}


def value_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values themselves, without how they are stored."""
    if isinstance(data_type, pa.BaseExtensionType):
        return value_type(data_type.storage_type)
    if pt.is_dictionary(data_type) or pt.is_run_end_encoded(data_type):
        return value_type(data_type.value_type)
    return data_type


def is_listlike(data_type: pa.DataType) -> bool:
    return bool(
        pt.is_list(data_type)
        or pt.is_large_list(data_type)
        or pt.is_fixed_size_list(data_type)
        or pt.is_list_view(data_type)
        or pt.is_large_list_view(data_type)
    )


def cells_of(column: pa.ChunkedArray | pa.Array) -> list[Cell]:
    """The cells of a column."""
    if isinstance(column, pa.ChunkedArray):
        return [cell for chunk in column.chunks for cell in cells_of(chunk)]
    data_type = column.type
    if isinstance(data_type, pa.BaseExtensionType):
        return cells_of(column.storage)
    if pt.is_dictionary(data_type):
        return cells_of(column.dictionary_decode())
    if pt.is_run_end_encoded(data_type):
        return cells_of(column.to_pandas())
    if pt.is_temporal(data_type) and not pt.is_interval(data_type):
        width = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return list(column.cast(width).to_pylist())
    if pt.is_struct(data_type):
        # `flatten` puts the nulls of the struct into its fields.
        fields = [cells_of(field) for field in column.flatten()]
        valid = column.is_valid().to_pylist()
        rows = zip(*fields, strict=True) if fields else iter([()] * len(column))
        return [row if is_there else None for row, is_there in zip(rows, valid, strict=True)]
    if pt.is_map(data_type):
        return [None if item is None else _map_cell(item, data_type) for item in column.to_pylist()]
    if is_listlike(data_type):
        return [None if not item.is_valid else tuple(cells_of(item.values)) for item in column]
    return list(column.to_pylist())


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table, with its columns in order."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(cells_of(column) for column in table.columns), strict=True))


def narrow_row(row: Row, types: Sequence[pa.DataType], wanted: Sequence[pa.DataType]) -> Row:
    """The row with only those fields of its structs that the wanted types have."""
    return tuple(_narrow(*parts) for parts in zip(row, types, wanted, strict=True))


def _narrow(cell: Cell, data_type: pa.DataType, wanted: pa.DataType) -> Cell:
    if cell is None or data_type == wanted or not pt.is_struct(wanted):
        return cell
    kept = {field.name for field in wanted}
    return tuple(part for part, field in zip(cell, value_type(data_type), strict=True) if field.name in kept)


def array_of(cells: Sequence[Cell], data_type: pa.DataType) -> pa.Array:
    """A column of cells; raises `pa.ArrowInvalid` for those that do not fit its type."""
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, array_of(cells, data_type.storage_type))
    return pa.array([_python(cell, data_type) for cell in cells], data_type)


def cell_key(cell: Cell, data_type: pa.DataType) -> Cell:
    """Equal for cells that a test takes as equal: floating-point numbers need not agree in their last digits."""
    if cell is None:
        return None
    data_type = value_type(data_type)
    if pt.is_floating(data_type):
        if math.isnan(cell):
            return "nan"
        return float(f"{as_stored(cell, data_type):.{_DIGITS[data_type.bit_width]}g}") + 0.0
    if pt.is_struct(data_type):
        return tuple(cell_key(part, field.type) for part, field in zip(cell, data_type, strict=True))
    if is_listlike(data_type):
        return tuple(cell_key(part, data_type.value_type) for part in cell)
    if pt.is_map(data_type):
        pairs = [(cell_key(k, data_type.key_type), cell_key(v, data_type.item_type)) for k, v in cell]
        return tuple(sorted(pairs, key=repr))
    return cell


def as_stored(number: float, data_type: pa.DataType) -> np.floating[Any]:
    """The number of this floating-point type that is nearest."""
    return _FLOATS[data_type.bit_width](number)


def row_key(row: Row, types: Sequence[pa.DataType]) -> Row:
    return tuple(cell_key(cell, data_type) for cell, data_type in zip(row, types, strict=True))


def _map_cell(pairs: Sequence[tuple[Any, Any]], data_type: pa.MapType) -> Cell:
    keys = cells_of(pa.array([pair[0] for pair in pairs], data_type.key_type))
    items = cells_of(pa.array([pair[1] for pair in pairs], data_type.item_type))
    return tuple(zip(keys, items, strict=True))


def _python(cell: Cell, data_type: pa.DataType) -> Any:
    """What `pa.array` takes for a cell."""
    if cell is None:
        return None
    data_type = value_type(data_type)
    if pt.is_struct(data_type):
        return {field.name: _python(part, field.type) for part, field in zip(cell, data_type, strict=True)}
    if is_listlike(data_type):
        return [_python(part, data_type.value_type) for part in cell]
    if pt.is_map(data_type):
        return [(_python(k, data_type.key_type), _python(v, data_type.item_type)) for k, v in cell]
    if pt.is_decimal(data_type):
        return Decimal(cell)
    return cell
