"""`std.async_udf`: a column computed by calls that wait, many of them at a time."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    SignalMessage,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_core.udf import AsyncUdf
from arroyo_std.fitting import check_arguments
from arroyo_std.in_flight import Calls, InFlight, to_column
from arroyo_std.on_error import OnError, RowErrors

#: Results of a slow stream do not wait for its next row.
_TICK = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A batch, and the calls for its rows."""

    batch: pa.RecordBatch
    calls: Calls


class AsyncCalls(ArrowOperator):
    """Adds what a function under `@async_udf` gives for each row.

    No more calls are under way than the function's concurrency. All are finished before a watermark or a
    barrier goes on, so an epoch that is run again calls again, and nothing waits in state.
    """

    def __init__(
        self, function: AsyncUdf, *, arguments: Sequence[str], alias: str, on_error: OnError = OnError.FAIL
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._alias = alias
        self._errors = RowErrors(on_error)
        self._pending: deque[_Pending] = deque()

    def name(self) -> str:
        return "std.async_udf"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        fields = [f"arguments[{place}]" for place in range(len(self._arguments))]
        check_arguments(self._function, self._arguments, stream.schema, fields=fields)
        if self._alias in stream.names:
            raise ConfigError(
                f"there is a column {self._alias!r} already: give another name", field="as", value=self._alias
            )
        schema = stream.schema.append(pa.field(self._alias, self._function.return_type))
        return ArroyoSchema(schema, stream.timestamp_column, stream.key_columns)

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        return self._errors.side_outputs(inputs[0])

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        if self._errors.keeps_rows:
            return [None]
        return [{*(needed - {self._alias}), *self._arguments}]

    def tick_interval(self) -> timedelta | None:
        return _TICK

    def display(self) -> DisplayableOperator:
        function = self._function
        timeout = format_duration_us(function.timeout_us) if function.timeout_us is not None else "none"
        return DisplayableOperator(
            self.name(),
            [
                ("function", f"{function.name}({', '.join(self._arguments)}) as {self._alias}"),
                ("concurrency", str(function.concurrency)),
                ("timeout", timeout),
                ("retries", str(function.retries)),
                ("order", "kept" if function.is_ordered else "by completion"),
                *self._errors.display(),
            ],
        )

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._schema = ctx.output_schema.schema
        self._in_flight = InFlight(self._function, is_fatal=self._errors.is_fatal)
        # An epoch that fails elsewhere drops its operators without a word; nobody wants their calls then.
        weakref.finalize(self, self._in_flight.cancel).atexit = False

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        calls = self._in_flight.submit([batch.column(name) for name in self._arguments])
        self._pending.append(_Pending(batch, calls))
        # What waits beyond that would only take memory.
        self._in_flight.wait(self._function.concurrency)
        self._emit(ctx, collector)

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._emit(ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        self._drain(ctx, collector)
        return watermark

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._drain(ctx, collector)

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        if final_message is not None:
            self._drain(ctx, collector)
        return final_message

    def _drain(self, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._in_flight.wait(0)
        self._emit(ctx, collector)

    def _emit(self, ctx: OperatorContext, collector: ArrowCollector) -> None:
        for batch, calls, rows in self._finished():
            column, errors = to_column(self._function, calls, rows)
            if len(rows) < batch.num_rows:
                batch = batch.take(pa.array(rows))
            if errors:
                if self._errors.is_fatal:
                    self._in_flight.cancel()
                    raise next(iter(errors.values()))
                has_failed = np.isin(np.asarray(rows), list(errors))
                failures = [errors[row] for row in rows if row in errors]
                self._errors.reject(batch.filter(pa.array(has_failed)), failures, ctx, collector)
                if self._errors.keeps_rows:
                    succeeded = pa.array(~has_failed)
                    batch, column = batch.filter(succeeded), column.filter(succeeded)
            collector.collect(pa.RecordBatch.from_arrays([*batch.columns, column], schema=self._schema))

    def _finished(self) -> Iterator[tuple[pa.RecordBatch, Calls, list[int]]]:
        """Rows that may be sent, with the calls of their batch: in order only where all before them are finished."""
        if self._function.is_ordered:
            while self._pending and self._pending[0].calls.unfinished == 0:
                first = self._pending.popleft()
                yield first.batch, first.calls, list(range(first.batch.num_rows))
            return
        for each in list(self._pending):
            is_done = each.calls.unfinished == 0
            rows = each.calls.take_finished()
            if rows:
                yield each.batch, each.calls, rows
            if is_done:
                self._pending.remove(each)
