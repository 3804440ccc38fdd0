"""Rows as people and tools read them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TextIO

from arroyo_core.api.visible import visible
from arroyo_core.cli.terminal import is_terminal, open_console

#: rich looks at every cell several times: above, a table is as plain as in a pipe.
_MAX_STYLED_ROWS = 1_000


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    file: TextIO | None = None,
    *,
    right: Collection[str] = (),
) -> None:
    """A table with a heading, as wide as its values; the columns `right` end at the right.

    On a terminal the heading is bold, and cells are folded where the table is too wide. Elsewhere a row is a line.
    What a terminal would obey, and line ends, are written out.
    """
    out = file or sys.stdout
    # The columns of a table may be those of a file.
    right = {visible(name, is_one_line=True) for name in right}
    columns = [visible(name, is_one_line=True) for name in columns]
    texts = [[visible(str(value), is_one_line=True) for value in row] for row in rows]
    if is_terminal(out) and len(texts) <= _MAX_STYLED_ROWS:
        _print_styled(columns, texts, out, right)
        return
    for line in align([columns, *texts], right=[place for place, name in enumerate(columns) if name in right]):
        print(line, file=out)


def align(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """A line for each row, with cells below each other; a row may have less cells than others."""
    widths: dict[int, int] = {}
    for row in rows:
        for place, text in enumerate(row):
            widths[place] = max(widths.get(place, 0), len(text))
    return [
        "  ".join(
            text.rjust(widths[place]) if place in right else text.ljust(widths[place]) for place, text in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def plain_value(value: object) -> object:
    """A value of a row as JSON and CSV can hold it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _print_styled(columns: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO, right: Collection[str]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    open_console(out).print(table)
