"""Rows that wait until the watermark has passed their event time, for top-n and window functions over windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, ExpiringTimeKeyState, OperatorContext
from arroyo_core.state import ColumnRules, global_table_config, timestamp_table_config
from arroyo_std.large_rows import Rows, cut_batches, is_large, join_rows, take, whole_groups
from arroyo_std.windows.progress import NEVER_US, FiringProgress, progress_view, restore_progress
from arroyo_std.windows.times import times_us

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

PROGRESS_TABLE = "p"
ROWS_TABLE = "t"

#: Rows in memory are reduced when they are this many, or as many as there were after they last were.
REDUCE_ROWS = 65_536
#: The same for their bytes.
REDUCE_BYTES = 256 << 20
#: Event times that many epochs have written rows of are reduced at every so many epochs.
REDUCE_EPOCHS = 16
#: Rows of one output batch, about.
OUTPUT_ROWS = 65_536
#: Rows that are finished at once, about: whole event times, of which there may be as many as rows.
FINISH_ROWS = 262_144

Reduce = Callable[[Rows], Rows]


def event_group_tables(schema: ArroyoSchema) -> dict[str, TableConfig]:
    """The tables that `EventGroups` keeps rows of this schema in."""
    return {
        **global_table_config(
            PROGRESS_TABLE, "up to where event times have been sent, by subtask", is_partitioned=True
        ),
        ROWS_TABLE: timestamp_table_config(
            ROWS_TABLE, "rows by event time", timedelta(0), False, schema, column_rules=ColumnRules()
        ),
    }


class EventGroups:
    """Holds rows until the watermark passes their event time, and then sends what `finish` makes of them.

    `finish` is given all rows of many event times at once, and tells these apart itself: a watermark costs as many
    calls when every row has a time of its own. Where these are large, it is given those of some keys of the schema.
    `reduce` may drop rows that cannot matter any more, given some of the rows of their event times. Rows before
    the last watermark are late: they are counted and dropped, as are rows without event time.
    With `whole_by`, `finish` is given the rows with equal values of these columns in the order of event times, however
    many they are; without, only those of one time are sure to come together.
    """

    def __init__(
        self,
        schema: ArroyoSchema,
        *,
        finish: Reduce,
        reduce: Reduce | None,
        ctx: OperatorContext,
        whole_by: Sequence[str] | None = None,
    ) -> None:
        if schema.timestamp_column is None:
            raise ValueError("rows that wait for the watermark need an event time")
        self._time_column = schema.timestamp_column
        by_time = list(dict.fromkeys([self._time_column, *(schema.key_columns or ())]))
        self._group_by = by_time if whole_by is None else list(whole_by)
        self._finish = finish
        view = ctx.table_manager.get_expiring_time_key_table(ROWS_TABLE)
        self._rows = _WaitingRows(view, self._time_column, reduce)
        self._view = progress_view(ctx, PROGRESS_TABLE)
        stored = restore_progress(self._view.get_restored(), task=ctx.task_info)
        self._progress = FiringProgress(stored, keys=schema.key_columns or ())

    def add(self, batch: pa.RecordBatch, ctx: OperatorContext) -> None:
        """Take rows of the schema."""
        times = batch.column(self._time_column)
        if times.null_count:
            ctx.count("null_event_times", times.null_count)
            batch = batch.filter(times.is_valid())
        if self._progress.fired_us > NEVER_US or self._progress.is_uneven:
            is_late = times_us(batch.column(self._time_column)) < self._progress.fired_for(batch)
            late_rows = int(is_late.sum())
            if late_rows:
                ctx.count("late_rows", late_rows)
                batch = batch.filter(pa.array(~is_late))
        if batch.num_rows:
            self._rows.add(batch)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        """Send what is complete at this watermark."""
        due = self._rows.take_before(watermark_us)
        for some in whole_groups(due, self._group_by) if due else ():
            for rows in _whole_times(some, self._time_column):
                for result in cut_batches(self._finish(rows)):
                    for start in range(0, result.num_rows, OUTPUT_ROWS):
                        collector.collect(result.slice(start, OUTPUT_ROWS))
        self._progress.advance(watermark_us)

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        """Hand the epoch's rows to the tables, for their checkpoint."""
        self._rows.flush(epoch)
        self._view.insert(ctx.task_info.task_index, self._progress.store())


