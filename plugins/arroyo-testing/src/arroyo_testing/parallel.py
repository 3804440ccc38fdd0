"""`ParallelHarness`: all subtasks of one operator, which may become more or fewer at every restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import pyarrow as pa

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowOperator,
    ArroyoSchema,
    CommitToken,
    SignalMessage,
    Watermark,
)
from arroyo_core.runtime.carry import NEW, OperatorLevels
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot, Output
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.exchange import RebalanceRouter, Router, ShuffleRouter
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.runtime.watermarks import Channel, Level, WatermarkHolder
from arroyo_core.state import commit_data, get_storage_provider
from arroyo_testing.clock import FakeClock
from arroyo_testing.harness import Makes
from arroyo_testing.subtask import INCARNATION, SideOutput, SubtaskState, factory, make_context, tell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What there was at the last checkpoint beside the tables."""

    rows: int
    side_rows: Mapping[str, int]
    channels: Mapping[Channel, Level]
    levels: OperatorLevels
    counters: Mapping[str, int]


class ParallelHarness:
    """Routes rows to the subtasks as a pipeline would, by the operator's `routing_keys`.

    `make` is a function that makes the operator. `output` gathers what came out of all subtasks, in
    the order in which they were called.
    """

    def __init__(
        self,
        make: Makes,
        *,
        inputs: Sequence[ArroyoSchema],
        parallelism: int = 1,
        clock: FakeClock | None = None,
        incarnation: str = INCARNATION,
    ) -> None:
        self._make = factory(make)
        self._inputs = inputs
        self.clock = clock or FakeClock()
        self._state = SubtaskState(incarnation=incarnation)
        self._batches: list[pa.RecordBatch] = []
        self._sides: dict[str, list[pa.RecordBatch]] = {}
        self._counters: Counter[str] = Counter()
        #: All subtasks are told the same.
        self._levels = NEW
        self._input_levels: Mapping[Channel, Level] = {}
        self._ticks = 0
        self._is_ended = False
        self._kept: _Kept
        try:
            self._open(parallelism)
            self._remember()
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

    @property
    def operators(self) -> Sequence[ArrowOperator]:
        """The instances that are in use now, by subtask."""
        return [slot.operator for slot in self._slots]

    @property
    def side_names(self) -> Sequence[str]:
        return sorted(self._sides)

    def side_output(self, name: str) -> pa.Table:
        return pa.Table.from_batches(self._sides[name], schema=self._slots[0].ctx.side_schemas[name].schema)

    def take_output(self) -> pa.Table:
        table = self.output
        self._batches.clear()
        self._kept = replace(self._kept, rows=0)
        return table

    def process(self, batch: pa.RecordBatch, index: int = 0) -> None:
        """Route the rows; a batch without any goes to every subtask."""
        nowhere = [(subtask, batch) for subtask in range(len(self._chains))]
        for subtask, part in self._routers[index].route(batch) if batch.num_rows else nowhere:
            self._chains[subtask].process_batch(part, index=index, total_inputs=len(self._inputs))

    def watermark(self, watermark: Watermark, index: int = 0) -> None:
        """An input's watermark, to all subtasks; idleness counts at once, as at the end of an epoch."""
        for holder, chain in zip(self._holders, self._chains, strict=True):
            tell(chain, holder, index, watermark)

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
        self._is_ended = True

    def checkpoint(self, *, is_lost: bool = False) -> Mapping[str, Mapping[int, bytes]]:
        """End the epoch in every subtask; returns the data staged for a commit.

        One that `is_lost` is written and never published, as by a task that Spark runs again; a crash must follow.
        """
        barrier = self._state.barrier(self.clock)
        for chain in self._chains:
            chain.handle_checkpoint(barrier)
        checkpoints = [tables.checkpoint(barrier) for tables in self._tables]
        if is_lost:
            return {}
        self._state.save(checkpoints)
        self._remember()
        return commit_data(self._state.metadata, get_storage_provider(self._state.url)) if self._state.metadata else {}

    def restore(self, parallelism: int | None = None) -> None:
        """End the epoch that `checkpoint` closed, throw all subtasks away, and make so many from the checkpoint."""
        if not self._is_ended:
            for chain in self._chains:
                chain.on_close(None)
        self._counters = Counter(self.counters)
        self._input_levels, self._levels = dict(self._holders[0].channels), self._slots[0].ctx.levels
        self._open(parallelism or len(self._slots))

    def crash(self, parallelism: int | None = None) -> None:
        """Lose all since the last checkpoint, as when the process dies: state, watermarks and what came out."""
        kept = self._kept
        del self._batches[kept.rows :]
        for name, batches in self._sides.items():
            del batches[kept.side_rows.get(name, 0) :]
        self._input_levels, self._levels = kept.channels, kept.levels
        self._counters = Counter(kept.counters)
        self._is_ended = False
        self._open(parallelism or len(self._slots))

    def take_over(self) -> None:
        """Go on as the next driver does: from the last checkpoint, with a greater generation."""
        self._state.generation += 1
        self.crash()

    @property
    def last_token(self) -> CommitToken:
        """The token of a commit of the epoch that `checkpoint` ended last, by the driver of now."""
        return self._state.last_token

    def commit(self, data: Mapping[str, Mapping[int, bytes]], *, token: CommitToken | None = None) -> None:
        """The second phase, on an instance of its own, as a driver does.

        For the epoch that `checkpoint` ended last, or for another one by the driver that `token` names.
        """
        token = token or self._state.last_token
        operator: ArrowOperator = self._make()
        ctx, _, boundary = make_context(
            RuntimeContext,
            operator=operator,
            state=self._state,
            task_index=0,
            parallelism=len(self._slots),
            clock=self.clock,
            inputs=self._inputs,
            token=token,
        )
        with boundary:
            operator.handle_commit(token.epoch, data, ctx)

    def close(self) -> None:
        self._state.close()

    def send(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        return

    def _remember(self) -> None:
        """What a crash goes back to."""
        self._kept = _Kept(
            rows=len(self._batches),
            side_rows={name: len(batches) for name, batches in self._sides.items()},
            channels=dict(self._holders[0].channels),
            levels=self._slots[0].ctx.levels,
            counters=self.counters,
        )

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
            levels=self._levels,
        )
        slot = OperatorSlot(operator, ctx, boundary)
        sides: list[tuple[str | None, Output]] = [
            (name, SideOutput(self._sides.setdefault(name, []))) for name in ctx.side_schemas
        ]
        holder = WatermarkHolder(
            [(index, 0) for index in range(len(self._inputs))], restored=self._input_levels, merged=self._levels.input
        )
        self._slots.append(slot)
        self._tables.append(tables)
        self._chains.append(ChainedOperator([slot], [(None, self), *sides]))
        self._holders.append(holder)

    def _counter_names(self) -> set[str]:
        return {name for slot in self._slots for name in slot.ctx.metrics.counters}
