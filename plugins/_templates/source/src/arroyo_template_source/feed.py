"""`template.feed`: reads lines over HTTP, each once, through outages of the feed and partitions that come later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    ControlMessage,
    DisplayableOperator,
    Outages,
    RetryPolicy,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.errors import ExternalError
from arroyo_core.state import global_table_config, hash_key
from arroyo_template_source.client import BusyError, FeedClient

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig
    from arroyo_template_source.config_pb2 import FeedConfig

POSITIONS = "positions"
LINES = pa.schema([("partition", pa.string()), ("line", pa.string())])


class Feed(SourceOperator):
    """Partitions are shared out over the subtasks by their names; how far each was read is in a table."""

    def __init__(self, config: FeedConfig) -> None:
        self._config = config
        self._client = FeedClient(config.url, config.token)

    def name(self) -> str:
        return "template.feed"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("url", self._config.url)])

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(LINES)

    def tables(self) -> dict[str, TableConfig]:
        return {
            **global_table_config(POSITIONS, "how many lines of each partition were read", is_partitioned=True),
            **global_table_config(OUTAGES, "since when the feed fails", is_partitioned=True),
        }

    def on_start(self, ctx: SourceContext) -> None:
        task = ctx.task_info
        self._positions = ctx.table_manager.get_partitioned_keyed_state(
            POSITIONS, lambda partition: hash_key(partition) % task.parallelism, key_type=str, value_type=int
        )
        self._outages = Outages(ctx, RetryPolicy(max_duration_s=self._config.give_up_after / 1e6))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        # While the feed fails this waits for the next attempt, over as many epochs as it takes.
        while (message := self._outages.wait()) is None:
            try:
                has_more = self._read_round(ctx, collector)
            except (ExternalError, OSError) as error:
                self._outages.failed(error, wait_s=error.wait_s if isinstance(error, BusyError) else None)
                continue
            self._outages.succeeded()
            message = ctx.control()
            if message is None and not has_more:
                if not self._config.follow:
                    return SourceFinishType.FINAL
                message = self._wait(ctx, collector)
            if message is not None:
                break
        return message.finish_type

    def _read_round(self, ctx: SourceContext, collector: SourceCollector) -> bool:
        """A page of each partition; whether any gave a line. Ends early when the epoch does."""
        has_more = False
        for partition in self._own_partitions(ctx):
            if ctx.control() is not None:
                return True
            position = self._positions.get(partition) or 0
            lines = self._client.lines(
                partition, position, min(self._config.page, ctx.rows_left() or self._config.page)
            )
            if lines:
                collector.collect(pa.record_batch([[partition] * len(lines), lines], schema=LINES))
                # With the rows that it stands for, in one checkpoint.
                self._positions.insert(partition, position + len(lines))
                has_more = True
        return has_more

    def _own_partitions(self, ctx: SourceContext) -> Iterator[str]:
        """Those of this subtask, listed in every round: a new one is read from its beginning, by whoever owns it."""
        task = ctx.task_info
        for partition in self._client.partitions():
            if hash_key(partition) % task.parallelism == task.task_index:
                yield partition

    def _wait(self, ctx: SourceContext, collector: SourceCollector) -> ControlMessage | None:
        # Nobody has to wait for the event time of a source that has nothing.
        collector.broadcast_watermark(Watermark.idle())
        return ctx.wait(self._config.poll / 1e6)
