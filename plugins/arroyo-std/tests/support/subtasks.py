"""All subtasks of one operator, over one state: rows go to the subtask that owns their key, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from arroyo_testing import FakeClock, OperatorHarness
from arroyo_testing.subtask import SubtaskState

from arroyo_core.api import ArrowOperator, ArroyoSchema, Watermark
from arroyo_core.api.hashing import hash_batch, subtasks_of
from arroyo_core.runtime.carry import OperatorLevels
from arroyo_core.runtime.watermarks import least_level


class Subtask(OperatorHarness):
    """A harness over state that others share."""

    def __init__(self, shared: SubtaskState, *args: Any, **options: Any) -> None:
        self._shared = shared
        super().__init__(*args, **options)

    @property
    def _state(self) -> SubtaskState:
        return self._shared

    @_state.setter
    def _state(self, state: SubtaskState) -> None:
        state.close()


class Subtasks:
    """Feeds batches, watermarks and barriers to all subtasks; `restart` makes them again, at any parallelism."""

    def __init__(
        self,
        make: Callable[[], ArrowOperator],
        stream: ArroyoSchema,
        *,
        parallelism: int,
        keys: Sequence[str],
        clock: FakeClock | None = None,
    ) -> None:
        self._make = make
        self._stream = stream
        self._keys = keys
        self._state = SubtaskState()
        self.clock = clock or FakeClock()
        self._parts: list[pa.Table] = []
        self.counters: dict[str, int] = {}
        self.subtasks: list[Subtask] = []
        self._start(parallelism)

    def process(self, batch: pa.RecordBatch) -> None:
        owners = subtasks_of(hash_batch(batch, self._keys), len(self.subtasks))
        for index, subtask in enumerate(self.subtasks):
            rows = batch.filter(pa.array(np.asarray(owners == index)))
            if rows.num_rows:
                subtask.process(rows)

    def watermark(self, watermark: Watermark, only: int | None = None) -> None:
        for index, subtask in enumerate(self.subtasks):
            if only in (None, index):
                subtask.watermark(watermark)

    def tick(self) -> None:
        for subtask in self.subtasks:
            subtask.tick()

    def end_of_data(self) -> None:
        for subtask in self.subtasks:
            subtask.end_of_data()

    def restart(self, parallelism: int) -> None:
        """End the epoch, and begin the next with as many subtasks."""
        barrier = self._state.barrier(self.clock)
        checkpoints = []
        for subtask in self.subtasks:
            subtask._chain.handle_checkpoint(barrier)
            checkpoints.append(subtask._tables.checkpoint(barrier))
        self._state.save(checkpoints)
        levels = [subtask._slot.ctx.levels for subtask in self.subtasks]
        self._collect()
        self._start(parallelism)
        # As in a pipeline: the least of all, and none while one has none.
        least = OperatorLevels(least_level(each.input for each in levels), least_level(each.output for each in levels))
        for subtask in self.subtasks:
            subtask._open({(0, 0): least.input}, least)

    @property
    def output(self) -> pa.Table:
        return pa.concat_tables([*self._parts, *(subtask.output for subtask in self.subtasks)])

    def close(self) -> None:
        self._state.close()

    def _start(self, parallelism: int) -> None:
        self.subtasks = [
            Subtask(
                self._state,
                self._make,
                inputs=[self._stream],
                parallelism=parallelism,
                task_index=index,
                clock=self.clock,
            )
            for index in range(parallelism)
        ]

    def _collect(self) -> None:
        for subtask in self.subtasks:
            self._parts.append(subtask.output)
            for name, amount in subtask.counters.items():
                self.counters[name] = self.counters.get(name, 0) + amount
