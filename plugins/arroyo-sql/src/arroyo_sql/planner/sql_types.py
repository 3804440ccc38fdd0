"""Arrow's types as SQL has them, and casts to them."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

#: Moments, as event times and the ends of windows are.
TIME = pa.timestamp("us", "UTC")
#: What `tumble`, `hop` and `session` return.
WINDOW = pa.struct([pa.field("start", TIME), pa.field("end", TIME)])

_SQL = {
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.int16(): "SMALLINT",
    pa.int8(): "TINYINT",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.uint32(): "INT UNSIGNED",
    pa.uint16(): "SMALLINT UNSIGNED",
    pa.uint8(): "TINYINT UNSIGNED",
    pa.float64(): "DOUBLE",
    pa.float32(): "REAL",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}
_ARROW = {
    pa.null(): "Null",
    pa.int64(): "Int64",
    pa.int32(): "Int32",
    pa.int16(): "Int16",
    pa.int8(): "Int8",
    pa.uint64(): "UInt64",
    pa.uint32(): "UInt32",
    pa.uint16(): "UInt16",
    pa.uint8(): "UInt8",
    pa.float64(): "Float64",
    pa.float32(): "Float32",
    pa.float16(): "Float16",
    pa.string(): "Utf8",
    pa.bool_(): "Boolean",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
    pa.binary(): "Binary",
    pa.month_day_nano_interval(): "Interval(MonthDayNano)",
}
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def plain(kind: pa.DataType) -> pa.DataType:
    """The type without views and large texts, as operators have it."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    return kind


def is_number(kind: pa.DataType | None) -> bool:
    if kind is None:
        return False
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def same(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether two types hold the same values; names of elements and nullability do not count."""
    left, right = plain(left), plain(right)
    if pa.types.is_list(left) and pa.types.is_list(right):
        return same(left.value_type, right.value_type)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        pairs = list(zip(left, right, strict=False))
        return len(left) == len(right) and all(a.name == b.name and same(a.type, b.type) for a, b in pairs)
    return cast(bool, left == right)


def cast_sql(sql: str, kind: pa.DataType, *, is_try: bool = False) -> str | None:
    """SQL that casts a value to a type; None where SQL has no name for the type."""
    prefix = "TRY_" if is_try else ""
    if kind in _SQL:
        return f"{prefix}CAST({sql} AS {_SQL[kind]})"
    if pa.types.is_decimal(kind) and not pa.types.is_decimal256(kind):
        return f"{prefix}CAST({sql} AS DECIMAL({kind.precision}, {kind.scale}))"
    name = arrow_name(kind)
    return None if name is None else f"arrow_{prefix.lower()}cast({sql}, '{name}')"


def arrow_name(kind: pa.DataType) -> str | None:
    """A type as `arrow_cast` names it."""
    if kind in _ARROW:
        return _ARROW[kind]
    if pa.types.is_timestamp(kind):
        zone = f'Some("{kind.tz}")' if kind.tz else "None"
        return f"Timestamp({_UNITS[kind.unit]}, {zone})"
    if pa.types.is_time(kind):
        return f"Time{kind.bit_width}({_UNITS[kind.unit]})"
    if pa.types.is_duration(kind):
        return f"Duration({_UNITS[kind.unit]})"
    if pa.types.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        inner = arrow_name(kind.value_type)
        return None if inner is None else f"List({inner})"
    return None


def sql_name(kind: pa.DataType) -> str:
    """A type as a person would write it."""
    kind = plain(kind)
    if kind in _SQL:
        return _SQL[kind]
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_binary(kind):
        return "BYTES"
    if pa.types.is_list(kind):
        return f"{sql_name(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"{field.name} {sql_name(field.type)}" for field in kind) + ">"
    return str(kind)
