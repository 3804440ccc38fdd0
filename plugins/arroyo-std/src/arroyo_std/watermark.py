"""`std.watermark`: makes the watermarks of a stream from the event times of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

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
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config
from arroyo_std.columns import check_column
from arroyo_std.sql import Expression, check_expressions, compile_expressions
from arroyo_std.watermark_progress import StoredProgress, WatermarkProgress, restore_progress

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

STATE_TABLE = "s"

#: Idleness is looked for several times per idle time, but not so often that it costs anything.
_TICKS_PER_IDLE_TIME = 4
_MIN_TICK = timedelta(milliseconds=10)
_MAX_TICK = timedelta(seconds=1)

_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkSettings:
    """The config, with its defaults filled in. None: the stream's own column, no idleness, no expression."""

    column: str | None
    max_lateness_us: int
    period_us: int
    idle_time_us: int | None
    expression: str | None


class WatermarkGenerator(ArrowOperator):
    """Passes rows on, and after them the watermark: the greatest event time so far, less the lateness.

    Watermarks of the inputs end here, but the end of time and idleness go on.
    """

    def __init__(self, settings: WatermarkSettings, registry: Registry) -> None:
        self._settings = settings
        self._registry = registry
        self._expressions = (
            [Expression(name="watermark", sql=settings.expression, field="expression")] if settings.expression else []
        )

    def name(self) -> str:
        return "std.watermark"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        column = self._settings.column
        if column is None and stream.timestamp_column is None:
            timestamps = [each.name for each in stream.schema if pa.types.is_timestamp(each.type)]
            raise ConfigError("the stream has no event time: give its column", field="column", allowed=timestamps)
        if column is not None:
            check_column(column, stream.names, field="column")
            found = stream.schema.field(column).type
            if not pa.types.is_timestamp(found):
                raise ConfigError(f"column {column!r} is {found}, not a timestamp", field="column", value=column)
        self._check_expression(stream.schema)
        return ArroyoSchema(stream.schema, column or stream.timestamp_column, stream.key_columns)

    def emits_watermarks(self) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(STATE_TABLE, "progress of the watermark, by subtask", is_partitioned=True)

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # How far event time has come is true of one time only; how late rows may be can change.
        settings = self._settings
        return {"time": settings.expression or settings.column or str(inputs[0].timestamp_column)}

    def is_row_wise(self, inputs: Sequence[ArroyoSchema]) -> bool:
        """Rows go on as they come: the table is about time."""
        return True

    def tick_interval(self) -> timedelta | None:
        if self._settings.idle_time_us is None:
            return None
        interval = timedelta(microseconds=self._settings.idle_time_us) / _TICKS_PER_IDLE_TIME
        return min(max(interval, _MIN_TICK), _MAX_TICK)

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        column = self._settings.column
        read = (
            compile_expressions(self._expressions, inputs[0].schema, self._registry).columns
            if self._expressions
            else ()
        )
        return [{*needed, *([column] if column else []), *read}]

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            ("column", settings.column),
            ("expression", settings.expression),
            ("max lateness", None if settings.expression else str(timedelta(microseconds=settings.max_lateness_us))),
            ("period", str(timedelta(microseconds=settings.period_us))),
            ("idle time", settings.idle_time_us and str(timedelta(microseconds=settings.idle_time_us))),
        ]
        return DisplayableOperator(self.name(), [(label, str(value)) for label, value in rows if value is not None])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._column = ctx.output_schema.timestamp_column
        self._compiled = (
            compile_expressions(self._expressions, ctx.input_schemas[0].schema, self._registry)
            if self._expressions
            else None
        )
        self._view = ctx.table_manager.get_partitioned_keyed_state(
            STATE_TABLE, lambda subtask: subtask, key_type=int, value_type=StoredProgress
        )
        stored = restore_progress(
            self._view.get_restored(), task_index=ctx.task_info.task_index, parallelism=ctx.task_info.parallelism
        )
        self._progress = WatermarkProgress(
            stored,
            period_us=self._settings.period_us,
            idle_time_us=self._settings.idle_time_us,
            now_us=ctx.clock.now_us(),
        )

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        times = self._compiled.evaluate(batch).column(0) if self._compiled else batch.column(self._column)
        if times.null_count:
            ctx.count("null_event_times", times.null_count)
        latest_us = max_event_time_us(times)
        collector.collect(batch)
        lateness_us = 0 if self._compiled else self._settings.max_lateness_us
        watermark_us = None if latest_us is None else latest_us - lateness_us
        _send(self._progress.observe(watermark_us, now_us=ctx.clock.now_us()), collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.is_idle:
            _send(self._progress.become_idle(), collector)
            return None
        if watermark.event_time_us is not None and watermark.event_time_us >= END_OF_TIME_US:
            self._progress.end()
            return watermark
        return None

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        _send(self._progress.check_idle(now_us=ctx.clock.now_us()), collector)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        now_us = ctx.clock.now_us()
        _send(self._progress.check_idle(now_us=now_us), collector)
        _send(self._progress.current(), collector)
        self._view.insert(
            ctx.task_info.task_index, self._progress.store(parallelism=ctx.task_info.parallelism, now_us=now_us)
        )

    def _check_expression(self, schema: pa.Schema) -> None:
        if not self._expressions:
            return
        found = check_expressions(self._expressions, schema, self._registry).schema.field(0).type
        if not pa.types.is_timestamp(found):
            sql = self._settings.expression
            raise ConfigError(f"the expression is {found}, not a timestamp", field="expression", value=sql)


def max_event_time_us(times: pa.Array) -> int | None:
    """The greatest of some timestamps of any unit, in whole microseconds, rounded down; None if all are null."""
    greatest = pc.max(times).cast(pa.int64()).as_py()
    if greatest is None:
        return None
    return int(greatest) * 1_000_000 // _UNITS_PER_SECOND[times.type.unit]


def _send(watermarks: Sequence[Watermark], collector: ArrowCollector) -> None:
    for watermark in watermarks:
        collector.broadcast_watermark(watermark)
