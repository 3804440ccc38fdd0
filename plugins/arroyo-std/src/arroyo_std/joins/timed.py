"""What joins of two streams by event time share: event times, late rows, watermarks and their progress."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    Watermark,
)
from arroyo_core.errors import ConfigError
from arroyo_core.state import ColumnRules, global_table_config, timestamp_table_config
from arroyo_std.joins.layout import LEFT, SIDE_NAMES, JoinLayout, JoinSettings, KeyPair, Side
from arroyo_std.row_values import TAKEN_BACK
from arroyo_std.setting_texts import NONE
from arroyo_std.windows.progress import NEVER_US, FiringProgress, progress_view, restore_progress
from arroyo_std.windows.times import Times, times_us

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

PROGRESS_TABLE = "p"


class TimedJoin(ArrowOperator):
    """Joins two inputs, each partitioned by its keys; equal keys of both meet in one subtask.

    A row is late when the watermark it needed to be joined with all its matches has passed: it is counted
    (`late_rows`) and dropped, or sent to a side output.
    """

    def __init__(self, settings: JoinSettings) -> None:
        self.settings = settings

    @abstractmethod
    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        """The columns; raises `ConfigError` where the inputs do not fit."""

    @abstractmethod
    def output_time(self, layout: JoinLayout) -> str | None:
        """The event-time column of the output."""

    @abstractmethod
    def retentions_us(self) -> tuple[int, int]:
        """How long tables `left` and `right` keep rows after the watermark has passed them."""

    @abstractmethod
    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        """Take the views of the tables."""

    @abstractmethod
    def add(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        """Take rows of one side that are not late, with their times."""

    @abstractmethod
    def fire(self, watermark_us: int, collector: ArrowCollector) -> int:
        """The watermark moved; returns the one that goes on."""

    @abstractmethod
    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        """What `state_settings` tells beside the keys."""

    @abstractmethod
    def display_join(self) -> list[tuple[str, str]]:
        """What `display` tells beside type and keys."""

    def input_count(self) -> tuple[int, int | None]:
        return (2, 2)

    def last_times_us(self, index: int, times: Times) -> Times:
        """For each row the last watermark with which it is not late."""
        return times

    def time_column(self, side: Side) -> str | None:
        """The column that says when a row is late; None for a side whose rows never are."""
        return side.time_column

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        layout = self.make_layout(inputs)
        if self.settings.condition is not None:
            self.settings.condition.check(layout)
        return layout.stream(self.output_time(layout))

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        if not self.settings.has_late_output:
            return {}
        return {f"late_{name}": stream for name, stream in zip(SIDE_NAMES, inputs, strict=True)}

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        on = self.keys()
        return [tuple(pair.left for pair in on), tuple(pair.right for pair in on)]

    def keys(self) -> tuple[KeyPair, ...]:
        """The columns by which equal rows of both inputs meet in one subtask."""
        return self.settings.on

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return True

    def table_schema(self, side: Side) -> ArroyoSchema:
        """The columns of the table of one side."""
        return ArroyoSchema(side.schema, side.time_column, side.keys)

    def own_columns(self) -> tuple[str, ...]:
        """Columns that tables have, or do not, beside those of the input."""
        return ()

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        described = "the watermark that rows have been joined up to, by subtask"
        tables = global_table_config(PROGRESS_TABLE, described, is_partitioned=True)
        for side, retention_us in zip(self.make_layout(inputs).sides, self.retentions_us(), strict=True):
            tables[side.name] = timestamp_table_config(
                side.name,
                f"rows of the {side.name} input",
                timedelta(microseconds=retention_us),
                False,
                self.table_schema(side),
                column_rules=ColumnRules(fixed=self.own_columns(), closed=TAKEN_BACK if side.is_updating else ""),
            )
        return tables

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        return {"on": self._on(), **self.stored_settings(inputs)}

    def _on(self) -> str:
        return ", ".join(f"{pair.left} = {pair.right}" for pair in self.keys())

    def condition_setting(self) -> dict[str, str]:
        """The condition, for joins that have sent what it decides."""
        return {"condition": NONE if self.settings.condition is None else self.settings.condition.sql}

    def display(self) -> DisplayableOperator:
        condition = self.settings.condition.sql if self.settings.condition else ""
        rows = [("type", str(self.settings.type)), ("on", self._on()), ("condition", condition), *self.display_join()]
        return DisplayableOperator(self.name(), [(label, text) for label, text in rows if text])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self.layout = self.make_layout(ctx.input_schemas)
        condition = self.settings.condition
        self.condition = condition.start(self.layout) if condition is not None else None
        self._progress_view = progress_view(ctx, PROGRESS_TABLE)
        stored = restore_progress(self._progress_view.get_restored(), task=ctx.task_info)
        #: One for each side, because each knows its own keys; they move together.
        self.progress = tuple(FiringProgress(stored, keys=side.keys) for side in self.layout.sides)
        self.open(self.layout, ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        raise NotImplementedError("a join takes rows by input")

    def process_batch_index(
        self, index: int, total_inputs: int, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        column = self.time_column(self.layout.sides[index])
        if column is None:
            times = np.zeros(batch.num_rows, dtype=np.int64)
        else:
            batch, times = self._timed(batch, column, ctx)
            batch, times = self._on_time(index, batch, times, ctx, collector)
        if batch.num_rows:
            self.add(index, batch, times, ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is None:
            return watermark
        onward_us = self.fire(watermark.event_time_us, collector)
        for progress in self.progress:
            progress.advance(watermark.event_time_us)
        return Watermark.event_time(onward_us)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._progress_view.insert(ctx.task_info.task_index, self.progress[LEFT].store())

    def _timed(self, batch: pa.RecordBatch, column: str, ctx: OperatorContext) -> tuple[pa.RecordBatch, Times]:
        """The rows that have an event time, and their times."""
        found = batch.column(column)
        if found.null_count:
            ctx.count("null_event_times", found.null_count)
            batch = batch.filter(found.is_valid())
            found = batch.column(column)
        return batch, times_us(found)

    def _on_time(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> tuple[pa.RecordBatch, Times]:
        progress = self.progress[index]
        if progress.fired_us <= NEVER_US and not progress.is_uneven:
            return batch, times
        is_late = self.last_times_us(index, times) < progress.fired_for(batch)
        if not is_late.any():
            return batch, times
        ctx.count("late_rows", int(is_late.sum()))
        if self.settings.has_late_output:
            collector.collect_side(f"late_{SIDE_NAMES[index]}", batch.filter(pa.array(is_late)))
        return batch.filter(pa.array(~is_late)), times[~is_late]


def need_event_times(inputs: Sequence[ArroyoSchema]) -> None:
    """Raise `ConfigError` unless both inputs have an event time."""
    for name, stream in zip(SIDE_NAMES, inputs, strict=True):
        if stream.timestamp_column is None:
            raise ConfigError(f"the {name} input has no event time: put std.watermark in front")


def emit(batches: Iterable[pa.RecordBatch], collector: ArrowCollector) -> None:
    for batch in batches:
        if batch.num_rows:
            collector.collect(batch)
