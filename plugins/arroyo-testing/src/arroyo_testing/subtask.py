"""The state and the contexts of one subtask under test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    CommitToken,
    ConstructedOperator,
    TaskInfo,
    Watermark,
)
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, SubtaskCheckpointMetadata
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.carry import NEW, OperatorLevels, levels_for
from arroyo_core.runtime.chain import ChainedOperator
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch
from arroyo_core.runtime.tables import OperatorTables, TableOpener
from arroyo_core.runtime.watermarks import Channel, Level, WatermarkHolder, least_level
from arroyo_core.state import merge_operator_metadata
from arroyo_testing.clock import FakeClock

OperatorT = TypeVar("OperatorT")
ContextT = TypeVar("ContextT", bound=RuntimeContext)

#: The incarnation of the job that a harness pretends to be, unless it is told another one.
INCARNATION = "00000000000000a1"


class SubtaskState:
    """What survives when the operator under test is thrown away: its checkpoint, in a temporary folder."""

    def __init__(self, *, incarnation: str = INCARNATION) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="arroyo-harness-", ignore_cleanup_errors=True)
        self.url = Path(self._folder.name).as_uri()
        self.epoch = 1
        self.incarnation = incarnation
        #: Of the driver: one more for each that takes over.
        self.generation = 1
        self.metadata: OperatorCheckpointMetadata | None = None

    def close(self) -> None:
        self._folder.cleanup()

    def open(self, operator: Any, task: TaskInfo, inputs: Sequence[ArroyoSchema]) -> OperatorTables:
        stored = {task.operator_id: self.metadata.SerializeToString()} if self.metadata else {}
        opener = TableOpener(self.url, stored, incarnation=self.incarnation)
        return opener.open(operator, task, inputs, lives_on=operator.lives_on())

    @property
    def token(self) -> CommitToken:
        """Of the epoch that runs now."""
        return CommitToken(self.incarnation, self.generation, self.epoch)

    @property
    def last_token(self) -> CommitToken:
        """For the commit of the epoch that ended last."""
        return replace(self.token, epoch=self.epoch - 1)

    def barrier(self, clock: FakeClock) -> CheckpointBarrier:
        return CheckpointBarrier(epoch=self.epoch, min_epoch=1, timestamp_us=clock.now_us())

    def go_on(self, ctx: RuntimeContext, tables: OperatorTables) -> None:
        """Let an instance serve the epoch that runs now, after the last one, as live workers do."""
        tables.go_on(self.metadata.SerializeToString() if self.metadata else None)
        ctx.begin_epoch(self.token, clock=ctx.clock, metrics=OperatorMetrics(), levels=ctx.levels)

    def save(self, checkpoints: Sequence[bytes]) -> None:
        """The epoch's checkpoint from all subtasks; the next epoch starts from it."""
        parts = [SubtaskCheckpointMetadata.FromString(data) for data in checkpoints if data]
        self.metadata = merge_operator_metadata(parts) if parts else None
        self.epoch += 1


@dataclass(frozen=True, slots=True)
class SubtaskTime:
    """The watermarks of one subtask at the end of an epoch."""

    levels: OperatorLevels = NEW
    #: What came over each of its inputs.
    channels: Mapping[Channel, Level] = field(default_factory=dict)


def times_for(times: Sequence[SubtaskTime], parallelism: int) -> Sequence[SubtaskTime]:
    """What so many subtasks start with, as in a pipeline: where their number changes, the least of all."""
    if len(times) == parallelism:
        return times
    levels = levels_for([time.levels for time in times], parallelism)
    channels = {name: least_level(time.channels[name] for time in times) for name in times[0].channels}
    return [SubtaskTime(each, channels) for each in levels]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """An instance of the operator, with all that it has in a task."""

    operator: ArrowOperator
    ctx: RuntimeContext
    tables: OperatorTables
    chain: ChainedOperator
    holder: WatermarkHolder
    input_count: int

    @property
    def time(self) -> SubtaskTime:
        return SubtaskTime(self.ctx.levels, dict(self.holder.channels))

    def process(self, batch: pa.RecordBatch, index: int) -> None:
        self.chain.process_batch(batch, index=index, total_inputs=self.input_count)

    def watermark(self, watermark: Watermark, index: int) -> None:
        """A watermark of one input, whose idleness counts at once, as at the end of an epoch."""
        for moved in (*self.holder.update((index, 0), watermark), *self.holder.end_epoch((index, 0))):
            self.chain.handle_watermark(moved)


class SideOutput:
    """Gathers the rows of a side output."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches

    def send(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        return


def make_context(
    kind: type[ContextT],
    *,
    operator: Any,
    state: SubtaskState,
    task_index: int,
    parallelism: int,
    clock: FakeClock,
    inputs: Sequence[ArroyoSchema],
    levels: OperatorLevels = NEW,
    token: CommitToken | None = None,
) -> tuple[ContextT, OperatorTables, Boundary]:
    task = TaskInfo(
        job_id="test",
        operator_id="operator",
        operator_name=operator.name(),
        task_index=task_index,
        parallelism=parallelism,
    )
    tables = state.open(operator, task, inputs)
    metrics = OperatorMetrics()
    token = token or state.token
    ctx = kind(
        task_info=task,
        table_manager=tables.manager,
        clock=clock,
        input_schemas=inputs,
        output_schema=operator.output_schema(inputs),
        token=token,
        metrics=metrics,
        side_schemas=operator.side_outputs(inputs) if isinstance(operator, ArrowOperator) else None,
        levels=levels,
    )
    tables.ctx = ctx
    return ctx, tables, Boundary(task, token.epoch, metrics, Stopwatch())


def unwrap(made: Any) -> Any:
    """The operator itself, from what a constructor or a test gave."""
    return made.inner if isinstance(made, ConstructedOperator) else made


def factory(given: Any) -> Callable[[], Any]:
    """A maker of fresh instances; from an instance, a maker that works once."""
    if callable(given) and not isinstance(given, ConstructedOperator):
        return lambda: unwrap(given())
    instances = [unwrap(given)]

    def only_once() -> Any:
        if not instances:
            raise TypeError("pass a function that makes the operator: restoring needs a fresh instance")
        return instances.pop()

    return only_once
