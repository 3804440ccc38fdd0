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


def _nonzero(mask: pa.Array) -> list[int]:
    indices: list[int] = pc.indices_nonzero(mask).to_pylist()
    return indices
