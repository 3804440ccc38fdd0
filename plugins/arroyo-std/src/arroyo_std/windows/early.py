"""`std.tumbling_window` with early results: what a window holds so far, taken back and sent again when it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import (
    ArrowCollector,
    ArroyoSchema,
    CheckpointBarrier,
    OperatorContext,
    Registry,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.large_rows import concat, interleave, is_large, join_rows, split_groups
from arroyo_std.updating.changes import same_rows
from arroyo_std.windows.bins import MERGE_BYTES
from arroyo_std.windows.layout import WINDOW_COLUMNS, WINDOW_START, WindowLayout
from arroyo_std.windows.progress import FiringProgress
from arroyo_std.windows.times import floor_time, times_us
from arroyo_std.windows.tumbling import Grid, TumblingWindow
from arroyo_std.windows.windowed import WindowSettings


class EarlyTumblingWindow(TumblingWindow):
    """Sends the results of open windows at an interval of processing time, and at every checkpoint.

    The store holds what was sent. What came since waits beside it, and joins it when it is sent; every checkpoint
    sends first, so that a restart knows what to take back. A window that fires sends its last change.
    """

    def __init__(self, grid: Grid, settings: WindowSettings, registry: Registry, *, early_us: int) -> None:
        super().__init__(grid, settings, registry)
        self._early_us = early_us
        self._unsent: list[pa.RecordBatch] = []
        self._unsent_bytes = 0
        self._merged_bytes = 0

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return with_updating(super().output_schema(inputs))

    def display_window(self) -> list[tuple[str, str]]:
        return [*super().display_window(), ("early results every", format_duration_us(self._early_us))]

    def has_sent(self) -> bool:
        return True

    def tick_interval(self) -> timedelta | None:
        interval = timedelta(microseconds=self._early_us)
        return min(interval, super().tick_interval() or interval)

    def on_start(self, ctx: OperatorContext) -> None:
        super().on_start(ctx)
        self._sent_us = ctx.clock.now_us()

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        super().handle_tick(tick, ctx, collector)
        # The chain ticks as often as the most impatient of its operators asks for.
        if ctx.clock.now_us() - self._sent_us >= self._early_us:
            self._send_early(ctx, collector)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._fire_by_clock(ctx, collector)
        self._send_early(ctx, collector)
        super().handle_checkpoint(barrier, ctx, collector)

    def keep(self, rows: pa.RecordBatch) -> None:
        self._unsent.append(rows)
        self._unsent_bytes += rows.nbytes
        if self._unsent_bytes > 2 * self._merged_bytes + MERGE_BYTES:
            self._set_unsent(self.store.merge_all(self._unsent))

    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        before_us = floor_time(until_us, self._grid.size_us, self._grid.offset_us)
        yield from self._changes(layout, before_us=before_us)
        self.store.drop_before(before_us)

    def _send_early(self, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._sent_us = ctx.clock.now_us()
        for batch in self._changes(self._started, before_us=None):
            self.send(batch, collector)

    def _changes(self, layout: WindowLayout, *, before_us: int | None) -> Iterator[pa.RecordBatch]:
        """What has changed in windows that start before this time, or in all, which joins what was sent."""
        if not self._unsent:
            return
        fresh = self.store.merge_all(self._unsent)
        self._set_unsent([])
        if before_us is not None:
            are_due = [pa.array(times_us(rows.column(WINDOW_START)) < before_us) for rows in fresh]
            self._set_unsent([rows.filter(pc.invert(mask)) for rows, mask in zip(fresh, are_due, strict=True)])
            fresh = [rows.filter(mask) for rows, mask in zip(fresh, are_due, strict=True)]
        starts = [times_us(rows.column(WINDOW_START)) for rows in fresh if rows.num_rows]
        if not starts:
            return
        names = [*layout.keys, WINDOW_START]
        stored = self.store.read(np.unique(np.concatenate(starts)).tolist())
        for some, known in split_groups([fresh, stored], [names, names]):
            for rows in some:
                if rows.num_rows:
                    yield from self._compare(layout, rows, known)
                    self.store.add(rows)

    def _compare(
        self, layout: WindowLayout, fresh: pa.RecordBatch, stored: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """The old results of the groups of `fresh`, each with the new one behind it, where they differ."""
        names = [*layout.keys, WINDOW_START]
        parts, codes = _rows_of_groups(fresh, stored, names)
        if fresh.num_rows > 1 and is_large([fresh, *parts]):
            half = fresh.num_rows // 2
            for some in (fresh.slice(0, half), fresh.slice(half)):
                yield from self._compare(layout, some, parts)
            return
        sent, first = np.unique(codes, return_index=True)
        # Merged, groups are in the order in which they first appear.
        known = self.store.merge([fresh.slice(0, 0), *parts]).take(pa.array(np.argsort(np.argsort(first))))
        old_states = layout.states_of(known)
        # What was there first, as it will be read when this is taken back: the order of a list depends on it.
        groups = Groups(np.concatenate([sent, np.arange(fresh.num_rows)]), fresh.num_rows)
        new_states = layout.plan.merge(layout.states_of(concat([known, fresh])), groups)
        new = self._results(layout, fresh, layout.plan.finish(new_states))
        old = self._results(layout, fresh.take(pa.array(sent)), layout.plan.finish_sent(old_states))
        width = len(layout.keys) + len(WINDOW_COLUMNS)
        is_same = np.zeros(fresh.num_rows, dtype=np.bool_)
        is_same[sent] = same_rows(old.columns[width:], new.take(pa.array(sent)).columns[width:], len(sent))
        back, added = np.flatnonzero(~is_same[sent]), np.flatnonzero(~is_same)
        retracts, appends = old.take(pa.array(back)), new.take(pa.array(added))
        yield from interleave(
            make_updates(retracts, is_retract=True, ids=row_ids(retracts, names)),
            make_updates(appends, is_retract=False, ids=row_ids(appends, names)),
            retract_ranks=sent[back],
            append_ranks=added,
        )

    def _results(self, layout: WindowLayout, rows: pa.RecordBatch, results: Sequence[pa.Array]) -> pa.RecordBatch:
        starts = times_us(rows.column(WINDOW_START))
        keys = [rows.column(key) for key in layout.keys]
        return layout.rows(keys, results, starts_us=starts, ends_us=starts + self._grid.size_us)

    def _set_unsent(self, parts: Sequence[pa.RecordBatch]) -> None:
        self._unsent = [rows for rows in parts if rows.num_rows]
        self._unsent_bytes = self._merged_bytes = sum(part.nbytes for part in self._unsent)


def _rows_of_groups(
    fresh: pa.RecordBatch, stored: Sequence[pa.RecordBatch], names: Sequence[str]
) -> tuple[list[pa.RecordBatch], Codes]:
    """The stored rows of the groups of `fresh`, of which each row is one, and for each the number of its group."""
    keys = join_rows([part.select(names) for part in (fresh, *stored)])
    # Rows of `fresh` come first: the number of a group is that of its row.
    codes = Groups.of_columns(keys.columns, keys.num_rows).codes[fresh.num_rows :]
    is_known = codes < fresh.num_rows
    masks = np.split(is_known, np.cumsum([part.num_rows for part in stored])[:-1]) if stored else []
    return [part.filter(pa.array(mask)) for part, mask in zip(stored, masks, strict=True)], codes[is_known]
