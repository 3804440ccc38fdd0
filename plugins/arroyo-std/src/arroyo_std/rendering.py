"""Rows as text, for people and for pipes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pyarrow as pa

from arroyo_core.api.visible import visible

_ELLIPSIS = "…"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Format(StrEnum):
    """How rows are written."""

    JSON = "json"
    CSV = "csv"
    TABLE = "table"


def render_json(rows: pa.Table) -> str:
    """One JSON object per line; what a terminal would obey is escaped."""
    names = rows.column_names
    columns = [_plain_values(column) for column in rows.columns]
    return "".join(
        visible(_JSON.encode(dict(zip(names, row, strict=True)))) + "\n" for row in zip(*columns, strict=True)
    )


def render_csv(rows: pa.Table, *, has_header: bool) -> str:
    """Comma-separated values; NULL is empty, nested values are JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if has_header:
        writer.writerow(rows.column_names)
    writer.writerows([_cell(value) for value in row.values()] for row in rows.to_pylist())
    return text.getvalue()


def render_table(rows: pa.Table, *, max_cell_width: int) -> str:
    """Aligned columns under their names; numbers to the right. Cells are cut at `max_cell_width`, unless it is 0.

    What a terminal would obey is written out.
    """
    names = [visible(name, is_one_line=True) for name in rows.column_names]
    cells = [[_cut(_shown(value), max_cell_width) for value in column.to_pylist()] for column in rows.columns]
    is_number = [pa.types.is_integer(each.type) or pa.types.is_floating(each.type) for each in rows.schema]
    widths = [max(map(len, [name, *column])) for name, column in zip(names, cells, strict=True)]
    lines = [
        _line(names, widths, [False] * len(widths)),
        "-+-".join("-" * width for width in widths),
        *(_line(row, widths, is_number) for row in zip(*cells, strict=True)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _line(row: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(row, widths, is_right, strict=True)
    ]
    return " | ".join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    return text if not width or len(text) <= width else text[: width - 1] + _ELLIPSIS


def _shown(value: Any) -> str:
    return "NULL" if value is None else visible(" ".join(_cell(value).split("\n")), is_one_line=True)


def _cell(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """As JSON can hold them; most columns are plain already."""
    kind = column.type
    if kind == pa.timestamp("us", "UTC"):
        # Arrow takes ten times as long for moments that know their time zone.
        moments = column.cast(pa.timestamp("us")).to_pylist()
        return [None if moment is None else f"{moment.isoformat()}Z" for moment in moments]
    values: list[Any] = column.to_pylist()
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)
    return values if is_plain else [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: moments in ISO form, bytes in hex, exact numbers and NaN as text."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Decimal():
            return str(value)
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return str(value)
