"""`BinStore`: partial aggregates by key and time bin; what came in this epoch in memory, the rest in a state table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import ExpiringTimeKeyState
from arroyo_std.aggregates.groups import Groups
from arroyo_std.large_rows import merge_groups, merge_parts
from arroyo_std.windows.layout import WINDOW_START, WindowLayout
from arroyo_std.windows.times import Times, is_ascending, times_us

#: Rows in memory are merged when so much is new, and as much again as what was merged before: some states
#: hold many values, and each merge looks at all of them.
MERGE_BYTES = 4 * 2**20
_BEFORE_ALL_US, _AFTER_ALL_US = -(2**63), 2**63 - 1
#: A bin of a table is written again as one part when so many epochs have written parts of it.
MERGE_PARTS = 16


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in the order of their bins, so that those of some bins are a slice."""

    rows: pa.RecordBatch
    starts: Times

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> _Run:
        starts = _starts(rows)
        if is_ascending(starts):
            return cls(rows, starts)
        order = np.argsort(starts, kind="stable")
        return cls(rows.take(pa.array(order)), starts[order])

    def between(self, start_us: int, stop_us: int) -> _Run:
        """The bins that start at `start_us` or later, and before `stop_us`."""
        first, last = np.searchsorted(self.starts, [start_us, stop_us]).tolist()
        return _Run(self.rows.slice(first, last - first), self.starts[first:last])

    def bins(self) -> list[int]:
        """The start of each bin once, in order."""
        is_first = np.ones(len(self.starts), dtype=np.bool_)
        np.not_equal(self.starts[1:], self.starts[:-1], out=is_first[1:])
        found: list[int] = self.starts[is_first].tolist()
        return found


class BinStore:
    """Adds, reads and expires partial aggregates.

    The table gets one row per key and bin and epoch in which there were rows for it: only change is written. A bin
    that many epochs have added to is merged, so that a key has a bounded number of rows in it.
    """

    def __init__(self, layout: WindowLayout, view: ExpiringTimeKeyState) -> None:
        self._layout = layout
        self._view = view
        self._group_columns = [*layout.keys, WINDOW_START]
        self._pending: list[_Run] = []
        self._pending_bytes = 0
        self._merged_bytes = 0
        self._cache: dict[int, list[pa.RecordBatch]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add partial aggregates of this epoch: rows of the layout's `state`."""
        self._pending.append(_Run.of(rows))
        self._pending_bytes += rows.nbytes
        if self._pending_bytes > 2 * self._merged_bytes + MERGE_BYTES:
            self._merge_pending()

    def take_before(self, time_us: int) -> Iterator[pa.RecordBatch]:
        """Remove the bins that start before `time_us`, and return them merged: oldest first, unless they are large."""
        parts = [*self._view.take_parts_before(time_us), *self._take_pending_before(time_us)]
        self._forget(time_us)
        for rows in self.merge_all(parts):
            yield _Run.of(rows).rows

    def starts(self) -> list[int]:
        """The starts of all bins with rows, in order."""
        return sorted({*self._view.times(), *(start for run in self._pending for start in run.bins())})

    def read(self, starts: Sequence[int]) -> list[pa.RecordBatch]:
        """The rows of some bins, by their starts in order; a key may have several rows in one bin."""
        parts = self._read_table(starts)
        for run in self._pending:
            found = run.between(starts[0], starts[-1] + 1)
            is_wanted = np.isin(found.starts, starts)
            parts.append(found.rows if is_wanted.all() else found.rows.filter(pa.array(is_wanted)))
        return [part for part in parts if part.num_rows]

    def drop_before(self, time_us: int) -> None:
        """Forget the bins that start before `time_us`."""
        self._view.take_parts_before(time_us)
        self._take_pending_before(time_us)
        self._forget(time_us)

    def flush(self, epoch: int) -> None:
        """Hand the epoch's rows to the table, for its checkpoint."""
        self._merge_pending()
        fresh = [run.rows for run in self._pending]
        self._set_pending([])
        self._cache.clear()
        if epoch % MERGE_PARTS == 0 and fresh:
            fresh = self._absorb_parts(fresh)
        for rows in fresh:
            self._view.insert_batch(rows)

    def merge(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One row for each key and bin; raises `DataError` if a batch cannot hold them."""
        return merge_parts(parts, self._merge_rows)

    def merge_keys(self, parts: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per key, whatever its bins, in as few batches as can hold them."""
        keys = self._layout.keys
        return merge_groups(parts, keys, lambda rows: self._merge_rows(rows, keys))

    def merge_all(self, parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """One row for each key and bin, in as few batches as can hold them; none for none."""
        return list(merge_groups(parts, self._group_columns, self._merge_rows))

    def _merge_rows(self, rows: pa.RecordBatch, names: Sequence[str] | None = None) -> pa.RecordBatch:
        names = self._group_columns if names is None else names
        groups = Groups.of_columns([rows.column(name) for name in names], rows.num_rows)
        if groups.count == rows.num_rows:
            return rows
        first = pa.array(groups.first_rows())
        keys = [rows.column(name).take(first) for name in self._group_columns]
        states = self._layout.plan.merge(self._layout.states_of(rows), groups)
        return pa.RecordBatch.from_arrays([*keys, *states], schema=self._layout.state.schema)

    def _absorb_parts(self, fresh: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """With what the table has of bins that too many epochs have written to, which is taken out of it."""
        starts = np.unique(np.concatenate([_starts(rows) for rows in fresh]))
        crowded = starts[self._view.count_parts(starts) >= MERGE_PARTS // 2]
        parts = self._view.expire_timestamps(crowded)
        return self.merge_all([*parts, *fresh]) if parts else fresh

    def _merge_pending(self) -> None:
        if len(self._pending) > 1:
            self._set_pending([_Run.of(rows) for rows in self.merge_all([run.rows for run in self._pending])])
            self._merged_bytes = self._pending_bytes

    def _take_pending_before(self, time_us: int) -> list[pa.RecordBatch]:
        """Remove the bins in memory that start before `time_us`, and return their rows."""
        due = [run for run in self._pending if run.starts[0] < time_us]
        if not due:
            return []
        self._set_pending([run.between(time_us, _AFTER_ALL_US) for run in self._pending])
        return [run.between(_BEFORE_ALL_US, time_us).rows for run in due]

    def _set_pending(self, runs: Sequence[_Run]) -> None:
        self._pending = [run for run in runs if run.rows.num_rows]
        self._pending_bytes = sum(run.rows.nbytes for run in self._pending)
        self._merged_bytes = min(self._merged_bytes, self._pending_bytes)

    def _read_table(self, starts: Sequence[int]) -> list[pa.RecordBatch]:
        for start in starts:
            if start not in self._cache:
                self._cache[start] = self.merge_all(self._view.get_batches(start))
        return [rows for start in starts for rows in self._cache[start]]

    def _forget(self, time_us: int) -> None:
        for start in [start for start in self._cache if start < time_us]:
            del self._cache[start]


def _starts(rows: pa.RecordBatch) -> Times:
    return times_us(rows.column(WINDOW_START))
