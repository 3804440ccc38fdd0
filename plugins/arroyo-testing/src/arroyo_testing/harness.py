"""`OperatorHarness`: feeds batches and signals to one operator, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pyarrow as pa

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowOperator,
    ArroyoSchema,
    CommitToken,
    ConstructedOperator,
    SignalMessage,
    Watermark,
)
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.carry import NEW, OperatorLevels
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot, Output
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.runtime.watermarks import Channel, Level, WatermarkHolder
from arroyo_core.state import commit_data, get_storage_provider
from arroyo_testing.clock import FakeClock
from arroyo_testing.subtask import INCARNATION, SideOutput, SubtaskState, factory, make_context, tell

Makes = ArrowOperator | ConstructedOperator | Callable[[], ArrowOperator | ConstructedOperator]


class OperatorHarness:
    """One subtask of one operator, under the same rules as in a pipeline.

    Pass a function that makes the operator, so that `restore` can make a fresh one; an instance
    does where nothing is restored. `output` and `watermarks` gather what came out.
    """

    def __init__(
        self,
        make: Makes,
        *,
        inputs: Sequence[ArroyoSchema],
        parallelism: int = 1,
        task_index: int = 0,
        clock: FakeClock | None = None,
        incarnation: str = INCARNATION,
    ) -> None:
        self._make = factory(make)
        self._inputs = inputs
        self._parallelism = parallelism
        self._task_index = task_index
        self.clock = clock or FakeClock()
        self._state = SubtaskState(incarnation=incarnation)
        self._batches: list[pa.RecordBatch] = []
        self._sides: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
        self.watermarks: list[Watermark] = []
        self._ticks = 0
        try:
            self._open()
        except BaseException:
            self._state.close()
            raise

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def operator(self) -> ArrowOperator:
        return self._slot.operator

    @property
    def output_schema(self) -> ArroyoSchema:
        return self._slot.ctx.output_schema

    @property
    def output(self) -> pa.Table:
        """All rows emitted since the start or the last `take_output`."""
        return pa.Table.from_batches(self._batches, schema=self.output_schema.schema)

    def side_output(self, name: str) -> pa.Table:
        """All rows emitted to a side output since the start."""
        return pa.Table.from_batches(self._sides[name], schema=self._slot.ctx.side_schemas[name].schema)

    @property
    def counters(self) -> Mapping[str, int]:
        return self._slot.ctx.metrics.counters

    @property
    def warnings(self) -> Sequence[str]:
        return list(self._slot.ctx.metrics.warnings.values())

    def take_output(self) -> pa.Table:
        table = self.output
        self._batches = []
        return table

    def process(self, batch: pa.RecordBatch, index: int = 0) -> None:
        self._chain.process_batch(batch, index=index, total_inputs=len(self._inputs))

    def watermark(self, watermark: Watermark, index: int = 0) -> None:
        """An input's watermark; idleness counts at once, as at the end of an epoch."""
        tell(self._chain, self._holder, index, watermark)

    def tick(self) -> None:
        self._chain.handle_tick(self._ticks)
        self._ticks += 1

    def end_of_data(self) -> None:
        """Every input ends: the far-future watermark, then `on_close`."""
        for index in range(len(self._inputs)):
            self.watermark(Watermark.event_time(END_OF_TIME_US), index)
        self._chain.on_close(SignalMessage.END_OF_DATA)

    def checkpoint(self) -> Mapping[str, Mapping[int, bytes]]:
        """End the epoch; returns the data staged for `commit`."""
        barrier = self._state.barrier(self.clock)
        self._chain.handle_checkpoint(barrier)
        self._state.save([self._tables.checkpoint(barrier)])
        return commit_data(self._state.metadata, get_storage_provider(self._state.url)) if self._state.metadata else {}

    def commit(self, data: Mapping[str, Mapping[int, bytes]]) -> None:
        """The second phase, for the epoch that `checkpoint` ended last."""
        token = self._state.last_token
        ctx, _, boundary = self._context(self.operator, token)
        with boundary:
            self.operator.handle_commit(token.epoch, data, ctx)
        self._slot.ctx.metrics.add_notes(ctx.metrics)

    def restore(self) -> None:
        """Throw the operator away and make a fresh one from the last checkpoint, as every epoch does."""
        self._open(dict(self._holder.channels), self._slot.ctx.levels)

    def close(self) -> None:
        self._state.close()

    def send(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        self.watermarks.append(watermark)

    def _open(self, channels: Mapping[Channel, Level] | None = None, levels: OperatorLevels = NEW) -> None:
        operator: ArrowOperator = self._make()
        ctx, self._tables, boundary = self._context(operator, levels=levels)
        self._slot = OperatorSlot(operator, ctx, boundary)
        sides: list[tuple[str | None, Output]] = [(name, SideOutput(self._sides[name])) for name in ctx.side_schemas]
        self._chain = ChainedOperator([self._slot], [(None, self), *sides])
        self._holder = WatermarkHolder(
            [(index, 0) for index in range(len(self._inputs))], restored=channels, merged=levels.input
        )
        self._chain.on_start()

    def _context(
        self, operator: ArrowOperator, token: CommitToken | None = None, levels: OperatorLevels = NEW
    ) -> tuple[RuntimeContext, OperatorTables, Boundary]:
        return make_context(
            RuntimeContext,
            operator=operator,
            state=self._state,
            task_index=self._task_index,
            parallelism=self._parallelism,
            clock=self.clock,
            inputs=self._inputs,
            token=token,
            levels=levels,
        )
