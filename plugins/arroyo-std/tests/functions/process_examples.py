"""Functions for std.process, as users write them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from arroyo_std import KeyedState, ProcessFunction, Timers

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_core.errors import ConfigError

TIME = pa.timestamp("us", tz="UTC")


class CountUntilQuiet(ProcessFunction):
    """Counts a key's rows, and tells how many there were at a time after each of them, for each time once."""

    def __init__(self, wait_us: int, *, repeats: int = 0) -> None:
        if wait_us < 0:
            raise ConfigError("must not be negative", field="wait_us", value=wait_us)
        self._wait_us = wait_us
        self._repeats = repeats

    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        return pa.schema({"rows": pa.int64()})

    def output_schema(self, stream: ArroyoSchema) -> ArroyoSchema:
        return ArroyoSchema(pa.schema({"k": pa.string(), "rows": pa.int64(), "at": TIME}), "at", ("k",))

    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        counts = pa.Table.from_batches([batch]).group_by("k", use_threads=False).aggregate([([], "count_all")])
        keys = counts.combine_chunks().to_batches()[0]
        former = state.get_aligned(keys).column("rows").fill_null(0).to_numpy()
        state.put(
            pa.RecordBatch.from_arrays(
                [keys.column("k"), pa.array(former + keys.column("count_all").to_numpy())], schema=state.schema
            )
        )
        times = batch.column("at").cast(pa.int64()).to_numpy()
        timers.set(batch, times + self._wait_us)

    def on_timer(
        self,
        due: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        found, rows = state.get(due)
        assert found.all()
        collector.collect(
            pa.RecordBatch.from_arrays(
                [due.column("k"), rows.column("rows"), due.column("timer_at")], schema=ctx.output_schema.schema
            )
        )


class CountOfMoment(ProcessFunction):
    """Counts the rows of a key and an event time, and forgets them when it has told, some time later."""

    def __init__(self, wait_us: int) -> None:
        self._wait_us = wait_us

    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        return pa.schema({"rows": pa.int64()})

    def output_schema(self, stream: ArroyoSchema) -> ArroyoSchema:
        return ArroyoSchema(pa.schema({"k": pa.string(), "at": TIME, "rows": pa.int64()}), "at")

    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        counts = pa.Table.from_batches([batch]).group_by(["k", "at"], use_threads=False).aggregate([([], "count_all")])
        keys = counts.combine_chunks().to_batches()[0]
        former = state.get_aligned(keys).column("rows").fill_null(0).to_numpy()
        rows = pa.array(former + keys.column("count_all").to_numpy())
        state.put(pa.RecordBatch.from_arrays([keys.column("k"), keys.column("at"), rows], schema=state.schema))
        timers.set(keys, keys.column("at").cast(pa.int64()).to_numpy() + self._wait_us)

    def on_timer(
        self,
        due: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        rows = state.get_aligned(due).column("rows")
        told = pa.RecordBatch.from_arrays([due.column("k"), due.column("at"), rows], schema=ctx.output_schema.schema)
        collector.collect(told)
        state.delete(due)


class Countdown(ProcessFunction):
    """Sets one timer for each key, which sets the next, a microsecond later, until the key's number is used up."""

    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        return pa.schema({"left": pa.int64()})

    def output_schema(self, stream: ArroyoSchema) -> ArroyoSchema:
        return ArroyoSchema(pa.schema({"k": pa.string(), "left": pa.int64(), "at": TIME}), "at")

    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        state.put(pa.RecordBatch.from_arrays([batch.column("k"), batch.column("v")], schema=state.schema))
        timers.set(batch, batch.column("at"))

    def on_timer(
        self,
        due: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        left = state.get_aligned(due).column("left").to_numpy()
        collector.collect(
            pa.RecordBatch.from_arrays(
                [due.column("k"), pa.array(left), due.column("timer_at")], schema=ctx.output_schema.schema
            )
        )
        goes_on = pa.array(left > 1)
        more = due.filter(goes_on)
        state.delete(due.filter(pa.array(left <= 1)))
        state.put(pa.RecordBatch.from_arrays([more.column("k"), pa.array(left[left > 1] - 1)], schema=state.schema))
        timers.set(more, np.asarray(more.column("timer_at").cast(pa.int64())) + 1)


class Unfinished(ProcessFunction):
    """Lacks `on_batch`."""


class Clashing(CountUntilQuiet):
    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        return pa.schema({"k": pa.int64()})


class Failing(Countdown):
    def __init__(self) -> None:
        raise OSError("no such host")


NOT_A_CLASS = 7


class Remembering(ProcessFunction):
    """Has arguments of which only one matters to its state."""

    state_arguments = ("wait_us",)

    def __init__(self, wait_us: int = 5, label: str = "", made_of: object = object) -> None:
        self.wait_us = wait_us

    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        return


class Forgetful(Remembering):
    """Has arguments, and says nothing about them."""

    state_arguments = None
