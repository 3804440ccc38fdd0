"""Finds the bad lines of a block that does not parse as a whole, by halves.

Good blocks are parsed at once and cost nothing here; n lines with one bad one cost about
log2(n) parses of ever smaller parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_filesystem.formats.lines import Ends, line_ends


class BadTextError(Exception):
    """Text that does not parse; the message says why."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that does not parse: where it begins in its block, what it says, and why it is bad."""

    offset: int
    text: bytes
    error: str


@dataclass(slots=True)
class Parsed:
    """What a block yielded: batches of the good lines in order, and the bad lines."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BlockParser:
    """Parses blocks with `parse`, which raises `BadTextError` and yields one row for each line that is not blank."""

    parse: Callable[[bytes], pa.RecordBatch]
    quote_aware: bool
    #: Whether `parse` yields no row for an empty line.
    skips_blank: bool

    def block(self, data: bytes) -> Parsed:
        """All good lines and all bad lines of a block."""
        parsed = Parsed()
        ends = line_ends(data, quote_aware=self.quote_aware)
        self._part(data, ends, 0, len(ends), parsed)
        return parsed

    def _part(self, data: bytes, ends: Ends, first: int, last: int, parsed: Parsed) -> None:
        start = int(ends[first - 1]) if first else 0
        part = data[start : int(ends[last - 1])]
        try:
            batch = self.parse(part)
            self._check_rows(batch, part, ends[first:last] - start)
        except BadTextError as error:
            if last - first == 1:
                parsed.bad.append(BadLine(start, part.rstrip(b"\r\n"), str(error)))
                return
            middle = (first + last) // 2
            self._part(data, ends, first, middle, parsed)
            self._part(data, ends, middle, last, parsed)
            return
        if batch.num_rows:
            parsed.batches.append(batch)

    def _check_rows(self, batch: pa.RecordBatch, part: bytes, ends: Ends) -> None:
        """A parser that joins or splits lines would make the result depend on where blocks are cut."""
        expected = len(ends) - (_blank_lines(part, ends) if self.skips_blank else 0)
        if batch.num_rows == 0 and len(ends) == 1 and not part.strip():
            # White space alone: nothing to JSON, and no row came of it.
            return
        if batch.num_rows != expected:
            raise BadTextError(f"{batch.num_rows} records on {expected} line{'s' if expected != 1 else ''}")


def _blank_lines(part: bytes, ends: Ends) -> int:
    """Empty lines, by which parsers go without a word."""
    lengths = np.diff(ends, prepend=0)
    short = np.flatnonzero(lengths <= 2)
    if not len(short):
        return 0
    lengths = lengths[short]
    first = np.frombuffer(part, dtype=np.uint8)[ends[short] - lengths]
    return int(((lengths == 1) & (first == 10) | (lengths == 2) & (first == 13)).sum())
