"""What is known of the values that a column has in some rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

import pyarrow as pa

EPOCH_DAY = date(1970, 1, 1).toordinal()
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_UTC = frozenset({"UTC", "Z", "+00:00", "Etc/UTC"})

#: A bool; a number, whatever its type; the UTF-8 of a text; nanoseconds or days since 1970.
Value = bool | int | float | Decimal | bytes


class Kind(StrEnum):
    """Types whose values are compared alike."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    DAY = "date"


@dataclass(frozen=True, slots=True)
class Bounds:
    """No value that is not null is outside of `low` to `high`; these are None where nothing is known."""

    kind: Kind | None = None
    low: Value | None = None
    high: Value | None = None
    may_be_null: bool = True
    #: Whether there may be values that are not null.
    may_be_value: bool = True
    #: Whether values may be there that are no numbers, which no bounds tell.
    may_be_nan: bool = False


ANYTHING = Bounds()
NOTHING_BUT_NULLS = Bounds(may_be_value=False)


def kind_of(kind: pa.DataType) -> Kind | None:
    """None for a type whose values are not compared here."""
    types = pa.types
    if types.is_boolean(kind):
        return Kind.BOOLEAN
    if types.is_integer(kind) or types.is_decimal(kind) or kind in (pa.float32(), pa.float64()):
        return Kind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind):
        return Kind.TEXT
    if types.is_timestamp(kind) and (kind.tz is None or kind.tz in _UTC):
        return Kind.TIME
    return Kind.DAY if types.is_date32(kind) else None


def exactly(scalar: pa.Scalar) -> Bounds:
    """Of rows that all have this value."""
    if not scalar.is_valid:
        return NOTHING_BUT_NULLS
    kind = kind_of(scalar.type)
    value: Value
    if kind is Kind.TEXT:
        value = str(scalar.as_py()).encode()
    elif kind is Kind.TIME:
        value = scalar.value * NANOSECONDS[scalar.type.unit]
    elif kind is Kind.DAY:
        value = scalar.as_py().toordinal() - EPOCH_DAY
    elif kind is not None:
        value = scalar.as_py()
    if kind is None or value != value:
        return ANYTHING
    return Bounds(kind, value, value, may_be_null=False)
