"""Reads rows in YAML as the columns of a schema; mistakes are recorded where they are written."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from arroyo_core.pipeline.document import Scalar, YamlList, YamlMap, YamlValue, describe, shown
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.values import read_bool, read_duration_us, read_float, read_int, read_string
from arroyo_testing.cases.cells import Cell, Row, is_listlike, value_type
from arroyo_testing.cases.times import TIME_FORM, parse_time_ns

_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?")
_DAY_NS = 86_400 * 1_000_000_000


class _Unreadable:
    """Stands for a value for which a mistake is recorded."""


UNREADABLE: Final = _Unreadable()


def read_rows(
    rows: Sequence[YamlMap], schema: pa.Schema, *, node: str, mistakes: Mistakes, columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows, with `columns` of the schema in order, by default all; a column that is not written is null.

    Rows with a mistake are left out.
    """
    names = schema.names if columns is None else columns
    found = []
    for row in rows:
        cells = {}
        for entry in row.entries:
            if entry.key not in schema.names:
                mistakes.add_unknown(
                    f"{node!r} has no column {entry.key!r}", at=entry.key_at, name=entry.key, choices=schema.names
                )
                cells[entry.key] = UNREADABLE
                continue
            field = schema.field(entry.key)
            cells[entry.key] = _read_field(entry.value, field, f"{entry.key!r} of {node!r}", mistakes)
        for name in names:
            if name not in cells and not schema.field(name).nullable:
                mistakes.add(f"the row has no {name!r}, which is never null in {node!r}", at=row.at)
                cells[name] = UNREADABLE
        if not any(isinstance(cell, _Unreadable) for cell in cells.values()):
            found.append(tuple(cells.get(name) for name in names))
    return found


