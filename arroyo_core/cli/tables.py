"""Rows as people and tools read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TextIO


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], file: TextIO | None = None) -> None:
    """A table with a heading, as wide as its values."""
    texts = [[str(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in texts)) if texts else len(name) for i, name in enumerate(columns)]
    for line in (columns, *texts):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip(), file=file)


def plain_value(value: object) -> object:
    """A value of a row as JSON and CSV can hold it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
