"""Streams that come in rounds over several lanes, and pipelines that read them with their epochs cut anywhere.

A lane is a part of a stream with an order of its own, as a partition of a topic is. Each subtask of the source
reads the lanes that fall to it, so that a change of parallelism moves lanes. In a round a lane may have rows,
say how far it is, be idle, or be quiet. Which rounds make an epoch is given, lane by lane.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from google.protobuf.struct_pb2 import Struct

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.api.hashing import hash_batch, subtasks_of
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_core.runtime.watermarks import UNSET, Level, least_level
from arroyo_core.state import global_table_config
from arroyo_testing.cases.operators import CaptureConfig, CaptureSink, case_origin, read_captured
from arroyo_testing.clock import FakeClock
from arroyo_testing.lanes import InlineLanes
from arroyo_testing.live import live_executor

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig

#: For each epoch, how many rounds each lane has done at its end.
Cuts = Sequence[Sequence[int]]

_POSITIONS = "positions"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a lane does in one round: rows, and after them a watermark. With neither it is quiet."""

    rows: pa.RecordBatch | None = None
    watermark: Watermark | None = None
    #: How much time passes after that, once the task has taken the rows.
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class RoundStream:
    """A stream as its lanes, each with one turn for every round."""

    schema: ArroyoSchema
    lanes: Sequence[Sequence[Turn]]

    @property
    def rounds(self) -> int:
        return len(self.lanes[0])


class RoundSource(SourceOperator):
    """Plays the rounds of an epoch, all lanes of one round before the next.

    A source has a thread of its own. `taken` is how many rows the task has taken in this epoch, by subtask.
    """

    def __init__(self, stream: RoundStream, cuts: Cuts, taken: Counter[int]) -> None:
        self._stream = stream
        self._cuts = cuts
        self._taken = taken

    def name(self) -> str:
        return "test.rounds"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._stream.schema

    def tables(self) -> dict[str, TableConfig]:
        return global_table_config(_POSITIONS, "the rounds that each lane has done")

    def on_start(self, ctx: SourceContext) -> None:
        self._taken[ctx.task_info.task_index] = self._given = 0
        self._view = ctx.table_manager.get_global_keyed_state(_POSITIONS, key_type=int, value_type=int)

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        lanes = self._lanes(ctx)
        ends = self._cuts[min(ctx.epoch, len(self._cuts)) - 1]
        starts = {lane: self._view.get(lane) or 0 for lane in lanes}
        levels = {lane: self._level(lane, starts[lane]) for lane in lanes}
        announced = self._announce(levels, UNSET, collector)
        for number in range(self._stream.rounds):
            for lane in lanes:
                if starts[lane] <= number < ends[lane]:
                    turn = self._stream.lanes[lane][number]
                    self._give(turn, ctx, collector)
                    if turn.watermark is not None:
                        levels[lane] = levels[lane].after(turn.watermark)
                        announced = self._announce(levels, announced, collector)
                    self._pass_time(turn, ctx)
        for lane in lanes:
            self._view.insert(lane, ends[lane])
        is_done = all(ends[lane] == self._stream.rounds for lane in lanes)
        return SourceFinishType.FINAL if is_done else SourceFinishType.CHECKPOINTED

    def _lanes(self, ctx: SourceContext) -> list[int]:
        task = ctx.task_info
        is_keyed = self._stream.schema.key_columns is not None
        return [
            lane for lane in range(len(self._stream.lanes)) if is_keyed or lane % task.parallelism == task.task_index
        ]

    def _give(self, turn: Turn, ctx: SourceContext, collector: SourceCollector) -> None:
        if turn.rows is not None:
            rows = self._own(turn.rows, ctx)
            collector.collect(rows)
            self._given += rows.num_rows

    def _pass_time(self, turn: Turn, ctx: SourceContext) -> None:
        if turn.seconds and isinstance(ctx.clock, FakeClock):
            while self._taken[ctx.task_info.task_index] < self._given and ctx.wait(0.001) is None:
                pass
            ctx.clock.advance(turn.seconds)

    def _own(self, rows: pa.RecordBatch, ctx: SourceContext) -> pa.RecordBatch:
        """Those of a stream that has keys are where their keys belong."""
        keys = self._stream.schema.key_columns
        if keys is None:
            return rows
        owners = subtasks_of(hash_batch(rows, keys), ctx.task_info.parallelism)
        return rows.filter(pa.array(np.asarray(owners == ctx.task_info.task_index)))

    def _level(self, lane: int, rounds: int) -> Level:
        level = UNSET
        for turn in self._stream.lanes[lane][:rounds]:
            level = level if turn.watermark is None else level.after(turn.watermark)
        return level

    def _announce(self, levels: Mapping[int, Level], announced: Level, collector: SourceCollector) -> Level:
        level = least_level(levels.values())
        for watermark in level.since(announced):
            collector.broadcast_watermark(watermark)
        return level


