"""Rows of files with the columns that their table has now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.state.column_rules import column_path, is_list
from arroyo_core.state.failures import DamagedStateError


def fit_rows(rows: pa.Table, schema: pa.Schema, names: Mapping[str, str]) -> pa.Table:
    """Rows of a file with these columns: missing ones are null, others are left out, narrower numbers are widened.

    `names` are the `column_names` of the file. Rows that fit come back as they are.
    """
    if not names and rows.schema.equals(schema):
        return rows
    columns = []
    for field in schema:
        source = names.get(column_path("", field.name), field.name)
        place = rows.schema.get_field_index(source) if source else -1
        if place < 0:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        found = rows.column(place)
        path = column_path("", field.name)
        if _fits(found.type, field.type, path, names):
            columns.append(found)
        else:
            columns.append(_fit_column(found, field, names))
    return pa.Table.from_arrays(columns, schema=schema)


def _fit_column(found: pa.ChunkedArray, field: pa.Field, names: Mapping[str, str]) -> pa.ChunkedArray:
    path = column_path("", field.name)
    try:
        return pa.chunked_array([_fit(chunk, field.type, path, names) for chunk in found.chunks], field.type)
    except pa.ArrowException as error:
        raise DamagedStateError(
            f"a file of state has a column {field.name!r} of type {found.type}, not {field.type}: {error}"
        ) from error


def source_columns(columns: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """What some columns of a table are called in a file, as far as it has values for them."""
    found = [names.get(column_path("", name), name) for name in columns]
    return [name for name in found if name]


def _fits(found: pa.DataType, wanted: pa.DataType, path: str, names: Mapping[str, str]) -> bool:
    return bool(found == wanted) and not any(each.startswith(f"{path}.") for each in names)


def _fit(values: Any, wanted: pa.DataType, path: str, names: Mapping[str, str]) -> Any:
    if _fits(values.type, wanted, path, names):
        return values
    if pa.types.is_struct(wanted) and pa.types.is_struct(values.type):
        columns = []
        for field in wanted:
            inner = column_path(path, field.name)
            source = names.get(inner, field.name)
            place = values.type.get_field_index(source) if source else -1
            columns.append(
                _fit(values.field(place), field.type, inner, names) if place >= 0 else pa.nulls(len(values), field.type)
            )
        return pa.StructArray.from_arrays(
            columns, fields=list(wanted), mask=values.is_null() if values.null_count else None
        )
    if is_list(wanted) and is_list(values.type):
        # Not the offsets of the list itself: it may be a slice, and a null list may have values below it.
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy().astype(np.int64)
        is_large = pa.types.is_large_list(wanted)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if is_large else np.int32)
        made = pa.LargeListArray if is_large else pa.ListArray
        return made.from_arrays(
            pa.array(offsets),
            _fit(values.flatten(), wanted.value_type, path, names),
            type=wanted,
            mask=values.is_null() if values.null_count else None,
        )
    return values.cast(wanted)
