"""Writes cells: as people read them in a table, and as YAML that `reading` reads back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt

from arroyo_core.pipeline.document import resolve_plain
from arroyo_testing.cases.cells import Cell, Row, as_stored, is_listlike, value_type
from arroyo_testing.cases.times import format_time_ns

_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
#: What needs no quotes anywhere, flow mappings included.
_PLAIN = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+ -]*(?<! )")


def cell_text(cell: Cell, data_type: pa.DataType) -> str:
    """A cell of a table: texts without quotes, null as `null`."""
    data_type = value_type(data_type)
    if isinstance(cell, str) and not (pt.is_temporal(data_type)):
        return cell.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t") or '""'
    return cell_yaml(cell, data_type)


def cell_yaml(cell: Cell, data_type: pa.DataType) -> str:
    """A cell in flow style, on one line."""
    data_type = value_type(data_type)
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if pt.is_struct(data_type):
        pairs = zip((field.name for field in data_type), cell, (field.type for field in data_type), strict=True)
        return "{" + ", ".join(f"{text_yaml(name)}: {cell_yaml(part, kind)}" for name, part, kind in pairs) + "}"
    if pt.is_map(data_type):
        pairs_text = (f"{_map_key(k, data_type.key_type)}: {cell_yaml(v, data_type.item_type)}" for k, v in cell)
        return "{" + ", ".join(pairs_text) + "}"
    if is_listlike(data_type):
        return "[" + ", ".join(cell_yaml(part, data_type.value_type) for part in cell) + "]"
    if pt.is_temporal(data_type):
        return _temporal_text(cell, data_type)
    if isinstance(cell, bytes):
        return _bytes_yaml(cell)
    if isinstance(cell, float):
        return _float_yaml(cell, data_type)
    if isinstance(cell, Decimal):
        return format(cell, "f")
    return str(cell) if isinstance(cell, int) else text_yaml(str(cell))


def row_yaml(row: Row, names: Sequence[str], types: Sequence[pa.DataType]) -> str:
    """A row in flow style."""
    pairs = zip(names, row, types, strict=True)
    return "{" + ", ".join(f"{text_yaml(name)}: {cell_yaml(cell, kind)}" for name, cell, kind in pairs) + "}"


def text_yaml(text: str) -> str:
    """A text, in quotes where it would not be one without."""
    if _PLAIN.fullmatch(text) and isinstance(resolve_plain(text), str):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = re.sub(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff]", _escape, escaped)
    # A dollar sign begins the name of a variable.
    return '"' + escaped.replace("$", "$$") + '"'


def _map_key(cell: Cell, data_type: pa.DataType) -> str:
    return text_yaml(cell) if isinstance(cell, str) else cell_yaml(cell, data_type)


def _escape(match: re.Match[str]) -> str:
    letter = match.group()
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter, f"\\u{ord(letter):04x}")


def _bytes_yaml(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "{hex: " + f'"{data.hex()}"' + "}"
    if text.isprintable():
        return text_yaml(text)
    return "{hex: " + f'"{data.hex()}"' + "}"


def _float_yaml(number: float, data_type: pa.DataType) -> str:
    """The fewest digits that are read as the same number of its type."""
    if number != number:
        return ".nan"
    if number in (float("inf"), float("-inf")):
        return ".inf" if number > 0 else "-.inf"
    return repr(float(str(as_stored(number, data_type))))


def _temporal_text(cell: int, data_type: pa.DataType) -> str:
    if pt.is_date32(data_type):
        return format_time_ns(cell * 86_400_000_000_000)[:10]
    if pt.is_date64(data_type):
        return format_time_ns(cell * 1_000_000)[:10]
    unit_ns = _UNIT_NS[data_type.unit]
    if pt.is_timestamp(data_type):
        return format_time_ns(cell * unit_ns, has_zone=data_type.tz is not None)
    if pt.is_time(data_type):
        return '"' + format_time_ns(cell * unit_ns, has_zone=False)[11:] + '"'
    return f"{cell}{data_type.unit}" if data_type.unit != "ns" else f"{cell / 1000:g}us"
