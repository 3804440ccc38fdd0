"""`std.assign_window`: gives each row the window, or the windows, that it is in."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, DisplayableOperator, OperatorContext
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.groups import Mask
from arroyo_std.large_rows import take_batches
from arroyo_std.windows.layout import WINDOW_COLUMNS, WINDOW_TIME
from arroyo_std.windows.times import TIME_TYPE, Times, times_us
from arroyo_std.windows.tumbling import Grid


class AssignWindow(ArrowOperator):
    """Adds the columns of a window, and makes `window_time` the event time.

    A window's last moment is not before the row, so what a watermark promises of the rows is true of it, too.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def name(self) -> str:
        return "std.assign_window"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        if stream.timestamp_column is None:
            raise ConfigError("windows need an event time, and the stream has none: put std.watermark in front")
        for name in WINDOW_COLUMNS:
            if name in stream.names:
                raise ConfigError(f"the output has a column {name!r} of its own: rename yours with std.project")
        window = [pa.field(name, TIME_TYPE) for name in WINDOW_COLUMNS]
        return ArroyoSchema(pa.schema([*stream.schema, *window]), WINDOW_TIME, stream.key_columns)

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        assert inputs[0].timestamp_column is not None
        return [(needed - set(WINDOW_COLUMNS)) | {inputs[0].timestamp_column}]

    def display(self) -> DisplayableOperator:
        fields = [("size", format_duration_us(self._grid.size_us))]
        if self._grid.slide_us != self._grid.size_us:
            fields.append(("slide", format_duration_us(self._grid.slide_us)))
        if self._grid.offset_us:
            fields.append(("offset", format_duration_us(self._grid.offset_us)))
        return DisplayableOperator(self.name(), fields)

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._time_column = ctx.input_schemas[0].timestamp_column
        self._output = ctx.output_schema.schema

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        grid = self._grid
        windows = grid.size_us // grid.slide_us
        times = batch.column(self._time_column)
        no_time = times.is_null().to_numpy(zero_copy_only=False) if times.null_count else None
        starts = grid.bins(times_us(times.fill_null(0) if times.null_count else times))
        if windows == 1:
            self._collect(batch, starts, no_time, collector)
            return
        numbers = np.repeat(np.arange(batch.num_rows), windows)
        # A row's windows, the earliest first.
        before = np.arange(windows - 1, -1, -1, dtype=np.int64) * grid.slide_us
        starts = starts[numbers] - np.tile(before, batch.num_rows)
        no_time = None if no_time is None else no_time[numbers]
        done = 0
        # Wide rows of many windows come in several batches.
        for part in take_batches(batch, numbers):
            own = slice(done, done + part.num_rows)
            self._collect(part, starts[own], None if no_time is None else no_time[own], collector)
            done += part.num_rows

    def _collect(self, rows: pa.RecordBatch, starts: Times, no_time: Mask | None, collector: ArrowCollector) -> None:
        moments = (starts, starts + self._grid.size_us, starts + self._grid.size_us - 1)
        window = [pa.array(values, pa.int64(), mask=no_time).cast(TIME_TYPE) for values in moments]
        collector.collect(pa.RecordBatch.from_arrays([*rows.columns, *window], schema=self._output))