class _Taking(ArrowOperator):
    """Stands right behind a source: passes rows on, and counts them when they have been dealt with."""

    def __init__(self, taken: Counter[int]) -> None:
        self._taken = taken

    def name(self) -> str:
        return "test.taking"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        collector.collect(batch)
        self._taken[ctx.task_info.task_index] += batch.num_rows


class _Made(OperatorConstructor[Struct]):
    """Makes what it was told to, whatever the config."""

    config_type = Struct

    def __init__(self, make: Callable[[], ConstructedOperator]) -> None:
        self._make = make

    def with_config(self, config: Struct, registry: Registry) -> ConstructedOperator:
        return self._make()


@dataclass(frozen=True, slots=True)
class Life:
    """A driver that dies after so many epochs; None for one that lives to the end."""

    parallelism: int
    epochs: int | None = None
    #: Other nodes than those of the pipeline.
    nodes: Sequence[Mapping[str, Any]] | None = None
    #: Whether operators live on from epoch to epoch where they can.
    lives_on: bool = False
    #: Whether epochs run in live workers, as threads, with what they send going through sockets.
    is_live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPipeline:
    """A pipeline that reads streams in rounds, run in this process: what comes out for any cut.

    `nodes` are written as in a file. They read `stream0`, `stream1` and so on, and `outputs` are those whose rows are
    captured: a node, or a side output of one.
    """

    nodes: Sequence[Mapping[str, Any]]
    streams: Sequence[RoundStream]
    registry: Registry
    outputs: Sequence[str]

    def run(self, folder: Path, cuts: Cuts, lives: Sequence[Life]) -> dict[str, dict[tuple[int, int], pa.Table]]:
        """The committed rows of each output, by epoch and subtask and in their order; the folder must be empty."""
        plugins = self._plugins(folder, cuts)
        for life in lives:
            executor = (
                live_executor(plugins)
                if life.is_live
                else LocalExecutor(plugins, clock=FakeClock(), lives_on=life.lives_on)
            )
            job = Job(
                self._plan(plugins, life),
                Clocked(executor, FakeClock()) if life.is_live else executor,
                plugins=plugins,
                storage_url=f"{folder}/state",
                clock=FakeClock(),
                lanes=InlineLanes(),
            )
            try:
                _live(job, life.epochs)
            finally:
                job.close()
                executor.close()
        return {output: read_captured(f"{folder}/out", _sink(output)) for output in self.outputs}

    def _plan(self, plugins: PluginSet, life: Life) -> Plan:
        sources = [f"stream{index}" for index in range(len(self.streams))]
        nodes = [
            *({"id": f"{name}_lanes", "operator": f"test.{name}_lanes"} for name in sources),
            *({"id": name, "operator": f"test.{name}", "inputs": [f"{name}_lanes"]} for name in sources),
            *(self.nodes if life.nodes is None else life.nodes),
            *(
                {"id": _sink(output), "operator": f"test.{_sink(output)}", "inputs": [output]}
                for output in self.outputs
            ),
        ]
        document = {
            "name": "rounds",
            "parallelism": life.parallelism,
            "checkpoint": {"url": "unused", "interval": "1h", "keep": 100},
            "nodes": nodes,
        }
        # A dollar sign is only special in files that people write.
        return plan_text(json.dumps(document, default=str).replace("$", "$$"), plugins=plugins, environment={})

    def _plugins(self, folder: Path, cuts: Cuts) -> PluginSet:
        registry = self.registry.with_udfs(())
        with registry.registering(case_origin()):
            for index, stream in enumerate(self.streams):
                taken: Counter[int] = Counter()
                registry.add(f"test.stream{index}_lanes", _Made(_source(stream, cuts, taken)))
                registry.add(f"test.stream{index}", _Made(_taking(taken)))
            for output in self.outputs:
                registry.add(f"test.{_sink(output)}", _Made(_capture(f"{folder}/out", _sink(output))))
        return PluginSet(registry, ())


@dataclass(frozen=True, slots=True)
class Clocked:
    """Gives the tasks of an executor a clock; each takes a copy of it for each epoch."""

    inner: EpochExecutor
    clock: FakeClock

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]:
        return self.inner.run_epoch(plan, replace(request, clock=self.clock))

    def cancel(self) -> None:
        self.inner.cancel()

    def progress(self) -> str:
        return self.inner.progress()


def _live(job: Job, epochs: int | None) -> None:
    job.begin()
    while not job.is_ended and epochs != 0:
        if isinstance(job.step(), Committed) and epochs is not None:
            epochs -= 1


def _sink(output: str) -> str:
    return f"out_{output.replace('.', '_')}"


def _source(stream: RoundStream, cuts: Cuts, taken: Counter[int]) -> Callable[[], ConstructedOperator]:
    return lambda: ConstructedOperator.from_source(RoundSource(stream, cuts, taken))


def _taking(taken: Counter[int]) -> Callable[[], ConstructedOperator]:
    return lambda: ConstructedOperator.from_operator(_Taking(taken))


def _capture(url: str, name: str) -> Callable[[], ConstructedOperator]:
    return lambda: ConstructedOperator.from_operator(CaptureSink(CaptureConfig(url, name)))
