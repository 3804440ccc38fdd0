"""`KeyedTable`: the rows of one side of a join in a state table, found by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_core.api import DeleteKey, DeleteTimeKey, Matches, OperatorContext
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.joins.layout import Mask, Rows, Side
from arroyo_std.joins.pairs import Ranges, TimeIndex
from arroyo_std.windows.times import times_us


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """The keys of some rows, each once: row i has key number `codes[i]`."""

    codes: Codes
    columns: Sequence[pa.Array] = field(repr=False)
    count: int

    @classmethod
    def of_rows(cls, columns: Sequence[pa.Array], rows: int) -> DistinctKeys:
        groups = Groups.of_columns(columns, rows)
        first = pa.array(groups.first_rows())
        return cls(groups.codes, [column.take(first) for column in columns], groups.count)


@dataclass(frozen=True, slots=True)
class Found:
    """All rows of a table that have one of some distinct keys: ordered by key, then as they were inserted."""

    batch: pa.RecordBatch = field(repr=False)
    #: The number of each row's key, ascending.
    codes: Codes
    #: The event time of each row; zeros where the side has none.
    times: Rows
    #: The rows of key i are `starts[i]` to `starts[i + 1] - 1`.
    starts: Rows

    def counts(self) -> Rows:
        """How many rows each key has."""
        return np.diff(self.starts)

    def ranges(self, codes: Codes) -> Ranges:
        """The rows of each of these keys."""
        return Ranges(self.starts[codes], self.counts()[codes])

    def by_time(self) -> TimeIndex:
        return TimeIndex.of_rows(self.codes, self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Rows of `after`, those that are kept, take the place of the changed rows that were found, row by row."""

    found: Found
    is_changed: Mask
    is_kept: Mask
    after: pa.RecordBatch = field(repr=False)

    @property
    def rows(self) -> int:
        return len(self.is_changed)


class KeyedTable:
    """A view by key of table `left` or `right`, whose key columns are those its input is routed by."""

    def __init__(self, side: Side, ctx: OperatorContext) -> None:
        self._side = side
        self._view = ctx.table_manager.get_key_time_table(side.name)

    def insert(self, rows: pa.RecordBatch) -> None:
        self._view.insert(rows)

    def expire(self, watermark_us: int, retention_us: int) -> None:
        self._view.expire(watermark_us, retention_us)

    def all_rows(self) -> Sequence[pa.RecordBatch]:
        """Every row, in no particular order, in batches that can hold them."""
        return self._view.get_all_parts()

    def find_parts(self, keys: DistinctKeys) -> Sequence[Found]:
        """The rows of each key, one after the other in parts: keys may have more rows than one batch can hold.

        The columns of the keys are those of any side, in the order of `on`.
        """
        return [self._found(matches, keys) for matches in self._view.lookup_parts(self._queries(keys))]

    def times(self, rows: pa.RecordBatch) -> Rows:
        column = self._side.time_column
        return np.zeros(rows.num_rows, dtype=np.int64) if column is None else times_us(rows.column(column))

    def _queries(self, keys: DistinctKeys) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(list(keys.columns), names=list(self._side.keys))

    def _found(self, matches: Matches, keys: DistinctKeys) -> Found:
        starts = np.searchsorted(matches.query_rows, np.arange(keys.count + 1))
        return Found(matches.batch, matches.query_rows, self.times(matches.batch), starts)

    def rewrite(self, parts: Sequence[Rewrite]) -> None:
        """Change rows that were found, all parts of one search together.

        Tables delete by key and time: what else there is of a changed row's key and time is written again, too.
        """
        codes = np.concatenate([part.found.codes for part in parts])
        times = np.concatenate([part.found.times for part in parts])
        groups = Groups.of_columns([pa.array(codes), pa.array(times)], len(codes))
        is_touched = np.zeros(groups.count, dtype=np.bool_)
        is_touched[groups.codes[np.concatenate([part.is_changed for part in parts])]] = True
        is_doomed = np.zeros(len(codes), dtype=np.bool_)
        is_doomed[groups.first_rows()[is_touched]] = True
        # All deletes come first: a key and time may have rows in several parts.
        start = 0
        for part in parts:
            doomed = part.found.batch.filter(pa.array(is_doomed[start : start + part.rows]))
            self._view.delete(DeleteKey() if self._side.time_column is None else DeleteTimeKey(), doomed)
            start += part.rows
        start = 0
        for part in parts:
            is_kept = is_touched[groups.codes[start : start + part.rows]] & part.is_kept
            self._view.insert(part.after.filter(pa.array(is_kept)))
            start += part.rows
