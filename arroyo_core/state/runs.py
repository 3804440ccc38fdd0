"""Sorted runs in memory: lookups of whole batches of keys by binary search over key hashes.

A run is immutable; rows that arrive are gathered and become a run when someone looks. Several runs
of similar size are merged, so that there are few of them and every row moves a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.state.chunks import combine, take_column, take_in_parts, take_rows
from arroyo_core.state.config import GENERATION_COLUMN, KEY_HASH_COLUMN, OPERATION_COLUMN, UNTIL_COLUMN
from arroyo_core.state.files import Hashes, key_hashes
from arroyo_core.state.keys import Mask, Rows, equal_rows
from arroyo_core.state.messages import OperationCode
from arroyo_core.state.rows import RowFormat, expand_ranges, operations

#: Rows that arrived are made a run at this number even if nobody looks.
GATHER_ROWS = 1_000_000

#: So many runs of similar size are merged at once. Looking into a run is cheap, and copying its rows is not.
MERGED_RUNS = 4


@dataclass(frozen=True, slots=True)
class Run:
    """Rows sorted by key hash, in one chunk, or in large ones; rows before `live_from_us` do not count.

    `rows` has the user's columns, and those of deletes only where there are any.
    """

    rows: pa.Table = field(repr=False)
    hashes: Hashes = field(repr=False)
    has_deletes: bool
    live_from_us: int | None = None

    @classmethod
    def of_sorted(cls, rows: pa.Table, live_from_us: int | None = None) -> Run:
        """A run of rows as a file holds them; without an `_operation` column all are inserts."""
        single = combine(rows)
        has_deletes = OPERATION_COLUMN in single.column_names and bool(
            (operations(single) != OperationCode.INSERT).any()
        )
        unneeded = {GENERATION_COLUMN, KEY_HASH_COLUMN, *(() if has_deletes else (OPERATION_COLUMN, UNTIL_COLUMN))}
        lean = single.select([name for name in single.column_names if name not in unneeded])
        return cls(lean, key_hashes(single), has_deletes, live_from_us)

    def all_rows(self, row_format: RowFormat) -> pa.Table:
        """Every row with the columns that state adds."""
        return _widen(row_format, self.rows, self.hashes, self.has_deletes)

    def take(self, row_format: RowFormat, rows: Rows) -> pa.Table:
        """Some rows, with the columns that state adds."""
        return _widen(row_format, self.take_lean(rows), self.hashes[rows], self.has_deletes)

    def take_lean(self, rows: Rows) -> pa.Table:
        """Some rows, as the run has them."""
        if _is_most(rows, self.rows.num_rows):
            # A hot key has them one after the other: nothing is copied, and little else is held with them.
            return self.rows.slice(int(rows[0]), len(rows))
        return take_in_parts(self.rows, rows) if self._is_large else take_rows(self.rows, rows)

    def _take_columns(self, names: Sequence[str], rows: Rows) -> list[Any]:
        if self._is_large:
            return list(take_in_parts(self.rows.select(names), rows).columns)
        return [take_column(self.rows.column(name), rows) for name in names]

    @property
    def _is_large(self) -> bool:
        """Whether the rows are in several chunks, which Arrow would join at every look at them."""
        return any(column.num_chunks > 1 for column in self.rows.columns)

    def find(self, key_columns: tuple[str, ...], keys: pa.RecordBatch, hashes: Hashes) -> tuple[Rows, Rows]:
        """Pairs of (row of `keys`, row of the run) with equal keys, by row of `keys`, then in the run's order.

        Fastest when `hashes` are sorted: neighbours are then found near each other.
        """
        if len(self.hashes) == 0 or len(hashes) == 0:
            return _NONE, _NONE
        last = len(self.hashes) - 1
        first = np.searchsorted(self.hashes, hashes, side="left")
        queries = np.flatnonzero((self.hashes[np.minimum(first, last)] == hashes) & (first <= last))
        if len(queries) == 0:
            return _NONE, _NONE
        first = first[queries]
        following = np.minimum(first + 1, last)
        # Most hashes are unique: only where one is not does its end have to be searched for.
        if ((self.hashes[following] == hashes[queries]) & (following > first)).any():
            count = np.searchsorted(self.hashes, hashes[queries], side="right") - first
            wanted, found = np.repeat(queries, count), expand_ranges(first, count)
        else:
            wanted, found = queries, first
        if not key_columns:
            return wanted, found
        same = equal_rows(
            self._take_columns(key_columns, found), [take_column(keys.column(name), wanted) for name in key_columns]
        )
        return (wanted, found) if same.all() else (wanted[same], found[same])


_NONE: Rows = np.empty(0, dtype=np.int64)


def _is_most(rows: Rows, total: int) -> bool:
    """Whether these are consecutive rows, and at least half of all."""
    if len(rows) == 0 or 2 * len(rows) < total or int(rows[-1] - rows[0]) != len(rows) - 1:
        return False
    return bool((rows[1:] > rows[:-1]).all())


def _widen(row_format: RowFormat, rows: pa.Table, hashes: Hashes, has_deletes: bool) -> pa.Table:
    count = rows.num_rows
    columns = list(rows.columns[: len(row_format.schema.names)])
    codes = rows.column(OPERATION_COLUMN) if has_deletes else pa.array(np.zeros(count, dtype=np.uint8))
    until = rows.column(UNTIL_COLUMN) if has_deletes else pa.nulls(count, pa.int64())
    return pa.Table.from_arrays([*columns, pa.array(hashes), codes, until], schema=row_format.memory_schema)


class RunSet:
    """The rows of one table in one subtask, oldest run first.

    Runs that no checkpoint has yet are merged only with each other: they are the change that the next one writes.
    `choose` says of rows, oldest first, which make a run, by key hash: it may leave out rows that later ones make
    void. It is given whether the oldest run is among them.
    """

    def __init__(self, row_format: RowFormat, choose: Callable[[pa.Table, bool], Rows]) -> None:
        self._format = row_format
        self._choose = choose
        self._runs: list[Run] = []
        #: How many of the runs, the oldest ones, the last checkpoint has.
        self._stored = 0
        self._is_stored_merged = True
        self._gathered: list[pa.Table] = []
        self._gathered_rows = 0

    def restore(self, run: Run) -> None:
        """Add a run newer than all before it; only before anything is appended."""
        if len(run.hashes):
            self._runs.append(run)
            self._stored += 1

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
            gathered, self._gathered, self._gathered_rows = self._gathered, [], 0
            self._merge_stored()
            self._runs += self._settled(gathered, not self._runs, None)
            self._merge()
        return self._runs

    def changed(self) -> list[Run]:
        """The runs of what was appended since the last checkpoint, oldest first."""
        return self.runs()[self._stored :]

    def handle_checkpointed(self) -> None:
        """All that was appended is stored: what comes now is another change."""
        self._stored = len(self._runs)
        self._is_stored_merged = False

    def replace(self, runs: list[Run]) -> None:
        """Let other runs stand for all of the set, which is stored."""
        self._gathered, self._gathered_rows = [], 0
        self._runs = [run for run in runs if len(run.hashes)]
        self._stored = len(self._runs)

    def num_rows(self) -> int:
        return sum(len(run.hashes) for run in self._runs) + self._gathered_rows

    def _merge_stored(self) -> None:
        """When more comes after a checkpoint, not with it: most views end there."""
        if not self._is_stored_merged:
            self._stored = 0
            self._merge()
            self._stored = len(self._runs)
            self._is_stored_merged = True

    def _merge(self) -> None:
        while (count := self._similar()) >= MERGED_RUNS:
            live_from_us = self._runs[-1].live_from_us
            merged = [run.all_rows(self._format) for run in self._runs[-count:]]
            # Nothing else may hold what is merged, so that each of its columns can go as soon as it is copied.
            del self._runs[-count:]
            self._runs += self._settled(merged, not self._runs, live_from_us)

    def _settled(self, tables: list[pa.Table], is_oldest: bool, live_from_us: int | None) -> list[Run]:
        """A run of the rows that count, if there are any; `tables`, oldest first, is used up."""
        rows = pa.concat_tables(tables)
        tables.clear()
        chosen = self._choose(rows, is_oldest)
        if len(chosen) == 0:
            return []
        schema, columns = rows.schema, rows.columns
        del rows
        taken = []
        while columns:
            # Popped within the call: no name here keeps the column once it is copied.
            taken.append(take_column(columns.pop(0), chosen))
        return [Run.of_sorted(pa.table(taken, schema=schema), live_from_us)]

    def _similar(self) -> int:
        """How many of the newest runs are of the size of the newest, about, and were cut at the same time."""
        changed = self._runs[self._stored :]
        together = takewhile(lambda run: run.live_from_us == changed[-1].live_from_us, reversed(changed))
        return count_similar([len(run.hashes) for run in together])


def count_similar(sizes: Sequence[int]) -> int:
    """How many of these sizes, from the first on, are about as large as the first; a run that is merged is larger."""
    return sum(1 for _ in takewhile(lambda size: size < MERGED_RUNS * sizes[0], sizes))


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
