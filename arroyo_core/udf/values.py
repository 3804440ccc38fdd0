"""Columns as lists of Python's values and back, by the fastest way there is for each type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

#: What pyarrow raises for values that do not fit a type.
CONVERSION_ERRORS = (pa.ArrowException, OverflowError, TypeError, ValueError)


def to_python(column: pa.Array) -> list[Any]:
    """The values of a column; maps as dicts, timestamps of UTC with that zone."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit != "ns" and kind.tz == "UTC" and column.null_count == 0:
        # pyarrow makes a time zone of every value, which takes fifty times as long.
        naive: list[datetime] = column.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
        return [value.replace(tzinfo=UTC) for value in naive]
    if pa.types.is_map(kind):
        return [None if items is None else dict(items) for items in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def from_python(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of this type; raises one of `CONVERSION_ERRORS` unless every value fits without loss."""
    if pa.types.is_integer(kind):
        return _integers(values, kind)
    if pa.types.is_map(kind):
        items = [value.items() if isinstance(value, dict) else value for value in values]
        return pa.array([each if each is None else list(each) for each in items], kind)
    return pa.array(values, kind)


def _integers(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    # With a type pyarrow would cut fractions off; left to itself it finds out that they are there.
    try:
        found = pa.array(values)
    except OverflowError:
        # Too large for a signed number, but not always for this type.
        return pa.array(values, kind)
    if found.type == kind:
        return found
    if pa.types.is_integer(found.type) or pa.types.is_floating(found.type) or pa.types.is_null(found.type):
        return found.cast(kind)
    raise pa.ArrowTypeError(f"Expected integer, got {found.type}")


def first_misfit(values: Sequence[Any], kind: pa.DataType) -> int | None:
    """The place of the first value that does not fit; None if each does, alone."""
    for place, value in enumerate(values):
        try:
            from_python([value], kind)
        except CONVERSION_ERRORS:
            return place
    return None
