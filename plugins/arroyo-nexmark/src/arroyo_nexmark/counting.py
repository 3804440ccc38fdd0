"""A source over a sequence of positions: dealing, pacing, state and control, for both sources of this plugin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    ArroyoSchema,
    ControlMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.errors import ConfigError
from arroyo_nexmark.pacing import Pace
from arroyo_nexmark.splits import SPLITS, Slice, SplitCursor, owned_splits, owner_of

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: The state table: `{split: next position}`, and under this key the size of a block.
TABLE = "s"
BLOCK_KEY = -1


class CountingSource(SourceOperator):
    """Emits what a subclass makes of positions 0, 1, 2, ... up to `end`, each exactly once over all subtasks."""

    def __init__(self, *, schema: ArroyoSchema, block: int, end: int | None, rate: float | None, budget: int) -> None:
        """`block` is the number of positions dealt at once, `budget` the greatest number in one batch."""
        self._schema = schema
        self._block = block
        self._end = end
        self._rate = rate
        self._budget = budget

    @abstractmethod
    def make(self, positions: Slice, ctx: SourceContext) -> pa.RecordBatch:
        """The rows of these positions; may be fewer than there are positions, or none."""

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._schema

    def tables(self) -> dict[str, TableConfig]:
        from arroyo_core.state import global_table_config

        return global_table_config(TABLE, "the next position of every split, by split", is_partitioned=True)

    def lives_on(self) -> bool:
        return True

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        parallelism = ctx.task_info.parallelism
        view = ctx.table_manager.get_partitioned_keyed_state(
            TABLE, lambda split: owner_of(split, parallelism), key_type=int, value_type=int
        )
        # Also what other subtasks saved, where the parallelism has changed: the cursor looks up its own.
        saved: dict[int, int] = dict(view.get_restored())
        self._check_block(saved.pop(BLOCK_KEY, self._block))
        splits = owned_splits(ctx.task_info.task_index, ctx.task_info.parallelism)
        cursor = SplitCursor(splits, self._block, self._end, saved)
        # Shares follow the splits, so that all subtasks reach the same event time together.
        pace = Pace(ctx.clock, self._rate * len(splits) / SPLITS) if self._rate and len(splits) else None
        message = self._emit_until_told(cursor, pace, ctx, collector)
        for split, position in cursor.saved().items():
            if saved.get(split) != position:
                view.insert(split, position)
        if ctx.task_info.task_index == owner_of(BLOCK_KEY, parallelism):
            view.insert(BLOCK_KEY, self._block)
        return SourceFinishType.FINAL if message is None else message.finish_type

    def _emit_until_told(
        self, cursor: SplitCursor, pace: Pace | None, ctx: SourceContext, collector: SourceCollector
    ) -> ControlMessage | None:
        """Emit batches until there is a message, which is returned, or nothing left."""
        while not cursor.is_done():
            message = ctx.control()
            rows_left = ctx.rows_left()
            most = self._budget if rows_left is None else min(self._budget, max(1, rows_left))
            if message is not None:
                if pace is not None and rows_left != 0 and message.finish_type is SourceFinishType.CHECKPOINTED:
                    # Its time is up: else an epoch too short for a batch would never have any rows.
                    self._emit(min(pace.rest(), most), cursor, pace, ctx, collector)
                return message
            due = most if pace is None else min(pace.due(), most)
            if due == 0 and pace is not None:
                ctx.wait(pace.seconds_to_wait())
                continue
            self._emit(due, cursor, pace, ctx, collector)
        return None

    def _emit(
        self, count: int, cursor: SplitCursor, pace: Pace | None, ctx: SourceContext, collector: SourceCollector
    ) -> None:
        if count == 0:
            return
        positions = cursor.take(count)
        if pace is not None:
            pace.emitted(positions.count)
        batch = self.make(positions, ctx)
        if batch.num_rows:
            collector.collect(batch)

    def _check_block(self, saved_block: int) -> None:
        if saved_block != self._block:
            from arroyo_core.state import IncompatibleCheckpointError

            raise IncompatibleCheckpointError(
                f"the state of this source was saved with blocks of {saved_block} events, and now they have "
                f"{self._block}: the proportions of a job cannot be changed; start it with new state"
            )


def check_rate(rate: float) -> float:
    """A rate that is positive and finite; raises `ConfigError` for any other."""
    if not 0 < rate < float("inf"):
        raise ConfigError(f"rate must be a positive number of events per second, not {rate}", field="rate", value=rate)
    return rate
