"""Lines of CSV that cannot be rows, seen without parsing them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.text.salvage import Texts


class Delimited(Protocol):
    """What is between two values."""

    @property
    def delimiter(self) -> str: ...


def open_quote(unit: str) -> str:
    """The reason of a text that ends inside a quoted value."""
    return f"a quoted value does not end on its {unit}; where values contain line ends, set newlines_in_values: true"


def misshapen(texts: Texts, names: Sequence[str], dialect: Delimited, unit: str) -> dict[int, str]:
    """Texts that end inside a quoted value, or have another number of values, and why; not all such texts.

    A quote counts where a value begins. Texts with quoted values are not counted: they may contain anything.
    """
    delimiter = re.escape(dialect.delimiter)
    values = texts.array()
    has_quoted = np.zeros(len(texts), dtype=np.bool_)
    found: dict[int, str] = {}
    if b'"' in texts.data:
        begins = rf'(?:^|{delimiter})"'
        has_quoted = pc.match_substring_regex(values, begins).to_numpy(zero_copy_only=False)
    if has_quoted.any():
        plain, quoted = rf'(?:[^"{delimiter}\r\n][^{delimiter}\r\n]*)?', '"(?:[^"]|"")*"'
        is_open = rf'^(?:(?:{plain}|{quoted}){delimiter})*"(?:[^"]|"")*$'
        for index in _nonzero(pc.match_substring_regex(values, is_open)):
            found[index] = open_quote(unit)
    counts = pc.count_substring(values, dialect.delimiter).to_numpy() + 1
    for index in np.flatnonzero(~has_quoted & (counts != len(names))).tolist():
        found[index] = f"Expected {len(names)} columns, got {counts[index]}"
    return found


def not_one_row(texts: Texts, dialect: Delimited, unit: str) -> dict[int, str]:
    """Texts with line ends in quotes that Arrow would not take for one row, each by itself, and why.

    It would join one whose quotes it finds open with the next, and split one where a line end is not quoted: then
    what it is read with would decide whether it is bad. To Arrow a quote begins a value where a value begins, and is a
    mere character elsewhere. Lines come with as many quotes as are needed to close all, but for the last one of a file.
    """
    is_possible = _has_stray_quotes(texts.data, dialect.delimiter) if unit == "line" else b'"' in texts.data
    if not is_possible:
        return {}
    delimiter = re.escape(dialect.delimiter)
    after = rf'(?:[^"{delimiter}\r\n][^{delimiter}\r\n]*)?'
    value = rf'(?:"(?:[^"]|"")*")?{after}'
    one_row = pc.match_substring_regex(texts.array(), rf"^{value}(?:{delimiter}{value})*(?:\r?\n)?$")
    # Of others it is a return that makes two rows: the same whether their neighbours have stray quotes or not.
    found = (index for index in _nonzero(pc.invert(one_row)) if _has_stray_quotes(texts.text(index), dialect.delimiter))
    return dict.fromkeys(found, _STRAY_QUOTE)


_STRAY_QUOTE = (
    "a quote is not closed, or stands inside of a value that is not quoted, and a line end follows: write the value in "
    "quotes, and each quote in it twice"
)


def _has_stray_quotes(data: bytes, delimiter: str) -> bool:
    """Whether any quote that is to open a value stands elsewhere, or one is left open."""
    codes = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    if len(quotes) % 2:
        return True
    opening = quotes[::2]
    # Behind a quote it is the second half of one that is part of a value.
    before = codes[opening[opening > 0] - 1]
    return bool((~np.isin(before, np.frombuffer(delimiter.encode() + b'\n"', dtype=np.uint8))).any())


def _nonzero(mask: pa.Array) -> list[int]:
    indices: list[int] = pc.indices_nonzero(mask).to_pylist()
    return indices
