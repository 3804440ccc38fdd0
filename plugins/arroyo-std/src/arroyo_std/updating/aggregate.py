"""`std.updating_aggregate`: aggregates over the whole stream, sent whenever they have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    Registry,
    SignalMessage,
    UnboundedState,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import UPDATING_META, split_updates
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std.aggregates.groups import Groups
from arroyo_std.aggregates.keys import key_columns
from arroyo_std.aggregates.partials import partial_input
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.row_values import TAKEN_BACK
from arroyo_std.setting_texts import aggregate_texts, names_text
from arroyo_std.timers import KeyTimers
from arroyo_std.updating.layout import IS_RETRACT, UpdatingLayout
from arroyo_std.updating.store import Delta, UpdatingStore
from arroyo_std.windows.progress import NEVER_US
from arroyo_std.windows.times import Times, times_us
from arroyo_std.windows.windowed import OUTPUT_ROWS, UNLIMITED

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

AGGREGATES_TABLE = "a"
TIMERS_TABLE = "t"

#: Timers of the time to live lie on a grid of this part of it.
_TIMERS_PER_TTL = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatingSettings:
    """The config, with its defaults filled in. A time to live of 0 is for ever."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    ttl_us: int
    flush_interval_us: int
    #: Whether the only group there is without keys has a result before the first row.
    has_empty_group: bool = False


class DeltaReader:
    """Makes the states of batches of rows, by key: of those that are added, and of those that are taken back."""

    def __init__(self, layout: UpdatingLayout, ctx: OperatorContext) -> None:
        layout.plan.start()
        self._layout = layout
        self._time_column = ctx.input_schemas[0].timestamp_column
        # Within an epoch rows are told apart by number, over epochs by epoch.
        self._arrivals = ctx.epoch << 32

    def read(self, batch: pa.RecordBatch) -> Iterator[tuple[bool, Delta]]:
        """Each with whether it is taken back."""
        appends, retracts = split_updates(batch)
        for is_retract, rows in ((False, appends), (True, retracts)):
            if rows.num_rows:
                yield is_retract, self._delta(rows)

    def _delta(self, rows: pa.RecordBatch) -> Delta:
        keys = key_columns(rows, self._layout.key_fields)
        groups = Groups.of_columns(keys, rows.num_rows)
        arrivals = np.arange(self._arrivals, self._arrivals + rows.num_rows)
        self._arrivals += rows.num_rows
        states = self._layout.plan.partial(rows, groups, times_us=self._times(rows), arrivals=arrivals)
        first = pa.array(groups.first_rows())
        columns = [*(key.take(first) for key in keys), *states]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self._layout.delta), is_distinct=True)

    def _times(self, rows: pa.RecordBatch) -> Times:
        """Event times, for `first` and `last`; before all others where there is none."""
        if self._time_column is None:
            return np.full(rows.num_rows, NEVER_US, dtype=np.int64)
        column = rows.column(self._time_column)
        if column.null_count == 0:
            return times_us(column)
        times = times_us(column.fill_null(pa.scalar(0, pa.int64()).cast(column.type)))
        return np.where(column.is_null().to_numpy(zero_copy_only=False), NEVER_US, times)


