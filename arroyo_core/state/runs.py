"""Sorted runs in memory: lookups of whole batches of keys by binary search over key hashes.

A run is immutable; rows that arrive are gathered and become a run when someone looks. Runs
of similar size are merged, so that there are few of them and every row moves a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_core.state.files import Hashes, key_hashes, sort_by_key_hash
from arroyo_core.state.keys import Mask, Rows, equal_rows
from arroyo_core.state.rows import RowFormat, expand_ranges

#: Rows that arrived are made a run at this number even if nobody looks.
GATHER_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """Rows sorted by key hash, in one chunk; rows before `live_from_us` do not count."""

    rows: pa.Table = field(repr=False)
    hashes: Hashes = field(repr=False)
    live_from_us: int | None = None

    @classmethod
    def of_sorted(cls, rows: pa.Table, live_from_us: int | None = None) -> Run:
        single = rows.combine_chunks() if any(column.num_chunks > 1 for column in rows.columns) else rows
        return cls(single, key_hashes(single), live_from_us)

    def find(self, key_columns: tuple[str, ...], keys: pa.RecordBatch, hashes: Hashes) -> tuple[Rows, Rows]:
        """Pairs of (row of `keys`, row of the run) with equal keys, by row of `keys`, then in the run's order."""
        if len(self.hashes) == 0 or len(hashes) == 0:
            return _NONE, _NONE
        first = np.searchsorted(self.hashes, hashes, side="left")
        # Most hashes are absent or unique: a second search over everything would be mostly wasted.
        hit = self.hashes[np.minimum(first, len(self.hashes) - 1)] == hashes
        queries = np.flatnonzero(hit & (first < len(self.hashes)))
        if len(queries) == 0:
            return _NONE, _NONE
        first = first[queries]
        count = np.searchsorted(self.hashes, hashes[queries], side="right") - first
        wanted, found = np.repeat(queries, count), expand_ranges(first, count)
        if not key_columns:
            return wanted, found
        mine, theirs = pa.array(found), pa.array(wanted)
        same = equal_rows(
            [self.rows.column(name).take(mine) for name in key_columns],
            [keys.column(name).take(theirs) for name in key_columns],
        )
        return (wanted, found) if same.all() else (wanted[same], found[same])


_NONE: Rows = np.empty(0, dtype=np.int64)


class RunSet:
    """The rows of one table in one subtask, oldest run first.

    `simplify` is applied when runs are merged: it may drop rows that later rows of the same
    set make void. It is given whether the merge includes the oldest run.
    """

    def __init__(self, row_format: RowFormat, simplify: Callable[[pa.Table, bool], pa.Table]) -> None:
        self._format = row_format
        self._simplify = simplify
        self._runs: list[Run] = []
        self._gathered: list[pa.Table] = []
        self._gathered_rows = 0

    def restore(self, run: Run) -> None:
        """Add a run newer than all before it; only before anything is appended."""
        if len(run.hashes):
            self._runs.append(run)

    def append(self, rows: pa.Table) -> None:
        """Add encoded rows, newer than all before."""
        if rows.num_rows == 0:
            return
        self._gathered.append(rows)
        self._gathered_rows += rows.num_rows
        if self._gathered_rows >= GATHER_ROWS:
            self.runs()

    def runs(self) -> list[Run]:
        """All runs, oldest first, with everything appended so far."""
        if self._gathered:
            rows = pa.concat_tables(self._gathered)
            self._gathered, self._gathered_rows = [], 0
            self._runs.append(Run.of_sorted(self._simplify(sort_by_key_hash(rows), not self._runs)))
            self._merge()
        return self._runs

    def replace(self, runs: list[Run]) -> None:
        """Let other runs stand for all of the set."""
        self._gathered, self._gathered_rows = [], 0
        self._runs = [run for run in runs if len(run.hashes)]

    def num_rows(self) -> int:
        return sum(len(run.hashes) for run in self._runs) + self._gathered_rows

    def _merge(self) -> None:
        while len(self._runs) > 1:
            older, newer = self._runs[-2], self._runs[-1]
            if len(older.hashes) > 2 * len(newer.hashes) or older.live_from_us != newer.live_from_us:
                return
            rows = pa.concat_tables([older.rows, newer.rows])
            merged = self._simplify(sort_by_key_hash(rows), len(self._runs) == 2)
            self._runs[-2:] = [Run.of_sorted(merged, older.live_from_us)] if merged.num_rows else []


def is_live(row_format: RowFormat, rows: pa.Table, cutoff_us: int | None) -> Mask:
    """Which rows are not past retention; all are for a table without event time."""
    if cutoff_us is None or row_format.schema.timestamp_column is None:
        return np.ones(rows.num_rows, dtype=np.bool_)
    return row_format.times_us(rows) >= cutoff_us


def later(first_us: int | None, second_us: int | None) -> int | None:
    """The later of two cutoffs; None is no cutoff."""
    if first_us is None or second_us is None:
        return first_us if second_us is None else second_us
    return max(first_us, second_us)
