"""Columns of a result: their Arrow types, and arrays of the texts and bytes that the server sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from arroyo_connectors import check_column

from arroyo_core.errors import ConfigError, DataError
from arroyo_mysql.names import quoted

if TYPE_CHECKING:
    from arroyo_mysql.connection import Session

_UNSIGNED, _ENUM, _SET = 32, 256, 2048
_BINARY = 63
#: By the numbers that types have in the protocol.
_BITS = {1: 8, 2: 16, 3: 32, 8: 64, 9: 32}
_FLOAT = 4
_DECIMAL128_DIGITS = 38
_DECIMALS = (0, 246)
_TEXTS = (15, 249, 250, 251, 252, 253, 254)
#: Dates that are none; they are read as NULL.
_ZERO_DATE = re.compile(r"^\d{4}-(?:00-\d\d|\d\d-00)")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column that a table or a query has."""

    name: str
    type: pa.DataType
    #: What is asked for: of a float its value as a double, since the server shows six digits of it.
    sql: str
    #: What becomes of a value that is not NULL; a text is read as Arrow does.
    read: Callable[[Any], Any] | None = None
    #: Whether it is an enum or a set: a text that is sorted by its number, and compared by its letters.
    is_choice: bool = False

    def make_array(self, values: Sequence[Any]) -> pa.Array:
        """Values of a result; raises `DataError` for one that has no place in the type."""
        kind = self.type
        read = self.read
        try:
            if read is not None:
                return pa.array([None if value is None else read(value) for value in values], kind)
            if pa.types.is_string(kind) or pa.types.is_binary(kind):
                return pa.array(values, kind)
            if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
                texts = pa.array([None if value is None or _ZERO_DATE.match(value) else value for value in values])
                found = texts.cast(pa.string()).cast(kind if pa.types.is_date(kind) else pa.timestamp("us"))
                # The session's zone is UTC.
                return found.cast(kind)
            return pa.array(values, pa.string()).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
            raise DataError(f"column {self.name!r} has a value that is no {kind}: {error}") from error


def read_column(field: Any) -> ResultColumn:
    """The column of a description; raises `ConfigError` for a type that cannot be read."""
    code, name, sql = field.type_code, field.name, quoted(field.name)
    is_unsigned = bool(field.flags & _UNSIGNED)
    if code in _BITS:
        return ResultColumn(name, getattr(pa, f"{'u' if is_unsigned else ''}int{_BITS[code]}")(), sql)
    if code == _FLOAT:
        return ResultColumn(name, pa.float32(), f"{sql} + 0e0", float)
    if code in _DECIMALS:
        # The length counts the point, and the sign where there may be one.
        digits = field.length - (field.scale > 0) - (not is_unsigned)
        make = pa.decimal128 if digits <= _DECIMAL128_DIGITS else pa.decimal256
        return ResultColumn(name, make(digits, field.scale), sql)
    if code in _TEXTS:
        is_choice = bool(field.flags & (_ENUM | _SET))
        kind = pa.string() if is_choice or field.charsetnr != _BINARY else pa.binary()
        return ResultColumn(name, kind, sql, is_choice=is_choice)
    kind, read = _OTHERS.get(code, (None, None))
    if kind is None:
        raise ConfigError(f"column {name!r} has a type that cannot be read, number {code} of the protocol")
    return ResultColumn(name, kind, sql, read)


def describe(session: Session, relation: str, columns: Sequence[str]) -> tuple[ResultColumn, ...]:
    """The columns that are wanted of what stands after FROM, all where none are named; raises `ConfigError`."""
    fields = session.describe(f"select * from {relation} limit 0")
    names = [field.name for field in fields]
    for place, name in enumerate(columns):
        check_column(name, names, f"columns[{place}]")
    wanted = columns or tuple(names)
    found = {field.name: read_column(field) for field in fields if field.name in wanted}
    return tuple(found[name] for name in wanted)


def _bits(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _microseconds(text: str) -> int:
    """Of `-838:59:59.000001`."""
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    return sign * (((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or 0))


_OTHERS: dict[int, tuple[pa.DataType, Callable[[Any], Any] | None]] = {
    5: (pa.float64(), None),
    6: (pa.null(), None),
    7: (pa.timestamp("us", "UTC"), None),
    10: (pa.date32(), None),
    11: (pa.duration("us"), _microseconds),
    12: (pa.timestamp("us"), None),
    13: (pa.int16(), None),
    16: (pa.uint64(), _bits),
    245: (pa.string(), None),
    255: (pa.binary(), None),
}
