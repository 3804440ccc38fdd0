"""What all windows share: event times, late rows, watermarks, and when to fire."""

from __future__ import annotations

from abc import abstractmethod
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
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import refuse_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config
from arroyo_std.aggregates.groups import Mask
from arroyo_std.aggregates.partials import partial_input
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.setting_texts import aggregate_texts, names_text
from arroyo_std.windows.layout import WINDOW_START, WindowLayout
from arroyo_std.windows.progress import NEVER_US, FiringProgress, progress_view, restore_progress
from arroyo_std.windows.times import Times, times_us

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

PROGRESS_TABLE = "p"
#: The side output of late rows.
LATE = "late"

#: Longer than any stream: for tables whose times are not those of the watermark.
UNLIMITED = timedelta(days=10_000_000)

#: Rows of one output batch, about.
OUTPUT_ROWS = 65_536

#: Processing-time windows are looked at several times per window, but not so often that it costs anything.
_TICKS_PER_WINDOW = 8
_MIN_TICK = timedelta(milliseconds=10)
_MAX_TICK = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """What all kinds of windows are told."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    allowed_lateness_us: int = 0
    is_processing_time: bool = False
    #: Late rows go to the side output `late`.
    keeps_late: bool = False


class WindowOperator(ArrowOperator):
    """Groups rows by keys and windows; a window's rows come out when the watermark, less the allowed lateness,
    reaches its end. Every window fires once.

    A row is late when the last window it could be in has fired: it is counted, and dropped or sent to a side output.
    """

    def __init__(self, settings: WindowSettings, registry: Registry) -> None:
        self._settings = settings
        self._registry = registry

    @abstractmethod
    def shortest_us(self) -> int:
        """How long a window lasts at least."""

    @abstractmethod
    def state_tables(self, layout: WindowLayout) -> dict[str, TableConfig]:
        """The tables, beside that of the progress."""

    @abstractmethod
    def open(self, layout: WindowLayout, ctx: OperatorContext) -> None:
        """Take the views of the tables."""

    @abstractmethod
    def geometry(self) -> dict[str, str]:
        """Which windows there are, in the words of `state_settings`."""

    @abstractmethod
    def row_ends_us(self, times: Times) -> Times:
        """For each row the end of the last window it could be in."""

    @abstractmethod
    def add(self, layout: WindowLayout, batch: pa.RecordBatch, *, times: Times, arrivals: Times) -> None:
        """Take rows that are not late."""

    def add_partials(self, layout: WindowLayout, batch: pa.RecordBatch) -> None:
        """Take partial aggregates that are not late; for windows that have a `partial` operator."""
        raise NotImplementedError(f"{self.name()} takes no partial aggregates")

    def partial_layout(self, stream: ArroyoSchema) -> WindowLayout | None:
        """What partial aggregates before a shuffle are made of; None where rows must come as they are."""
        if self._settings.is_processing_time or self._settings.keeps_late:
            # Late rows would be gone, and hosts would have to agree on the time.
            return None
        layout = self._make_layout(stream)
        return layout if layout.plan.is_compact else None

    def partial_times(self, batch: pa.RecordBatch) -> Times:
        """For each partial aggregate the time by which it is late or not."""
        return times_us(batch.column(WINDOW_START))

    @abstractmethod
    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        """Close every window that ends at `until_us` or before, and yield its rows."""

    @abstractmethod
    def save(self, epoch: int) -> None:
        """Hand what is only in memory to the tables, for their checkpoint."""

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = partial_input(inputs[0]) or inputs[0]
        refuse_updating(stream, operator=self.name())
        if stream.timestamp_column is None and not self._settings.is_processing_time:
            raise ConfigError("windows need an event time, and the stream has none: put std.watermark in front")
        layout = self._make_layout(stream)
        layout.plan.check()
        return layout.output

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        if self._settings.keeps_late:
            return [None]
        time_column = inputs[0].timestamp_column
        return [
            {*self._settings.keys, *self._make_layout(inputs[0]).plan.columns, *([time_column] if time_column else [])}
        ]

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        # No event time: these rows are older than the watermarks that go with them.
        return {LATE: ArroyoSchema(inputs[0].schema)} if self._settings.keeps_late else {}

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._settings.keys]

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return not self._settings.is_processing_time

    def emits_watermarks(self) -> bool:
        return self._settings.is_processing_time

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        progress = global_table_config(
            PROGRESS_TABLE, "up to where windows have fired, by subtask", is_partitioned=True
        )
        return {**progress, **self.state_tables(self._make_layout(partial_input(inputs[0]) or inputs[0]))}

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str | Mapping[str, str]]:
        settings = self._settings
        is_event_time = not settings.is_processing_time
        return {
            **self.geometry(),
            "keys": names_text(settings.keys),
            "aggregates": aggregate_texts(settings.aggregates, has_sent=self.has_sent()),
            "time": f"event ({inputs[0].timestamp_column})" if is_event_time else "processing",
            # With a longer one, rows would open windows again that have fired.
            "allowed lateness": format_duration_us(settings.allowed_lateness_us),
        }

    def has_sent(self) -> bool:
        """Whether results of windows that are still open have been sent, and may have to be taken back."""
        return False

    def tick_interval(self) -> timedelta | None:
        if not self._settings.is_processing_time:
            return None
        interval = timedelta(microseconds=self.shortest_us()) / _TICKS_PER_WINDOW
        return min(max(interval, _MIN_TICK), _MAX_TICK)

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            *self.display_window(),
            ("keys", ", ".join(settings.keys)),
            *((spec.name, spec.shown()) for spec in settings.aggregates),
            (
                "allowed lateness",
                format_duration_us(settings.allowed_lateness_us) if settings.allowed_lateness_us else "",
            ),
            ("late rows", f"to the side output {LATE!r}" if settings.keeps_late else ""),
            ("time", "processing" if settings.is_processing_time else ""),
        ]
        return DisplayableOperator(self.name(), [(label, text) for label, text in rows if text])

    @abstractmethod
    def display_window(self) -> list[tuple[str, str]]:
        """What `display` reports the window itself."""

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        made_of = partial_input(ctx.input_schemas[0])
        self._has_partials = made_of is not None
        stream = made_of or ctx.input_schemas[0]
        layout = self._make_layout(stream)
        if not self._has_partials:
            layout.plan.start()
        self._started = layout
        self._time_column = stream.timestamp_column
        self._view = progress_view(ctx, PROGRESS_TABLE)
        stored = restore_progress(self._view.get_restored(), task=ctx.task_info)
        self._progress = FiringProgress(stored, keys=self._settings.keys)
        self._arrivals = first_arrival(ctx)
        self.open(layout, ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._has_partials:
            is_late = self._find_late(batch, self.partial_times(batch))
            if is_late.any():
                ctx.count("late_rows", pc.sum(batch.columns[-1].filter(pa.array(is_late))).as_py())
                batch = batch.filter(pa.array(~is_late))
            if batch.num_rows:
                self.add_partials(self._started, batch)
            return
        batch, times = self._timed(batch, ctx)
        if batch.num_rows == 0:
            return
        arrivals = np.arange(self._arrivals, self._arrivals + batch.num_rows)
        self._arrivals += batch.num_rows
        is_late = self._find_late(batch, times)
        if is_late.any():
            ctx.count("late_rows", int(is_late.sum()))
            if self._settings.keeps_late:
                collector.collect_side(LATE, batch.filter(pa.array(is_late)))
            batch, times, arrivals = batch.filter(pa.array(~is_late)), times[~is_late], arrivals[~is_late]
        if batch.num_rows:
            self.add(self._started, batch, times=times, arrivals=arrivals)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        event_time_us = watermark.event_time_us
        if event_time_us is None:
            return None if self._settings.is_processing_time else watermark
        if event_time_us >= END_OF_TIME_US:
            self._fire(event_time_us, event_time_us, collector)
            return watermark
        if self._settings.is_processing_time:
            return None
        until_us = event_time_us - self._settings.allowed_lateness_us
        self._fire(event_time_us, until_us, collector)
        # A window that is still open ends after `until_us`, so its row's time is not before it.
        return Watermark.event_time(until_us)

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._fire_by_clock(ctx, collector)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._fire_by_clock(ctx, collector)
        self.save(barrier.epoch)
        self._view.insert(ctx.task_info.task_index, self._progress.store())

    def _make_layout(self, stream: ArroyoSchema) -> WindowLayout:
        return WindowLayout(self._settings.keys, self._settings.aggregates, stream, self._registry)

    def _find_late(self, batch: pa.RecordBatch, times: Times) -> Mask:
        """Which rows have no window left to be in."""
        if self._progress.fired_us <= NEVER_US and not self._progress.is_uneven:
            return np.zeros(batch.num_rows, dtype=np.bool_)
        fired_us = self._progress.fired_for(batch) - self._settings.allowed_lateness_us
        # Later rows end later: mostly it is enough to look at the earliest.
        if isinstance(fired_us, int) and self.row_ends_us(times.min(keepdims=True))[0] > fired_us:
            return np.zeros(batch.num_rows, dtype=np.bool_)
        is_late: Mask = self.row_ends_us(times) <= fired_us
        return is_late

    def _timed(self, batch: pa.RecordBatch, ctx: OperatorContext) -> tuple[pa.RecordBatch, Times]:
        """The rows that have a time, and their times."""
        if self._settings.is_processing_time:
            # Clocks differ between hosts: what has fired stays fired.
            now_us = max(ctx.clock.now_us(), self._progress.fired_us)
            return batch, np.full(batch.num_rows, now_us, dtype=np.int64)
        return drop_untimed(batch, self._time_column, ctx)

    def _fire_by_clock(self, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if not self._settings.is_processing_time or self._progress.fired_us >= END_OF_TIME_US:
            return
        now_us = max(ctx.clock.now_us(), self._progress.fired_us)
        self._fire(now_us, now_us, collector)
        collector.broadcast_watermark(Watermark.event_time(now_us))

    def _fire(self, fired_us: int, until_us: int, collector: ArrowCollector) -> None:
        for batch in self.fire(self._started, until_us=until_us, progress=self._progress):
            self.send(batch, collector)
        self._progress.advance(fired_us)

    def send(self, batch: pa.RecordBatch, collector: ArrowCollector) -> None:
        """Emit rows, not too many at once."""
        for start in range(0, batch.num_rows, OUTPUT_ROWS):
            collector.collect(batch.slice(start, OUTPUT_ROWS))


def first_arrival(ctx: OperatorContext) -> int:
    """The number of an epoch's first row: within an epoch rows are told apart by number, over epochs by epoch."""
    return ctx.epoch << 32


def drop_untimed(batch: pa.RecordBatch, time_column: str | None, ctx: OperatorContext) -> tuple[pa.RecordBatch, Times]:
    """The rows that have an event time, and their times; the others are counted."""
    column = batch.column(time_column)
    if column.null_count:
        ctx.count("null_event_times", column.null_count)
        batch = batch.filter(column.is_valid())
        column = batch.column(time_column)
    return batch, times_us(column)
