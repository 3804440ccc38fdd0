"""`BinStore`: partial aggregates by key and time bin; what came in this epoch in memory, the rest in a state table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.state import ExpiringTimeKeyView
from arroyo_std.aggregates.groups import Groups
from arroyo_std.windows.layout import WINDOW_START, WindowLayout
from arroyo_std.windows.times import Times, times_us

#: Unmerged rows in memory are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536
#: A bin of a table is written anew as one part when so many epochs have written parts of it.
MERGE_PARTS = 16
#: After all bins.
_NO_BIN_US = 2**62


class BinStore:
    """Adds, reads and expires partial aggregates.

    The table gets one row per key and bin and epoch in which there were rows for it: only change is written. A bin
    that many epochs have added to is merged, so that a key has a bounded number of rows in it.
    """

    def __init__(self, layout: WindowLayout, view: ExpiringTimeKeyView) -> None:
        self._layout = layout
        self._view = view
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._merged_rows = 0
        #: The earliest bin in memory.
        self._earliest_us = _NO_BIN_US
        self._cache: dict[int, pa.RecordBatch] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add partial aggregates of this epoch: rows of the layout's `state`."""
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._earliest_us = min(self._earliest_us, int(_starts(rows).min()))
        if self._pending_rows > 2 * self._merged_rows + MERGE_ROWS:
            self._merge_pending()

    def take_before(self, time_us: int) -> pa.RecordBatch | None:
        """Remove the bins that start before `time_us`, and return them merged, oldest first; None if there are none."""
        parts = self._view.take_parts_before(time_us)
        self._forget(time_us)
        fresh = self._take_pending_before(time_us)
        if fresh is not None:
            parts.append(fresh)
        return self._sort(self.merge(parts)) if parts else None

    def starts(self) -> list[int]:
        """The starts of all bins with rows, in order."""
        fresh = self._merge_pending()
        found = set(self._view.times())
        if fresh is not None:
            found.update(np.unique(_starts(fresh)).tolist())
        return sorted(found)

    def read(self, starts: Sequence[int]) -> list[pa.RecordBatch]:
        """The rows of some bins, in order; a key may have two rows in one bin."""
        parts = []
        fresh = self._merge_pending()
        for start in starts:
            if start not in self._cache:
                batches = self._view.get_batches(start)
                self._cache[start] = self.merge(batches) if batches else self._empty()
            if self._cache[start].num_rows:
                parts.append(self._cache[start])
        if fresh is not None:
            is_wanted = np.isin(_starts(fresh), starts)
            if is_wanted.any():
                parts.append(fresh.filter(pa.array(is_wanted)))
        return parts

    def drop_before(self, time_us: int) -> None:
        """Forget the bins that start before `time_us`."""
        self._view.take_parts_before(time_us)
        self._forget(time_us)
        self._take_pending_before(time_us)

    def flush(self, epoch: int) -> None:
        """Hand the epoch's rows to the table, for its checkpoint."""
        fresh = self._merge_pending()
        self._set_pending(None)
        self._cache.clear()
        if fresh is None:
            return
        if epoch % MERGE_PARTS == 0:
            fresh = self._absorb_parts(fresh)
        self._view.insert_batch(fresh)

    def merge(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One row per key and bin."""
        rows = _concat(parts)
        names = [*self._layout.keys, WINDOW_START]
        groups = Groups.of_columns([rows.column(name) for name in names], rows.num_rows)
        if groups.count == rows.num_rows:
            return rows
        first = pa.array(groups.first_rows())
        keys = [rows.column(name).take(first) for name in names]
        states = self._layout.plan.merge(self._layout.states_of(rows), groups)
        return pa.RecordBatch.from_arrays([*keys, *states], schema=self._layout.state.schema)

    def _absorb_parts(self, fresh: pa.RecordBatch) -> pa.RecordBatch:
        """With what the table has of bins that too many epochs have written to, which is taken out of it."""
        starts = np.unique(_starts(fresh))
        crowded = starts[self._view.count_parts(starts) >= MERGE_PARTS // 2]
        parts = self._view.expire_timestamps(crowded)
        return self.merge([fresh, *parts]) if parts else fresh

    def _merge_pending(self) -> pa.RecordBatch | None:
        if len(self._pending) > 1:
            self._set_pending(self.merge(self._pending))
        return self._pending[0] if self._pending else None

    def _take_pending_before(self, time_us: int) -> pa.RecordBatch | None:
        """Remove the bins in memory that start before `time_us`, and return them; None if there are none."""
        # Merging is work for nothing at the many watermarks at which nothing is due.
        fresh = self._merge_pending() if self._earliest_us < time_us else None
        if fresh is None:
            return None
        is_due = _starts(fresh) < time_us
        self._set_pending(fresh.filter(pa.array(~is_due)))
        return fresh.filter(pa.array(is_due))

    def _set_pending(self, rows: pa.RecordBatch | None) -> None:
        self._pending = [rows] if rows is not None and rows.num_rows else []
        self._pending_rows = self._merged_rows = sum(part.num_rows for part in self._pending)
        self._earliest_us = min((int(_starts(part).min()) for part in self._pending), default=_NO_BIN_US)

    def _forget(self, time_us: int) -> None:
        for start in [start for start in self._cache if start < time_us]:
            del self._cache[start]

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._layout.state.schema)

    def _sort(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        starts = _starts(rows)
        if bool((starts[:-1] <= starts[1:]).all()):
            return rows
        return rows.take(pa.array(np.argsort(starts, kind="stable")))


def _starts(rows: pa.RecordBatch) -> Times:
    return times_us(rows.column(WINDOW_START))


def _concat(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)
