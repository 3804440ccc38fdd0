"""`ParallelHarness`: all subtasks of one operator, which may become more or fewer at every restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from arroyo_core.api import ArrowOperator, ArroyoSchema, Watermark
from arroyo_core.runtime.exchange import RebalanceRouter, Router, ShuffleRouter
from arroyo_testing.clock import FakeClock
from arroyo_testing.harness import Makes, OperatorHarness
from arroyo_testing.subtask import INCARNATION, SubtaskTime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What there was at the last checkpoint beside the tables."""

    events: int
    side_rows: Mapping[str, int]
    times: Sequence[SubtaskTime]
    counters: Mapping[str, int]


class ParallelHarness(OperatorHarness):
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
        super().__init__(make, inputs=inputs, parallelism=parallelism, clock=clock, incarnation=incarnation)
        self._kept: _Kept
        self._remember()

    @property
    def operators(self) -> Sequence[ArrowOperator]:
        """The instances that are in use now, by subtask."""
        return [subtask.operator for subtask in self._subtasks]

    def take_output(self) -> pa.Table:
        watermarks = [event for event in self.events[: self._kept.events] if isinstance(event, Watermark)]
        self._kept = replace(self._kept, events=len(watermarks))
        return super().take_output()

    def process(self, batch: pa.RecordBatch, index: int = 0) -> None:
        """Route the rows; a batch without any goes to every subtask."""
        nowhere = [(subtask, batch) for subtask in range(len(self._subtasks))]
        for subtask, part in self._routers[index].route(batch) if batch.num_rows else nowhere:
            self._subtasks[subtask].process(part, index)

    def watermark(self, watermark: Watermark, index: int = 0, *, subtask: int | None = None) -> None:
        """An input's watermark, to all subtasks or to one; idleness counts at once, as at the end of an epoch."""
        if subtask is None:
            super().watermark(watermark, index)
        else:
            self._subtasks[subtask].watermark(watermark, index)

    def checkpoint(self, *, is_lost: bool = False) -> Mapping[str, Mapping[int, bytes]]:
        """End the epoch in every subtask; returns the data staged for a commit.

        One that `is_lost` is written and never published, as by a task that Spark runs again; a crash must follow.
        """
        if is_lost:
            self._write_checkpoints()
            return {}
        staged = super().checkpoint()
        self._remember()
        return staged

    def restore(self, parallelism: int | None = None) -> None:
        """End the epoch that `checkpoint` closed, throw all subtasks away, and make so many from the checkpoint."""
        self._reopen(parallelism or self._parallelism)

    def crash(self, parallelism: int | None = None) -> None:
        """Lose all since the last checkpoint, as when the process dies: state, watermarks and what came out."""
        kept = self._kept
        del self.events[kept.events :]
        for name, batches in self._sides.items():
            del batches[kept.side_rows.get(name, 0) :]
        self._counted = Counter(kept.counters)
        self._open(parallelism or self._parallelism, kept.times)

    def take_over(self) -> None:
        """Go on as the next driver does: from the last checkpoint, with a greater generation."""
        self._state.generation += 1
        self.crash()

    def _indices(self, parallelism: int) -> Sequence[int]:
        return range(parallelism)

    def _committing_operator(self) -> ArrowOperator:
        """An instance of its own, as on a driver."""
        operator: ArrowOperator = self._make()
        return operator

    def _open(self, parallelism: int, times: Sequence[SubtaskTime] = (SubtaskTime(),)) -> None:
        super()._open(parallelism, times)
        self._routers: list[Router] = [
            RebalanceRouter(0, parallelism) if wanted is None else ShuffleRouter(tuple(wanted), parallelism)
            for wanted in self.operator.routing_keys(self._inputs)
        ]

    def _remember(self) -> None:
        """What a crash goes back to."""
        self._kept = _Kept(
            events=len(self.events),
            side_rows={name: len(batches) for name, batches in self._sides.items()},
            times=[subtask.time for subtask in self._subtasks],
            counters=self.counters,
        )
