"""Any value of any type that a schema can declare."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from arroyo_formats.type_names import SIMPLE_TYPES, parse_type
from hypothesis import strategies as st

NESTED = [
    "list<int64>",
    "list<string>",
    "list<timestamp>",
    "struct<a: int64, b: string>",
    "struct<d: date, t: struct<x: float64>>",
    "list<struct<a: bool, b: list<int8>>>",
    "map<string, int64>",
]
TYPES = [*SIMPLE_TYPES.values(), parse_type("decimal(10,2)"), parse_type("decimal(38,10)"), *map(parse_type, NESTED)]
_EPOCH = datetime(1970, 1, 1)
#: The years that a count of nanoseconds in 64 bits reaches.
_NANOSECONDS = (datetime(1678, 1, 1), datetime(2262, 1, 1))


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, and null."""
    return st.none() | _present(kind)


def _present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    types = pa.types
    if types.is_boolean(kind):
        return st.booleans()
    if types.is_integer(kind):
        signed = types.is_signed_integer(kind)
        bits = kind.bit_width - signed
        return st.integers(-(2**bits) if signed else 0, 2**bits - 1)
    if types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if types.is_string(kind):
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    if types.is_binary(kind):
        return st.binary(max_size=12)
    if types.is_date(kind):
        return st.dates(min_value=date(1000, 1, 1))
    if types.is_time(kind):
        return st.times()
    if types.is_timestamp(kind):
        return _timestamps(kind)
    if types.is_decimal(kind):
        whole = 10 ** (kind.precision - kind.scale)
        bounds = Decimal(1 - whole), Decimal(whole - 1)
        return st.decimals(*bounds, places=kind.scale, allow_nan=False, allow_infinity=False)
    return _nested(kind)


def _timestamps(kind: pa.DataType) -> st.SearchStrategy[Any]:
    least, greatest = _NANOSECONDS if kind.unit == "ns" else (datetime(1000, 1, 1), datetime(9999, 12, 31))
    unit = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1)}.get(kind.unit, timedelta(microseconds=1))
    scale = 1000 if kind.unit == "ns" else 1
    counts = st.integers((least - _EPOCH) // unit * scale, (greatest - _EPOCH) // unit * scale)
    # As numbers: Python's own times know no nanoseconds.
    return counts.map(lambda count: pa.scalar(count, pa.int64()).cast(kind))


def _nested(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    if pa.types.is_map(kind):
        return st.dictionaries(_present(kind.key_type), values(kind.item_type), max_size=3).map(
            lambda found: [*found.items()]
        )
    return st.lists(values(kind.value_type), max_size=3)


def batches(schema: pa.Schema, max_rows: int = 12) -> st.SearchStrategy[pa.RecordBatch]:
    row = st.tuples(*(values(field.type) for field in schema))
    return st.lists(row, max_size=max_rows).map(lambda rows: batch_of(schema, rows))


def batch_of(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
