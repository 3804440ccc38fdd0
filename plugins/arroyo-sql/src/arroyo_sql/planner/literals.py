"""Constants as SQL that gives the same value of the same type."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from arroyo_sql.planner.sql_types import cast_sql, plain


class UnprintableError(Exception):
    """A constant of a type that SQL has no text for."""


def literal_sql(value: object, *, is_bare: bool = False) -> str:
    """The constant in SQL. A bare number leaves its type to what is around it.

    Raises `UnprintableError` with the name of the type.
    """
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    kind = plain(scalar.type)
    if not scalar.is_valid:
        return _null(kind)
    if pa.types.is_boolean(kind):
        return str(scalar.as_py()).upper()
    if pa.types.is_integer(kind):
        text = str(scalar.as_py())
        return text if is_bare or kind == pa.int64() else _cast(text, kind)
    if pa.types.is_string(kind):
        return text_sql(str(scalar.as_py()))
    for is_kind, write in _WRITERS:
        if is_kind(kind):
            return write(scalar, kind)
    raise UnprintableError(str(kind))


def text_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def interval_us(scalar: object) -> int | None:
    """An interval's microseconds; None where it has months, which differ in length."""
    value = scalar.as_py() if isinstance(scalar, pa.Scalar) else scalar
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if not isinstance(value, tuple) or len(value) != 3:
        return None
    months, days, nanoseconds = value
    return None if months else days * 86_400_000_000 + nanoseconds // 1000


def _null(kind: pa.DataType) -> str:
    return "NULL" if pa.types.is_null(kind) else _cast("NULL", kind)


def _cast(text: str, kind: pa.DataType) -> str:
    printed = cast_sql(text, kind)
    if printed is None:
        raise UnprintableError(str(kind))
    return printed


def _float(scalar: pa.Scalar, kind: pa.DataType) -> str:
    value = float(scalar.as_py())
    if not math.isfinite(value):
        return _cast(text_sql(str(value)), kind)
    # An exponent keeps SQL from reading a long row of digits as a whole number.
    return repr(value) if kind == pa.float64() else _cast(repr(value), kind)


def _decimal(scalar: pa.Scalar, kind: pa.DataType) -> str:
    value: Decimal = scalar.as_py()
    return _cast(text_sql(f"{value:f}"), kind)


def _interval(scalar: pa.Scalar, kind: pa.DataType) -> str:
    months, days, nanoseconds = scalar.as_py()
    parts = [f"{months} months"] * bool(months) + [f"{days} days"] * bool(days)
    if nanoseconds or not parts:
        sign = "-" if nanoseconds < 0 else ""
        whole, rest = divmod(abs(nanoseconds), 10**9)
        parts.append(f"{sign}{whole}{f'.{rest:09d}'.rstrip('0') if rest else ''} seconds")
    return f"INTERVAL '{' '.join(parts)}'"


def _timestamp(scalar: pa.Scalar, kind: pa.DataType) -> str:
    count = scalar.value
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    seconds, rest = divmod(count, per_second)
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        raise UnprintableError(str(kind)) from None
    digits = len(str(per_second)) - 1
    shown = moment.isoformat(sep="T") + (f".{rest:0{digits}d}" if rest else "")
    return _cast(text_sql(shown + ("Z" if kind.tz else "")), kind)


def _date(scalar: pa.Scalar, kind: pa.DataType) -> str:
    value: date = scalar.as_py()
    return f"DATE '{value.isoformat()}'" if kind == pa.date32() else _cast(text_sql(value.isoformat()), kind)


def _time(scalar: pa.Scalar, kind: pa.DataType) -> str:
    return _cast(text_sql(scalar.cast(pa.time64("ns")).cast(pa.string()).as_py()), kind)


def _binary(scalar: pa.Scalar, kind: pa.DataType) -> str:
    return f"X'{scalar.as_py().hex()}'"


def _list(scalar: pa.Scalar, kind: pa.DataType) -> str:
    items = [literal_sql(item) for item in scalar.values]
    if not items:
        return _cast("make_array()", kind)
    return f"make_array({', '.join(items)})"


def _struct(scalar: pa.Scalar, kind: pa.DataType) -> str:
    return "named_struct(" + ", ".join(f"{text_sql(name)}, {literal_sql(scalar[name])}" for name in scalar) + ")"


_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Scalar, pa.DataType], str]]] = [
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_interval, _interval),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_binary, _binary),
    (pa.types.is_list, _list),
    (pa.types.is_struct, _struct),
]