class PartialDeltas(ArrowOperator):
    """Stands before the shuffle to an updating aggregate: of each batch one row per key goes on, or two."""

    def __init__(self, layout: UpdatingLayout) -> None:
        self._layout = layout

    def name(self) -> str:
        return "std.updating_aggregate"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._layout.partial

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._deltas = DeltaReader(self._layout, ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        for is_retract, delta in self._deltas.read(batch):
            columns = [*delta.rows.columns, pa.array(np.full(delta.rows.num_rows, is_retract))]
            collector.collect(pa.RecordBatch.from_arrays(columns, schema=self._layout.partial.schema))


class UpdatingAggregate(ArrowOperator):
    """Sends, for each group that has changed, its old result to be taken back and then its new one.

    The table always holds what was last sent, because every checkpoint sends first.
    """

    def __init__(self, settings: UpdatingSettings, registry: Registry) -> None:
        self._settings = settings
        self._registry = registry

    def name(self) -> str:
        return "std.updating_aggregate"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        layout = self._make_layout(partial_input(inputs[0]) or inputs[0])
        layout.plan.check()
        return layout.output

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        stream = inputs[0]
        beside = [name for name in stream.names if name in (stream.timestamp_column, UPDATING_META)]
        return [{*self._settings.keys, *self._make_layout(stream).plan.columns, *beside}]

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._settings.keys]

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        if self._settings.ttl_us or not self._settings.keys:
            return None
        return UnboundedState("it keeps the aggregates of every key for ever", "give a ttl other than 0")

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        layout = self._make_layout(inputs[0])
        return PartialDeltas(layout) if layout.plan.is_compact else None

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        layout = self._make_layout(partial_input(inputs[0]) or inputs[0])
        return {
            AGGREGATES_TABLE: timestamp_table_config(
                AGGREGATES_TABLE,
                "aggregates by key, as last sent",
                timedelta(0),
                True,
                layout.state,
                column_rules=ColumnRules(
                    owners=layout.plan.column_owners(), closed=TAKEN_BACK if layout.is_updating else ""
                ),
            ),
            TIMERS_TABLE: timestamp_table_config(
                TIMERS_TABLE, "when a key may be forgotten", UNLIMITED, False, layout.timers
            ),
        }

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str | Mapping[str, str]]:
        # What a state comes to has been sent, and is taken back when it changes.
        aggregates = self._settings.aggregates
        is_timed = any(spec.function in ("first", "last") and not spec.order_by for spec in aggregates)
        return {
            "keys": names_text(self._settings.keys),
            "aggregates": aggregate_texts(aggregates, has_sent=True),
            # Left out where it does not matter: a first aggregate that it matters to may be added.
            **({"time": f"event ({inputs[0].timestamp_column})"} if is_timed else {}),
        }

    def tick_interval(self) -> timedelta | None:
        return timedelta(microseconds=self._settings.flush_interval_us)

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            ("keys", ", ".join(settings.keys)),
            *((spec.name, spec.shown()) for spec in settings.aggregates),
            ("ttl", format_duration_us(settings.ttl_us) if settings.ttl_us else "none"),
            ("flush interval", format_duration_us(settings.flush_interval_us)),
        ]
        return DisplayableOperator(self.name(), [(label, text) for label, text in rows if text])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        made_of = partial_input(ctx.input_schemas[0])
        layout = self._make_layout(made_of or ctx.input_schemas[0])
        self._started = layout
        #: Makes states of rows; None if they come as states.
        self._deltas = DeltaReader(layout, ctx) if made_of is None else None
        manager, ttl_us = ctx.table_manager, self._settings.ttl_us
        is_mortal = ttl_us and not self._settings.has_empty_group
        timers = KeyTimers(
            manager.get_expiring_time_key_table(TIMERS_TABLE), layout.timers, grid_us=ttl_us // _TIMERS_PER_TTL
        )
        self.store = UpdatingStore(
            layout, manager.get_last_key_value_table(AGGREGATES_TABLE), timers if is_mortal else None, ttl_us=ttl_us
        )
        if self._settings.has_empty_group and ctx.task_info.task_index == 0:
            self.store.add_empty_group()
        self._flushed_us = ctx.clock.now_us()

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._deltas is None:
            flags = batch.column(IS_RETRACT)
            for is_retract in (False, True):
                rows = batch.filter(flags if is_retract else pc.invert(flags))
                if rows.num_rows:
                    states = pa.RecordBatch.from_arrays(rows.columns[:-1], schema=self._started.delta)
                    self.store.add(Delta(states), is_retract=is_retract)
            return
        for is_retract, delta in self._deltas.read(batch):
            self.store.add(delta, is_retract=is_retract)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None and watermark.event_time_us >= END_OF_TIME_US:
            self._flush(ctx, collector)
        return watermark

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        # The chain ticks as often as the most impatient of its operators asks for.
        if ctx.clock.now_us() - self._flushed_us >= self._settings.flush_interval_us:
            self._flush(ctx, collector)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._flush(ctx, collector)

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        if final_message is not None:
            self._flush(ctx, collector)
        return final_message

    def _make_layout(self, stream: ArroyoSchema) -> UpdatingLayout:
        settings = self._settings
        return UpdatingLayout(
            settings.keys, settings.aggregates, stream, self._registry, keeps_empty=settings.has_empty_group
        )

    def _flush(self, ctx: OperatorContext, collector: ArrowCollector) -> None:
        now_us = ctx.clock.now_us()
        self._flushed_us = now_us
        for changes in self.store.flush(now_us):
            if changes.unknown_retractions:
                ctx.count("unknown_retractions", changes.unknown_retractions)
            _send(changes.rows, collector)
        for expired in self.store.expire(now_us):
            ctx.count("expired_keys", expired.num_rows)
            _send(expired, collector)


def _send(rows: pa.RecordBatch, collector: ArrowCollector) -> None:
    for start in range(0, rows.num_rows, OUTPUT_ROWS):
        collector.collect(rows.slice(start, OUTPUT_ROWS))
