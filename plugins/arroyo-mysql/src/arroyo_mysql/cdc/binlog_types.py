"""Columns of row events: how many bytes a value has, what it means, and the Arrow type it becomes.

Numbers of types are those of the protocol. Whatever a SELECT would give is given here too: a row of the snapshot and
the same row of the stream are equal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any

import pyarrow as pa

from arroyo_core.errors import DataError
from arroyo_mysql.cdc.charsets import UNREADABLE_CHARSET, decoder_of, is_utf8

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, DATE, YEAR = 1, 2, 3, 4, 5, 8, 9, 10, 13
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 15, 16, 17, 18, 19
NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 246, 247, 248, 252, 253, 254, 255
VARCHAR_COMPRESSED = 141
BINARY_CHARSET = 63
#: Types whose metadata has one byte, and two.
ONE_BYTE = frozenset({FLOAT, DOUBLE, BLOB, GEOMETRY, 245, TIMESTAMP2, DATETIME2, TIME2, 140, 242})
TWO_BYTES = frozenset({VARCHAR, BIT, NEWDECIMAL, ENUM, SET, VAR_STRING, STRING, VARCHAR_COMPRESSED})
NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
WITH_COLLATION = frozenset({VARCHAR, VAR_STRING, STRING, BLOB})
MARIADB_WITH_COLLATION = frozenset({GEOMETRY, 140, VARCHAR_COMPRESSED})
_SIZES = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_BITS = {TINY: 8, SHORT: 16, INT24: 32, LONG: 32, LONGLONG: 64}
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_YEAR_0_DAYS = 366
_DAY_US = 86_400_000_000
#: Bytes of so many digits of a decimal.
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
#: Types that are left, with what to do.
_UNREADABLE = {
    7: "times in the format of MySQL 5.5; ALTER TABLE ... FORCE rewrites them",
    11: "times in the format of MySQL 5.5; ALTER TABLE ... FORCE rewrites them",
    12: "times in the format of MySQL 5.5; ALTER TABLE ... FORCE rewrites them",
    140: "a compressed column of MariaDB",
    VARCHAR_COMPRESSED: "a compressed column of MariaDB",
    245: "MySQL's binary JSON",
}

#: Bytes of times in formats that are only passed over.
_OLD_SIZES = {7: 4, 11: 3, 12: 8}

#: Bytes and an offset to a value and the offset behind it.
Read = Callable[[bytes, int], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class BinlogColumn:
    """A column as the binlog describes it."""

    name: str
    #: Enums and sets by their own numbers.
    type_code: int
    meta: tuple[int, int]
    is_unsigned: bool = False
    #: The number of a collation; of texts, bytes, enums and sets.
    collation: int = BINARY_CHARSET
    #: The texts of an enum or a set, in its character set.
    values: tuple[bytes, ...] = ()

    @property
    def arrow_type(self) -> pa.DataType | None:
        """None for what cannot be read."""
        code = self.type_code
        if code in _BITS:
            return getattr(pa, f"{'u' if self.is_unsigned else ''}int{_BITS[code]}")()
        if code == NEWDECIMAL:
            make = pa.decimal128 if self.meta[0] <= 38 else pa.decimal256
            return make(*self.meta)
        if code in (VARCHAR, VAR_STRING, STRING, BLOB):
            return pa.binary() if self.collation == BINARY_CHARSET else pa.string()
        return _TYPES.get(code)


_TYPES: dict[int, pa.DataType] = {
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    YEAR: pa.int16(),
    BIT: pa.uint64(),
    TIMESTAMP2: pa.timestamp("us", "UTC"),
    DATETIME2: pa.timestamp("us"),
    TIME2: pa.duration("us"),
    ENUM: pa.string(),
    SET: pa.string(),
    GEOMETRY: pa.binary(),
}


def why_unreadable(type_code: int) -> str:
    return _UNREADABLE.get(type_code, f"a type that is not known, number {type_code}")


def reader_of(column: BinlogColumn, charset: str) -> Read:
    """How values of a column are read; `charset` is MySQL's name of that of a text. Raises `DataError`."""
    code, (first, second) = column.type_code, column.meta
    if code in _SIZES:
        return _integer(_SIZES[code], is_unsigned=column.is_unsigned)
    if code == FLOAT:
        return _unpacked("<f", 4)
    if code == DOUBLE:
        return _unpacked("<d", 8)
    if code == NEWDECIMAL:
        return _decimal(first, second)
    if code in (VARCHAR, VAR_STRING, STRING):
        length = first
        pad = length if code == STRING and column.collation == BINARY_CHARSET else 0
        return _text(1 if length < 256 else 2, _decoder(column, charset), pad)
    if code in (BLOB, GEOMETRY):
        return _text(first, _decoder(column, charset), 0)
    if code in (ENUM, SET):
        decode = _decoder(column, charset) or bytes.decode
        return _choices([decode(value) for value in column.values], second, is_set=code == SET)
    if code == BIT:
        size = second + (first > 0)
        return lambda data, at: (int.from_bytes(data[at : at + size], "big"), at + size)
    found = {DATE: _date, YEAR: _year}.get(code)
    if found is not None:
        return found
    if code in (DATETIME2, TIMESTAMP2, TIME2):
        make = {DATETIME2: _datetime, TIMESTAMP2: _timestamp, TIME2: _time}[code]
        return make((first + 1) // 2)
    raise DataError(f"column {column.name!r} is {why_unreadable(code)}")


def skipper_of(column: BinlogColumn) -> Read:
    """What finds the end of values that nobody reads. Raises `DataError`."""
    code = column.type_code
    if code in _OLD_SIZES:
        size = _OLD_SIZES[code]
        return lambda data, at: (None, at + size)
    if code in (ENUM, SET):
        size = column.meta[1]
        return lambda data, at: (None, at + size)
    like = {140: BLOB, VARCHAR_COMPRESSED: VARCHAR, 242: BLOB, 245: BLOB}.get(code, code)
    return reader_of(replace(column, type_code=like, collation=BINARY_CHARSET), "binary")


def make_array(values: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
    """What readers gave as an array of the type that the column is read as; raises `DataError`."""
    try:
        if pa.types.is_decimal(kind):
            return pa.array(values, pa.string()).cast(kind)
        if pa.types.is_string(kind):
            # UTF-8 comes as bytes, and is checked by the cast; other character sets as texts.
            is_bytes = any(isinstance(value, bytes) for value in values)
            return pa.array(values, pa.binary()).cast(pa.string()) if is_bytes else pa.array(values, kind)
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            return pa.array(values, pa.int64()).cast(kind)
        if pa.types.is_date(kind):
            return pa.array(values, pa.int32()).cast(kind)
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise DataError(f"column {name!r} has a value in the binlog that is not a {kind}: {error}") from error


def _integer(size: int, *, is_unsigned: bool) -> Read:
    if size == 3:
        return lambda data, at: (int.from_bytes(data[at : at + 3], "little", signed=not is_unsigned), at + 3)
    code = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
    return _unpacked("<" + (code.upper() if is_unsigned else code), size)


def _unpacked(form: str, size: int) -> Read:
    unpack = struct.Struct(form).unpack_from
    return lambda data, at: (unpack(data, at)[0], at + size)


def _text(length_bytes: int, decode: Callable[[bytes], Any] | None, pad: int) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        begin = at + length_bytes
        end = begin + int.from_bytes(data[at:begin], "little")
        value: Any = data[begin:end]
        if pad:
            # Zeros at the end of a BINARY are not in the log.
            value = value.ljust(pad, b"\0")
        return (value if decode is None else decode(value)), end

    return read


def _decoder(column: BinlogColumn, charset: str) -> Callable[[bytes], str] | None:
    """None for bytes, and for what is UTF-8."""
    if column.collation == BINARY_CHARSET or column.type_code == GEOMETRY:
        return None
    if is_utf8(charset):
        return None
    decode = decoder_of(charset)
    if decode is None:
        raise DataError(f"column {column.name!r} has the character set {charset!r}, {UNREADABLE_CHARSET}")

    def read(value: bytes) -> str:
        try:
            return decode(value)
        except UnicodeDecodeError as error:
            raise DataError(f"column {column.name!r} has a text that is not {charset}: {error}") from error

    return read


def _choices(values: Sequence[str], size: int, *, is_set: bool) -> Read:
    @lru_cache(maxsize=4096)
    def text(number: int) -> str:
        if is_set:
            return ",".join(value for place, value in enumerate(values) if number >> place & 1)
        # 0 is what MySQL keeps of a value that the enum does not have.
        return values[number - 1] if number else ""

    return lambda data, at: (text(int.from_bytes(data[at : at + size], "little")), at + size)


def _decimal(precision: int, scale: int) -> Read:
    whole, whole_left = divmod(precision - scale, 9)
    parts, parts_left = divmod(scale, 9)
    # Nine digits in four bytes each; what is left at both ends has fewer.
    groups = [(_DIGIT_BYTES[whole_left], whole_left)] if whole_left else []
    groups += [(4, 9)] * (whole + parts)
    groups += [(_DIGIT_BYTES[parts_left], parts_left)] if parts_left else []
    size = sum(each for each, _ in groups)

    def read(data: bytes, at: int) -> tuple[str, int]:
        is_negative = not data[at] & 0x80
        raw = bytearray(data[at : at + size])
        raw[0] ^= 0x80
        if is_negative:
            raw = bytearray(byte ^ 0xFF for byte in raw)
        digits, place = "", 0
        for each, count in groups:
            digits += str(int.from_bytes(raw[place : place + each], "big")).zfill(count)
            place += each
        text = f"{digits[: len(digits) - scale] or '0'}.{digits[len(digits) - scale :]}" if scale else digits
        return f"-{text}" if is_negative else text, at + size

    return read


def _year(data: bytes, at: int) -> tuple[int, int]:
    return (data[at] + 1900 if data[at] else 0), at + 1


def _date(data: bytes, at: int) -> tuple[int | None, int]:
    packed = int.from_bytes(data[at : at + 3], "little")
    return _days(packed >> 9, packed >> 5 & 15, packed & 31), at + 3


@lru_cache(maxsize=4096)
def _days(year: int, month: int, day: int) -> int | None:
    """Since 1970; None for a date that is none, as `0000-00-00`."""
    if not month or not day:
        return None
    try:
        if not year:  # a leap year, which Python does not have
            return date(4, month, day).toordinal() - date(4, 1, 1).toordinal() + 1 - _YEAR_0_DAYS - _EPOCH_ORDINAL
        return date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError as error:
        raise DataError(f"the binlog has the date {year:04}-{month:02}-{day:02}: {error}") from error


def _fraction(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big") * (0, 10_000, 100, 1)[size]


def _datetime(fraction_bytes: int) -> Read:
    def read(data: bytes, at: int) -> tuple[int | None, int]:
        packed = int.from_bytes(data[at : at + 5], "big") - 0x8000000000
        end = at + 5 + fraction_bytes
        year, month = divmod(packed >> 22, 13)
        days = _days(year, month, packed >> 17 & 31)
        if days is None:
            return None, end
        seconds = ((packed >> 12 & 31) * 60 + (packed >> 6 & 63)) * 60 + (packed & 63)
        return days * _DAY_US + seconds * 1_000_000 + _fraction(data, at + 5, fraction_bytes), end

    return read


def _timestamp(fraction_bytes: int) -> Read:
    def read(data: bytes, at: int) -> tuple[int | None, int]:
        seconds = int.from_bytes(data[at : at + 4], "big")
        end = at + 4 + fraction_bytes
        fraction = _fraction(data, at + 4, fraction_bytes)
        # The second 0 is kept for a time that is none.
        return (seconds * 1_000_000 + fraction if seconds or fraction else None), end

    return read


def _time(fraction_bytes: int) -> Read:
    size = 3 + fraction_bytes
    shift = 8 * fraction_bytes
    unit = (0, 10_000, 100, 1)[fraction_bytes]

    def read(data: bytes, at: int) -> tuple[int, int]:
        packed = int.from_bytes(data[at : at + size], "big") - (0x800000 << shift)
        sign, packed = (-1, -packed) if packed < 0 else (1, packed)
        clock, fraction = packed >> shift, packed & ((1 << shift) - 1)
        seconds = ((clock >> 12 & 0x3FF) * 60 + (clock >> 6 & 63)) * 60 + (clock & 63)
        return sign * (seconds * 1_000_000 + fraction * unit), at + size

    return read