class _WaitingRows:
    """Rows of this epoch in memory, those of earlier ones in a table."""

    def __init__(self, view: ExpiringTimeKeyState, time_column: str, reduce: Reduce | None) -> None:
        self._view = view
        self._time_column = time_column
        self._reduce = reduce
        #: Batches of this epoch, each with its earliest time.
        self._pending: list[tuple[int, pa.RecordBatch]] = []
        self._pending_rows = self._pending_bytes = 0
        self._reduced_rows = self._reduced_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._pending.append((self._earliest_us(rows), rows))
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes
        if self._reduce is not None and (
            self._pending_rows > 2 * self._reduced_rows + REDUCE_ROWS
            or self._pending_bytes > 2 * self._reduced_bytes + REDUCE_BYTES
        ):
            self._set_pending(self._reduced([rows for _, rows in self._pending]))

    def take_before(self, time_us: int) -> list[pa.RecordBatch]:
        """Remove the rows before this time, and return them."""
        parts = self._view.take_parts_before(time_us)
        # Batches that are not due yet are left alone, so that many rows may wait for many watermarks.
        touched = [rows for earliest_us, rows in self._pending if earliest_us < time_us]
        if touched:
            left = []
            for rows in touched if is_large(touched) else [join_rows(touched)]:
                is_due = times_us(rows.column(self._time_column)) < time_us
                parts.append(rows.filter(pa.array(is_due)))
                left.append(rows.filter(pa.array(~is_due)))
            self._set_pending(left, [each for each in self._pending if each[0] >= time_us])
        return self._reduced(parts) if self._reduce is not None and is_large(parts) else parts

    def flush(self, epoch: int) -> None:
        if not self._pending:
            return
        fresh = [rows for _, rows in self._pending]
        self._set_pending([])
        if epoch % REDUCE_EPOCHS == 0 and self._reduce is not None:
            fresh += self._take_crowded(fresh)
        for rows in self._reduced(fresh):
            self._view.insert_batch(rows)

    def _take_crowded(self, fresh: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """What the table has of event times that many epochs have written rows of; it is taken out of the table."""
        times = np.unique(np.concatenate([times_us(rows.column(self._time_column)) for rows in fresh]))
        return self._view.expire_timestamps(times[self._view.count_parts(times) >= REDUCE_EPOCHS // 2])

    def _reduced(self, parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The rows that may matter, in one batch if it can hold them."""
        if self._reduce is not None and is_large(parts):
            parts = [self._reduce(rows) for rows in parts]
        if is_large(parts):
            return parts
        rows = join_rows(parts)
        return [rows if self._reduce is None else self._reduce(rows)]

    def _set_pending(self, parts: list[pa.RecordBatch], waiting: Iterable[tuple[int, pa.RecordBatch]] = ()) -> None:
        self._pending = [*((self._earliest_us(rows), rows) for rows in parts if rows.num_rows), *waiting]
        self._pending_rows = self._reduced_rows = sum(rows.num_rows for _, rows in self._pending)
        self._pending_bytes = self._reduced_bytes = sum(rows.nbytes for _, rows in self._pending)

    def _earliest_us(self, rows: pa.RecordBatch) -> int:
        return int(times_us(rows.column(self._time_column)).min())


def _whole_times(rows: Rows, time_column: str) -> Iterator[Rows]:
    """The rows in parts of about `FINISH_ROWS`, earlier times first; all rows of one time are in one part."""
    if rows.num_rows <= FINISH_ROWS:
        yield rows
        return
    times = times_us(rows.column(time_column))
    order = np.argsort(times, kind="stable")
    times = times[order]
    start = 0
    while start < len(times):
        last = times[min(start + FINISH_ROWS, len(times)) - 1]
        end = int(np.searchsorted(times, last, side="right"))
        yield take(rows, order[start:end])
        start = end