def read_cell(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    """One value of a type."""
    if isinstance(value, Scalar):
        if value.is_null:
            return None
        if value.is_unresolved:
            return UNREADABLE
    data_type = value_type(data_type)
    for is_kind, read in _READERS:
        if is_kind(data_type):
            return read(value, data_type, what, mistakes)
    mistakes.add(f"{what} has the type {data_type}, which a test cannot write", at=value.at)
    return UNREADABLE


def _read_field(value: YamlValue, field: pa.Field, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    cell = read_cell(value, field.type, what, mistakes)
    if cell is None and not field.nullable:
        mistakes.add(f"{what} is never null", at=value.at)
        return UNREADABLE
    return cell


def _or_unreadable(cell: Cell) -> Cell | _Unreadable:
    return UNREADABLE if cell is None else cell


def _read_null(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    mistakes.add(f"{what} is always null, not {describe(value)}", at=value.at, value=shown(value))
    return UNREADABLE


def _read_bool(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    return _or_unreadable(read_bool(value, what, mistakes))


def _read_int(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    bits, is_signed = data_type.bit_width, pt.is_signed_integer(data_type)
    least = -(2 ** (bits - 1)) if is_signed else 0
    greatest = 2 ** (bits - 1 if is_signed else bits) - 1
    return _or_unreadable(read_int(value, what, mistakes, least=least, greatest=greatest))


def _read_float(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    return _or_unreadable(read_float(value, what, mistakes, is_single=data_type.bit_width == 32))


def _read_decimal(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    form = f"a number of at most {data_type.precision} digits, {data_type.scale} of them after the point"
    try:
        # The text, not a float: 0.1 must be 0.1.
        number = Decimal(value.text) if isinstance(value, Scalar) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        mistakes.add(f"{what} must be {form}, not {describe(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    scaled = number.scaleb(data_type.scale)
    if scaled != scaled.to_integral_value() or len(str(abs(int(scaled)))) > data_type.precision:
        mistakes.add(f"{what} must be {form}, not {shown(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    return number


def _read_text(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    return _or_unreadable(read_string(value, what, mistakes))


def _read_bytes(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    """A text stands for its UTF-8; `{hex: ...}` and `{base64: ...}` for any bytes."""
    if isinstance(value, YamlMap) and len(value.entries) == 1 and value.entries[0].key in ("hex", "base64"):
        entry = value.entries[0]
        text = read_string(entry.value, what, mistakes)
        if text is None:
            return UNREADABLE
        try:
            data = bytes.fromhex(text) if entry.key == "hex" else base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            mistakes.add(f"{what} is not valid {entry.key}", at=entry.value.at, value=shown(entry.value))
            return UNREADABLE
    elif isinstance(value, Scalar) and isinstance(value.value, str):
        data = value.value.encode()
    else:
        mistakes.add(
            f"{what} must be a text, {{hex: ...}} or {{base64: ...}}, not {describe(value)}",
            at=value.at,
            value=shown(value),
        )
        return UNREADABLE
    if pt.is_fixed_size_binary(data_type) and len(data) != data_type.byte_width:
        mistakes.add(f"{what} must be {data_type.byte_width} bytes, not {len(data)}", at=value.at, value=shown(value))
        return UNREADABLE
    return data


def _read_timestamp(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    return _read_moment(value, _UNIT_NS[data_type.unit], str(data_type), what, mistakes)


def _read_date(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    days = _read_moment(value, _DAY_NS, "date", what, mistakes)
    if isinstance(days, _Unreadable) or pt.is_date32(data_type):
        return days
    return days * 86_400_000


def _read_moment(value: YamlValue, unit_ns: int, type_name: str, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    form = "a date such as 2026-03-01" if unit_ns == _DAY_NS else TIME_FORM
    text = value.value if isinstance(value, Scalar) else None
    try:
        time_ns = parse_time_ns(text) if isinstance(text, str) else None
    except ValueError:
        time_ns = None
    if time_ns is None:
        mistakes.add(f"{what} must be {form}, not {describe(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    if time_ns % unit_ns or not -(2**63) <= time_ns // unit_ns < 2**63:
        mistakes.add(f"{what} does not fit a {type_name}", at=value.at, value=shown(value))
        return UNREADABLE
    return time_ns // unit_ns


def _read_time(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    match = _CLOCK.fullmatch(value.text) if isinstance(value, Scalar) else None
    if match is None:
        mistakes.add(
            f"{what} must be a time of day such as 09:15:00, not {describe(value)}", at=value.at, value=shown(value)
        )
        return UNREADABLE
    hours, minutes, seconds, fraction = match.groups()
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    time_ns = whole * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
    unit_ns = _UNIT_NS[data_type.unit]
    if time_ns % unit_ns:
        mistakes.add(f"{what} does not fit a {data_type}", at=value.at, value=shown(value))
        return UNREADABLE
    return time_ns // unit_ns


def _read_duration(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    is_negative = isinstance(value, Scalar) and value.text.startswith("-")
    if isinstance(value, Scalar) and is_negative:
        value = Scalar(at=value.at, text=value.text[1:], written=value.written, is_plain=value.is_plain)
    duration_us = read_duration_us(value, what, mistakes)
    if duration_us is None:
        return UNREADABLE
    unit_ns = _UNIT_NS[data_type.unit]
    if duration_us * 1_000 % unit_ns:
        mistakes.add(f"{what} does not fit a {data_type}", at=value.at, value=shown(value))
        return UNREADABLE
    return (-1 if is_negative else 1) * duration_us * 1_000 // unit_ns


def _read_struct(value: YamlValue, data_type: pa.StructType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    if not isinstance(value, YamlMap):
        mistakes.add(f"{what} must be a mapping of fields, not {describe(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    names = [field.name for field in data_type]
    cells: dict[str, Cell | _Unreadable] = {}
    for entry in value.entries:
        if entry.key not in names:
            mistakes.add_unknown(f"{what} has no field {entry.key!r}", at=entry.key_at, name=entry.key, choices=names)
            cells[entry.key] = UNREADABLE
        else:
            cells[entry.key] = _read_field(
                entry.value, data_type.field(entry.key), f"{entry.key!r} of {what}", mistakes
            )
    if any(isinstance(cell, _Unreadable) for cell in cells.values()):
        return UNREADABLE
    return tuple(cells.get(name) for name in names)


def _read_list(value: YamlValue, data_type: pa.DataType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    if not isinstance(value, YamlList):
        mistakes.add(f"{what} must be a list, not {describe(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    cells = [read_cell(item, data_type.value_type, f"an item of {what}", mistakes) for item in value.items]
    if any(isinstance(cell, _Unreadable) for cell in cells):
        return UNREADABLE
    if pt.is_fixed_size_list(data_type) and len(cells) != data_type.list_size:
        mistakes.add(f"{what} must have {data_type.list_size} items, not {len(cells)}", at=value.at)
        return UNREADABLE
    return tuple(cells)


def _read_map(value: YamlValue, data_type: pa.MapType, what: str, mistakes: Mistakes) -> Cell | _Unreadable:
    if not isinstance(value, YamlMap):
        mistakes.add(f"{what} must be a mapping, not {describe(value)}", at=value.at, value=shown(value))
        return UNREADABLE
    pairs = []
    for entry in value.entries:
        key = Scalar(at=entry.key_at, text=entry.key, written=entry.key, is_plain=not pt.is_string(data_type.key_type))
        pairs.append(
            (
                read_cell(key, data_type.key_type, f"a key of {what}", mistakes),
                read_cell(entry.value, data_type.item_type, f"{entry.key!r} of {what}", mistakes),
            )
        )
    if any(isinstance(cell, _Unreadable) for pair in pairs for cell in pair):
        return UNREADABLE
    return tuple(pairs)


_Reader = Callable[[YamlValue, pa.DataType, str, Mistakes], Cell | _Unreadable]

_READERS: tuple[tuple[Callable[[pa.DataType], bool], _Reader], ...] = (
    (pt.is_null, _read_null),
    (pt.is_boolean, _read_bool),
    (pt.is_integer, _read_int),
    (pt.is_floating, _read_float),
    (pt.is_decimal, _read_decimal),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind), _read_text),
    (
        lambda kind: (
            pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind) or pt.is_binary_view(kind)
        ),
        _read_bytes,
    ),
    (pt.is_timestamp, _read_timestamp),
    (pt.is_date, _read_date),
    (pt.is_time, _read_time),
    (pt.is_duration, _read_duration),
    (pt.is_struct, _read_struct),
    (is_listlike, _read_list),
    (pt.is_map, _read_map),
)
