"""`OperatorHarness`: feeds batches and signals to one operator, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

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
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot, Output
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.watermarks import WatermarkHolder
from arroyo_core.state import commit_data, get_storage_provider
from arroyo_testing.clock import FakeClock
from arroyo_testing.subtask import (
    INCARNATION,
    SideOutput,
    Subtask,
    SubtaskState,
    SubtaskTime,
    factory,
    make_context,
    times_for,
)

Makes = ArrowOperator | ConstructedOperator | Callable[[], ArrowOperator | ConstructedOperator]


class OperatorHarness:
    """One subtask of one operator, under the same rules as in a pipeline.

    Pass a function that makes the operator, so that `restore` can make a fresh one; an instance
    does where nothing is restored. `output`, `watermarks` and `events` gather what came out.
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
        self._task_index = task_index
        self.clock = clock or FakeClock()
        self._state = SubtaskState(incarnation=incarnation)
        #: Rows and watermarks, in the order in which they came out.
        self.events: list[pa.RecordBatch | Watermark] = []
        self._sides: dict[str, list[pa.RecordBatch]] = {}
        #: Of the epochs that have ended.
        self._counted: Counter[str] = Counter()
        self._ticks = 0
        self._subtasks: list[Subtask]
        try:
            self._open(parallelism)
        except BaseException:
            self._state.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def operator(self) -> ArrowOperator:
        """The instance that is in use now."""
        return self._subtasks[0].operator

    @property
    def output_schema(self) -> ArroyoSchema:
        return self._subtasks[0].ctx.output_schema

    @property
    def output(self) -> pa.Table:
        """All rows emitted since the start or the last `take_output`."""
        batches = [event for event in self.events if not isinstance(event, Watermark)]
        return pa.Table.from_batches(batches, schema=self.output_schema.schema)

    @property
    def watermarks(self) -> Sequence[Watermark]:
        """All watermarks emitted since the start."""
        return [event for event in self.events if isinstance(event, Watermark)]

    @property
    def side_names(self) -> Sequence[str]:
        return sorted(self._sides)

    def side_output(self, name: str) -> pa.Table:
        """All rows emitted to a side output since the start."""
        return pa.Table.from_batches(self._sides[name], schema=self._subtasks[0].ctx.side_schemas[name].schema)

    @property
    def counters(self) -> Mapping[str, int]:
        """Of all epochs."""
        return sum((Counter(subtask.ctx.metrics.counters) for subtask in self._subtasks), self._counted)

    @property
    def warnings(self) -> Sequence[str]:
        """Of the epoch that runs now."""
        return [warning for subtask in self._subtasks for warning in subtask.ctx.metrics.warnings.values()]

    @property
    def last_token(self) -> CommitToken:
        """The token of a commit of the epoch that `checkpoint` ended last, by the driver of now."""
        return self._state.last_token

    def take_output(self) -> pa.Table:
        table = self.output
        self.events = list(self.watermarks)
        return table

    def feed(self, *batches: pa.RecordBatch, index: int = 0) -> Self:
        """`process` each of them: `harness.feed(batch).output`."""
        for batch in batches:
            self.process(batch, index)
        return self

    def process(self, batch: pa.RecordBatch, index: int = 0) -> None:
        self._subtasks[0].process(batch, index)

    def watermark(self, watermark: Watermark, index: int = 0) -> None:
        """An input's watermark; idleness counts at once, as at the end of an epoch."""
        for subtask in self._subtasks:
            subtask.watermark(watermark, index)

    def tick(self) -> None:
        for subtask in self._subtasks:
            subtask.chain.handle_tick(self._ticks)
        self._ticks += 1

    def end_of_data(self) -> None:
        """Every input ends: the far-future watermark, then `on_close`."""
        for index in range(len(self._inputs)):
            self.watermark(Watermark.event_time(END_OF_TIME_US), index)
        for subtask in self._subtasks:
            subtask.chain.on_close(SignalMessage.END_OF_DATA)
        self._is_ended = True

    def checkpoint(self) -> Mapping[str, Mapping[int, bytes]]:
        """End the epoch; returns the data staged for `commit`."""
        self._state.save(self._write_checkpoints())
        return commit_data(self._state.metadata, get_storage_provider(self._state.url)) if self._state.metadata else {}

    def commit(self, data: Mapping[str, Mapping[int, bytes]], *, token: CommitToken | None = None) -> None:
        """The second phase, for the epoch that `checkpoint` ended last, or for another one by the driver of `token`."""
        token = token or self._state.last_token
        operator = self._committing_operator()
        ctx, _, boundary = make_context(
            RuntimeContext,
            operator=operator,
            state=self._state,
            task_index=self._task_index,
            parallelism=self._parallelism,
            clock=self.clock,
            inputs=self._inputs,
            token=token,
        )
        with boundary:
            operator.handle_commit(token.epoch, data, ctx)
        self._subtasks[0].ctx.metrics.add_notes(ctx.metrics)

    def restore(self) -> None:
        """End the epoch, throw the operator away, and make a fresh one from the last checkpoint, as in a pipeline."""
        self._reopen(self._parallelism)

    def go_on(self) -> None:
        """End the epoch that `checkpoint` closed, and go on with the same instances, as live workers do."""
        self._counted = Counter(self.counters)
        for subtask in self._subtasks:
            self._state.go_on(subtask.ctx, subtask.tables)

    def restore_without_time(self) -> None:
        """As `restore`, behind sources that are read from their beginning again: watermarks start over."""
        self._end_epoch()
        self._open(self._parallelism)

    def close(self) -> None:
        self._state.close()

    def send(self, batch: pa.RecordBatch) -> None:
        self.events.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        self.events.append(watermark)

    def _indices(self, parallelism: int) -> Sequence[int]:
        """The subtasks that there are."""
        return [self._task_index]

    def _committing_operator(self) -> ArrowOperator:
        return self.operator

    def _write_checkpoints(self) -> list[bytes]:
        barrier = self._state.barrier(self.clock)
        for subtask in self._subtasks:
            subtask.chain.handle_checkpoint(barrier)
        return [subtask.tables.checkpoint(barrier) for subtask in self._subtasks]

    def _end_epoch(self) -> None:
        if not self._is_ended:
            for subtask in self._subtasks:
                subtask.chain.on_close(None)
        self._counted = Counter(self.counters)

    def _reopen(self, parallelism: int) -> None:
        self._end_epoch()
        self._open(parallelism, [subtask.time for subtask in self._subtasks])

    def _open(self, parallelism: int, times: Sequence[SubtaskTime] = (SubtaskTime(),)) -> None:
        """Make fresh subtasks from the last checkpoint, which start with the watermarks of former ones."""
        self._parallelism = parallelism
        self._is_ended = False
        indices = self._indices(parallelism)
        self._subtasks = [
            self._open_subtask(index, time) for index, time in zip(indices, times_for(times, len(indices)), strict=True)
        ]
        for subtask in self._subtasks:
            subtask.chain.on_start()

    def _open_subtask(self, index: int, time: SubtaskTime) -> Subtask:
        operator: ArrowOperator = self._make()
        ctx, tables, boundary = make_context(
            RuntimeContext,
            operator=operator,
            state=self._state,
            task_index=index,
            parallelism=self._parallelism,
            clock=self.clock,
            inputs=self._inputs,
            levels=time.levels,
        )
        sides: list[tuple[str | None, Output]] = [
            (name, SideOutput(self._sides.setdefault(name, []))) for name in ctx.side_schemas
        ]
        return Subtask(
            operator=operator,
            ctx=ctx,
            tables=tables,
            chain=ChainedOperator([OperatorSlot(operator, ctx, boundary)], [(None, self), *sides]),
            holder=WatermarkHolder(
                [(number, 0) for number in range(len(self._inputs))], restored=time.channels, merged=time.levels.input
            ),
            input_count=len(self._inputs),
        )
