"""Batches of any columns, for property tests."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_INTEGERS = {pa.int32(): 31, pa.int64(): 63, pa.time32("ms"): 0, pa.time64("us"): 0}


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, as `pa.array` takes them."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_unsigned_integer(kind):
        return st.integers(0, 2**kind.bit_width - 1)
    if pa.types.is_integer(kind):
        return st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width, allow_nan=False)
    if pa.types.is_string(kind):
        return st.text(max_size=8)
    if pa.types.is_binary(kind):
        return st.binary(max_size=8)
    if pa.types.is_date32(kind):
        return st.dates()
    if pa.types.is_time(kind):
        step = 1000 if kind.unit == "ms" else 1
        return st.integers(0, 86_400_000_000 // step - 1).map(lambda number: _time(number * step))
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return st.integers(-(2**62), 2**62)
    if pa.types.is_timestamp(kind):
        # What Python's own times can say, so that a failure can be shown.
        most = 250_000_000_000 * {"s": 1, "ms": 1000, "us": 1_000_000}[kind.unit]
        return st.integers(-most // 5, most)
    if pa.types.is_duration(kind):
        return st.integers(-(10**15), 10**15)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        context = decimal.Context(prec=80)
        return st.integers(-most, most).map(lambda number: context.scaleb(decimal.Decimal(number), -kind.scale))
    if pa.types.is_list(kind):
        return st.lists(maybe(kind.value_field), max_size=3)
    if pa.types.is_map(kind):
        return st.dictionaries(values(kind.key_type), maybe(kind.item_field), max_size=3).map(lambda d: list(d.items()))
    return st.fixed_dictionaries({field.name: maybe(field) for field in kind})


def maybe(field: pa.Field) -> st.SearchStrategy[Any]:
    return st.none() | values(field.type) if field.nullable else values(field.type)


def _time(micros: int) -> dt.time:
    return (dt.datetime(2000, 1, 1) + dt.timedelta(microseconds=micros)).time()


def kinds(scalars: Sequence[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Types of these scalars, and lists, maps and structs of them."""

    def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        items = st.builds(pa.field, st.just("item"), inner, st.booleans())
        fields = st.builds(lambda kind, nullable: (kind, nullable), inner, st.booleans())
        return (
            items.map(pa.list_)
            | items.map(lambda item: pa.map_(pa.string(), item.with_name("value")))
            | st.lists(fields, min_size=1, max_size=3).map(_struct)
        )

    return st.recursive(st.sampled_from(scalars), nested, max_leaves=4)


def _struct(fields: list[tuple[pa.DataType, bool]]) -> pa.DataType:
    return pa.struct([pa.field(f"f{i}", kind, nullable) for i, (kind, nullable) in enumerate(fields)])


@st.composite
def batches(draw: Any, scalars: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Up to four columns and five rows, perhaps a part of a longer batch."""
    found = draw(st.lists(st.tuples(kinds(scalars), st.booleans()), min_size=1, max_size=4))
    schema = pa.schema([pa.field(f"c{i}", kind, nullable) for i, (kind, nullable) in enumerate(found)])
    rows = draw(st.integers(0, 5))
    columns = [pa.array(draw(st.lists(maybe(field), min_size=rows, max_size=rows)), field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return batch.slice(draw(st.integers(0, rows)))
