"""`std.tumbling_window` with early results: what a window holds so far, taken back and sent again when it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArroyoSchema,
    CheckpointBarrier,
    OperatorContext,
    Registry,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import interleave_updates, make_updates, row_ids, with_updating
from arroyo_std.aggregates.groups import Groups
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
            self._set_unsent(self.store.merge(self._unsent))

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
        fresh = self.store.merge(self._unsent)
        if before_us is not None:
            is_due = times_us(fresh.column(WINDOW_START)) < before_us
            self._set_unsent(fresh.filter(pa.array(~is_due)))
            fresh = fresh.filter(pa.array(is_due))
        else:
            self._set_unsent(None)
        if fresh.num_rows:
            yield self._compare(layout, fresh)
            self.store.add(fresh)

    def _compare(self, layout: WindowLayout, fresh: pa.RecordBatch) -> pa.RecordBatch:
        """The old results of the groups of `fresh`, each with the new one behind it, where they differ."""
        names = [*layout.keys, WINDOW_START]
        stored = self.store.read(np.unique(times_us(fresh.column(WINDOW_START))).tolist())
        # Every row of `fresh` is a group, and they come first: its number is that of its row.
        rows = pa.concat_batches([fresh, *stored])
        groups = Groups.of_columns([rows.column(name) for name in names], rows.num_rows)
        is_known = groups.codes[fresh.num_rows :] < fresh.num_rows
        codes = groups.codes[fresh.num_rows :][is_known]
        known = rows.slice(fresh.num_rows).filter(pa.array(is_known))
        was_sent = np.zeros(fresh.num_rows, dtype=np.bool_)
        was_sent[codes] = True
        sent = np.flatnonzero(was_sent)
        both = pa.concat_batches([fresh, known])
        all_codes = np.concatenate([np.arange(fresh.num_rows), codes])
        new_states = layout.plan.merge(layout.states_of(both), Groups(all_codes, fresh.num_rows))
        places = np.cumsum(was_sent) - 1
        old_states = layout.plan.merge(layout.states_of(known), Groups(places[codes], len(sent)))
        new = self._results(layout, fresh, layout.plan.finish(new_states))
        old = self._results(layout, fresh.take(pa.array(sent)), layout.plan.finish_sent(old_states))
        width = len(layout.keys) + len(WINDOW_COLUMNS)
        is_same = np.zeros(fresh.num_rows, dtype=np.bool_)
        is_same[sent] = same_rows(old.columns[width:], new.take(pa.array(sent)).columns[width:], len(sent))
        back, added = np.flatnonzero(~is_same[sent]), np.flatnonzero(~is_same)
        retracts, appends = old.take(pa.array(back)), new.take(pa.array(added))
        return interleave_updates(
            make_updates(retracts, is_retract=True, ids=row_ids(retracts, names)),
            make_updates(appends, is_retract=False, ids=row_ids(appends, names)),
            retract_ranks=sent[back],
            append_ranks=added,
        )

    def _results(self, layout: WindowLayout, rows: pa.RecordBatch, results: Sequence[pa.Array]) -> pa.RecordBatch:
        starts = times_us(rows.column(WINDOW_START))
        keys = [rows.column(key) for key in layout.keys]
        return layout.rows(keys, results, starts_us=starts, ends_us=starts + self._grid.size_us)

    def _set_unsent(self, rows: pa.RecordBatch | None) -> None:
        self._unsent = [rows] if rows is not None and rows.num_rows else []
        self._unsent_bytes = self._merged_bytes = sum(part.nbytes for part in self._unsent)
