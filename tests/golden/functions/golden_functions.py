"""A function for std.process: sums by key until the minute is over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_std import KeyedState, ProcessFunction, Timers

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext

TIME = pa.timestamp("us", tz="UTC")


class SumOfTheMinute(ProcessFunction):
    """Keeps one sum for each customer and minute, sends it when the minute is over, and forgets it."""

    def __init__(self, minute_us: int) -> None:
        self._minute_us = minute_us

    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        return pa.schema({"total": pa.int64()})

    def output_schema(self, stream: ArroyoSchema) -> ArroyoSchema:
        columns = {"customer": pa.string(), "minute": TIME, "total": pa.int64(), "sent_at": TIME}
        return ArroyoSchema(pa.schema(columns), "sent_at", ("customer", "minute"))

    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        rows = pa.Table.from_batches([batch]).group_by(["customer", "minute"], use_threads=False)
        sums = rows.aggregate([("amount", "sum")]).combine_chunks().to_batches()[0]
        former = state.get_aligned(sums).column("total").fill_null(0)
        total = pc.add(former, sums.column("amount_sum").fill_null(0))
        state.put(
            pa.RecordBatch.from_arrays([sums.column("customer"), sums.column("minute"), total], schema=state.schema)
        )
        timers.set(sums, np.asarray(sums.column("minute").cast(pa.int64())) + self._minute_us)

    def on_timer(
        self,
        due: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        found, rows = state.get(due)
        assert found.all(), "a sum was forgotten before it was sent"
        columns = [due.column("customer"), due.column("minute"), rows.column("total"), due.column("timer_at")]
        collector.collect(pa.RecordBatch.from_arrays(columns, schema=ctx.output_schema.schema))
        state.delete(due)
