"""Which rows of two sides belong together: numbers for equal keys, and ranges of sorted rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_std import large_rows
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.joins.layout import Mask, Rows

#: Pairs of one output batch.
OUTPUT_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Ranges:
    """For row i of one side its matches: rows `first[i]` to `first[i] + count[i] - 1` of the other, which is sorted."""

    first: Rows
    count: Rows

    @property
    def has_match(self) -> Mask:
        return self.count > 0

    def chunks(self, limit: int = OUTPUT_ROWS) -> Iterator[tuple[Rows, Rows]]:
        """All pairs (row, match), at most `limit` at a time, so that a popular key does not fill the memory."""
        ends = np.cumsum(self.count)
        total = int(ends[-1]) if len(ends) else 0
        for done in range(0, total, limit):
            until = min(done + limit, total)
            start, last = int(np.searchsorted(ends, done, side="right")), int(np.searchsorted(ends, until, side="left"))
            first, count = self.first[start : last + 1].copy(), self.count[start : last + 1].copy()
            # The first row may have had some of its pairs before, the last may have more.
            sent = int(count[0] - (ends[start] - done))
            first[0] += sent
            count[0] -= sent
            count[-1] -= int(ends[last]) - until
            yield _expand(np.arange(start, last + 1), first, count)


def pairs_at_once(left: large_rows.Rows, right: large_rows.Rows) -> int:
    """How many pairs of such rows make a batch of moderate size."""
    width: int = sum(side.nbytes // max(1, side.num_rows) for side in (left, right))
    return max(1, min(OUTPUT_ROWS, large_rows.OUTPUT_BYTES // max(1, width)))


def shared_codes(left: Sequence[Any], right: Sequence[Any]) -> tuple[Codes, Codes]:
    """A number for each row of both sides: the same exactly where all columns are equal (NULL equals NULL here)."""
    rows = len(left[0])
    columns = [_joined(mine, theirs) for mine, theirs in zip(left, right, strict=True)]
    codes = Groups.of_columns(columns, rows + len(right[0])).codes
    return codes[:rows], codes[rows:]


def equal_ranges(codes: Codes, sorted_codes: Codes) -> Ranges:
    """For each of `codes` where it is in `sorted_codes`."""
    first = np.searchsorted(sorted_codes, codes, side="left")
    return Ranges(first, np.searchsorted(sorted_codes, codes, side="right") - first)


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Rows sorted by key and time; `order[i]` is the row at place i. Rows of one key and time keep their order."""

    order: Rows
    _places: Rows
    _times: Rows

    @classmethod
    def of_rows(cls, codes: Codes, times: Rows) -> TimeIndex:
        known, ranks = np.unique(times, return_inverse=True)
        # One number per key and time, in the order of both; a time after all others has a rank, too.
        numbers = codes * (len(known) + 1) + ranks
        order = np.argsort(numbers, kind="stable")
        return cls(order, numbers[order], known)

    def between(self, codes: Codes, first_us: Rows, last_us: Rows) -> Ranges:
        """For each key the places of its rows from `first_us` to `last_us`, both included."""
        base = codes * (len(self._times) + 1)
        first = np.searchsorted(self._places, base + np.searchsorted(self._times, first_us, side="left"))
        end = np.searchsorted(self._places, base + np.searchsorted(self._times, last_us, side="right"))
        return Ranges(first, np.maximum(end - first, 0))


def _expand(rows: Rows, first: Rows, count: Rows) -> tuple[Rows, Rows]:
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1])) - np.repeat(ends - count, count)
    return np.repeat(rows, count), np.repeat(first, count) + within


def _joined(left: Any, right: Any) -> Any:
    chunks = [
        chunk for each in (left, right) for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])
    ]
    return pa.concat_arrays(chunks) if len(chunks) == 2 else pa.chunked_array(chunks)
