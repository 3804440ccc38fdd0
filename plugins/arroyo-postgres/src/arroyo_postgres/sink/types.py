"""Which types of PostgreSQL hold the values of an Arrow column."""

from __future__ import annotations

import pyarrow as pa
from arroyo_connectors.texts import is_bytes, is_list

#: How many bits of an integer the types hold; `numeric` holds all.
_INTEGER_BITS = {"int2": 15, "int4": 31, "int8": 63, "numeric": 128}
#: Types that have an Arrow type of their own: a text is not written into them.
_TYPED = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "bytea", "date", "time", "timetz", "timestamp"}
    | {"timestamptz", "interval"}
)
_TIMES = frozenset({"timestamp", "timestamptz"})
#: The most digits of an Arrow integer without a sign.
_UNSIGNED_DIGITS = 20


def sql_type(kind: pa.DataType) -> str:
    """The type of a column that is made for these values."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        bits = _integer_bits(kind)
        names = {"int2": "smallint", "int4": "integer", "int8": "bigint"}
        fitting = [names[name] for name in names if bits <= _INTEGER_BITS[name]]
        return fitting[0] if fitting else f"numeric({_UNSIGNED_DIGITS})"
    if pa.types.is_floating(kind):
        return "double precision" if pa.types.is_float64(kind) else "real"
    if pa.types.is_decimal(kind):
        # Before PostgreSQL 15 a scale is neither below zero nor above the precision.
        scale = max(kind.scale, 0)
        return f"numeric({max(kind.precision - min(kind.scale, 0), scale)},{scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if is_list(kind):
        return element_sql_type(kind) + "[]"
    for test, name in (
        (pa.types.is_date, "date"),
        (pa.types.is_time, "time"),
        (pa.types.is_duration, "interval"),
        (is_bytes, "bytea"),
        (pa.types.is_struct, "jsonb"),
        (pa.types.is_map, "jsonb"),
    ):
        if test(kind):
            return name
    return "text"


def element_sql_type(kind: pa.DataType) -> str:
    """The type of the values in a list, however deep: arrays of arrays have the type of arrays."""
    while is_list(kind):
        kind = kind.value_type
    return sql_type(kind)


def holds(type_name: str, element: str, kind: pa.DataType) -> bool:
    """Whether a column can hold every value; its type is that of the catalogue, `element` that of an array's values."""
    if pa.types.is_null(kind):
        return True
    if is_list(kind):
        while is_list(kind):
            kind = kind.value_type
        return bool(element) and holds(element, "", kind)
    if element:
        return False
    if pa.types.is_boolean(kind):
        return type_name == "bool"
    if pa.types.is_integer(kind):
        return _integer_bits(kind) <= _INTEGER_BITS.get(type_name, 0)
    if pa.types.is_floating(kind):
        return type_name in ({"float8", "numeric"} | (set() if pa.types.is_float64(kind) else {"float4"}))
    if pa.types.is_decimal(kind):
        return type_name == "numeric"
    if pa.types.is_timestamp(kind):
        return type_name in _TIMES
    if pa.types.is_date(kind):
        return type_name == "date" or type_name in _TIMES
    if pa.types.is_time(kind):
        return type_name == "time"
    if pa.types.is_duration(kind):
        return type_name == "interval"
    if is_bytes(kind):
        return type_name == "bytea"
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return type_name in ("json", "jsonb")
    # A text may be a uuid, a jsonb, an enum: PostgreSQL reads it.
    return type_name not in _TYPED


def _integer_bits(kind: pa.DataType) -> int:
    """How many bits its values have beside the sign."""
    return int(kind.bit_width) - (not pa.types.is_unsigned_integer(kind))
