"""`ParallelHarness`: all subtasks of one operator, which may become more or fewer at every restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType

import pyarrow as pa

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowOperator,
    ArroyoSchema,
    SignalMessage,
    Watermark,
)
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot, Output
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.exchange import RebalanceRouter, Router, ShuffleRouter
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.runtime.watermarks import WatermarkHolder
from arroyo_core.state import commit_data
from arroyo_core.testing.clock import FakeClock
from arroyo_core.testing.harness import Makes
from arroyo_core.testing.subtask import SideOutput, SubtaskState, factory, make_context


class ParallelHarness:
    """Routes rows to the subtasks as a pipeline would, by the operator's `routing_keys`.

    `make` is a function that makes the operator. `output` gathers what came out of all subtasks, in
    the order in which they were called.
    """

    def __init__(
        self, make: Makes, *, inputs: Sequence[ArroyoSchema], parallelism: int = 1, clock: FakeClock | None = None
    ) -> None:
        self._make = factory(make)
        self._inputs = inputs
        self.clock = clock or FakeClock()
        self._state = SubtaskState()
        self._batches: list[pa.RecordBatch] = []
        self._sides: dict[str, list[pa.RecordBatch]] = {}
        self._counters: Counter[str] = Counter()
        self._last_us: int | None = None
        self._input_watermarks: list[Watermark | None] = [None] * len(inputs)
        self._ticks = 0
        try:
            self._open(parallelism)
        except BaseException:
            self._state.close()
            raise

    def __enter__(self) -> ParallelHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def output(self) -> pa.Table:
        """All rows emitted since the start or the last `take_output`."""
        return pa.Table.from_batches(self._batches, schema=self._slots[0].ctx.output_schema.schema)

    @property
    def counters(self) -> Mapping[str, int]:
        """Of all subtasks and all epochs."""
        return self._counters + Counter(
            {
                name: sum(slot.ctx.metrics.counters.get(name, 0) for slot in self._slots)
                for name in self._counter_names()
            }
        )

    def side_output(self, name: str) -> pa.Table:
        return pa.Table.from_batches(self._sides[name], schema=self._slots[0].ctx.side_schemas[name].schema)

    def take_output(self) -> pa.Table:
        table = self.output
        self._batches.clear()
        return table

    def process(self, batch: pa.RecordBatch, index: int = 0) -> None:
        for subtask, part in self._routers[index].route(batch):
            self._chains[subtask].process_batch(part, index=index, total_inputs=len(self._inputs))

    def watermark(self, watermark: Watermark, index: int = 0) -> None:
        for holder, chain in zip(self._holders, self._chains, strict=True):
            moved = holder.update((index, 0), watermark)
            if moved is not None:
                chain.handle_watermark(moved)

    def tick(self) -> None:
        for chain in self._chains:
            chain.handle_tick(self._ticks)
        self._ticks += 1

    def end_of_data(self) -> None:
        """Every input ends: the far-future watermark, then `on_close`."""
        for index in range(len(self._inputs)):
            self.watermark(Watermark.event_time(END_OF_TIME_US), index)
        for chain in self._chains:
            chain.on_close(SignalMessage.END_OF_DATA)

    def checkpoint(self) -> Mapping[str, Mapping[int, bytes]]:
        """End the epoch in every subtask; returns the data staged for a commit."""
        barrier = self._state.barrier(self.clock)
        for chain in self._chains:
            chain.handle_checkpoint(barrier)
        self._state.save([tables.checkpoint(barrier) for tables in self._tables])
        return commit_data(self._state.metadata) if self._state.metadata else {}

    def restore(self, parallelism: int | None = None) -> None:
        """Throw all subtasks away and make so many from the last checkpoint."""
        self._counters = Counter(self.counters)
        self._input_watermarks = [self._holders[0].input_watermark(index) for index in range(len(self._inputs))]
        self._last_us = self._slots[0].ctx.last_present_watermark()
        self._open(parallelism or len(self._slots))

    def close(self) -> None:
        self._state.close()

    def send(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        return

    def _open(self, parallelism: int) -> None:
        self._slots: list[OperatorSlot] = []
        self._tables: list[OperatorTables] = []
        self._chains: list[ChainedOperator] = []
        self._holders: list[WatermarkHolder] = []
        for subtask in range(parallelism):
            self._open_subtask(subtask, parallelism)
        keys = self._slots[0].operator.routing_keys(self._inputs)
        self._routers: list[Router] = [
            RebalanceRouter(0, parallelism) if wanted is None else ShuffleRouter(tuple(wanted), parallelism)
            for wanted in keys
        ]
        for chain in self._chains:
            chain.on_start()

    def _open_subtask(self, subtask: int, parallelism: int) -> None:
        operator: ArrowOperator = self._make()
        ctx, tables, boundary = make_context(
            RuntimeContext,
            operator=operator,
            state=self._state,
            task_index=subtask,
            parallelism=parallelism,
            clock=self.clock,
            inputs=self._inputs,
        )
        slot = OperatorSlot(operator, ctx, boundary)
        sides: list[tuple[str | None, Output]] = [
            (name, SideOutput(self._sides.setdefault(name, []))) for name in ctx.side_schemas
        ]
        holder = WatermarkHolder((index, 0) for index in range(len(self._inputs)))
        for index, watermark in enumerate(self._input_watermarks):
            holder.restore((index, 0), watermark)
        if self._last_us is not None:
            ctx.advance(Watermark.event_time(self._last_us))
        self._slots.append(slot)
        self._tables.append(tables)
        self._chains.append(ChainedOperator([slot], [(None, self), *sides]))
        self._holders.append(holder)

    def _counter_names(self) -> set[str]:
        return {name for slot in self._slots for name in slot.ctx.metrics.counters}
