"""`std.top_n`: the first rows of each group in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    UnboundedState,
    Watermark,
)
from arroyo_core.api.updating import is_updating, with_updating, without_updating
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.groups import Groups
from arroyo_std.event_groups import event_group_tables
from arroyo_std.ranking import Ranking
from arroyo_std.row_values import plain_schema
from arroyo_std.setting_texts import NONE, names_text
from arroyo_std.top_n_log import RetractTopN
from arroyo_std.top_n_updating import OWN_COLUMNS, AppendTopN, updating_tables
from arroyo_std.top_n_windowed import WindowedTopN
from arroyo_std.windows.layout import WINDOW_COLUMNS

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig


class Mode(StrEnum):
    """What the input is like, and so when results come out and what is kept."""

    #: Groups are complete when the watermark has passed them: each is sent once.
    WINDOWED = "windowed"
    #: Rows are only added: results change, and only rows that can still matter are kept.
    APPENDED = "appended"
    #: Rows are taken back, too: every row is kept.
    UPDATING = "updating"


class _Strategy(Protocol):
    """What an operator does in one mode."""

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None: ...

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None: ...

    def save(self, epoch: int, ctx: OperatorContext) -> None: ...


class TopN(ArrowOperator):
    """Sends the first n rows of each group, once or as they change, by what the input is like."""

    def __init__(self, ranking: Ranking, rank_column: str | None) -> None:
        self._ranking = ranking
        self._rank_column = rank_column

    def name(self) -> str:
        return "std.top_n"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        mode = self._mode(stream)
        self._ranking.check(without_updating(stream))
        if self._ranking.keeps_ties and mode is not Mode.WINDOWED:
            raise ConfigError(
                "ties are kept only in groups that end: partition by a column of a window, as std.assign_window makes",
                field="ties",
                value=True,
            )
        if self._rank_column in stream.names:
            raise ConfigError(
                f"there is a column {self._rank_column!r} already: give another name",
                field="rank_column",
                value=self._rank_column,
            )
        rows = without_updating(stream)
        for name in OWN_COLUMNS.intersection(rows.names):
            raise ConfigError(f"state has a column {name!r} of its own: rename yours with std.project")
        fields = list(plain_schema(rows.schema))
        if self._rank_column:
            fields.append(pa.field(self._rank_column, pa.int64()))
        output = ArroyoSchema(pa.schema(fields), stream.timestamp_column, self._ranking.partition_by)
        return output if mode is Mode.WINDOWED else with_updating(output)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._ranking.partition_by]

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return self._mode(inputs[0]) is Mode.WINDOWED

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        mode = self._mode(inputs[0])
        fix = "partition by the columns of a window, so that groups end"
        if mode is Mode.UPDATING:
            return UnboundedState("it keeps every row of its input until that row is taken back", fix)
        if mode is Mode.APPENDED and self._ranking.partition_by:
            return UnboundedState(f"it keeps the first {self._ranking.n} of every group for ever", fix)
        return None

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        mode = self._mode(inputs[0])
        return None if mode is Mode.UPDATING else TopNOfBatch(self._ranking, has_event_groups=mode is Mode.WINDOWED)

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        # Checkpoints have all of them, whichever are used.
        rows = self._rows(inputs[0])
        is_updating = self._mode(inputs[0]) is Mode.UPDATING
        return {**event_group_tables(rows), **updating_tables(rows, is_updating=is_updating)}

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Rows that were not among the first are gone, or have not been sent.
        ranking, mode = self._ranking, self._mode(inputs[0])
        nulls = names_text(each.column for each in ranking.order_by if not each.nulls_last)
        return {
            "input": str(mode),
            "n": str(ranking.n),
            "partition by": names_text(ranking.partition_by),
            "order by": self._order(),
            "nulls first": nulls,
            "ties": "kept" if ranking.keeps_ties else "not kept",
            # Where groups are sent once, it is made when they are.
            "rank column": NONE if mode is Mode.WINDOWED else self._rank_column or NONE,
        }

    def _order(self) -> str:
        return ", ".join(
            f"{each.column} desc" if each.is_descending else each.column for each in self._ranking.order_by
        )

    def display(self) -> DisplayableOperator:
        ranking = self._ranking
        fields = [
            ("n", str(ranking.n)),
            ("partition by", ", ".join(ranking.partition_by)),
            ("order by", self._order()),
            ("rank", self._rank_column or ""),
            ("ties", "kept" if ranking.keeps_ties else ""),
        ]
        return DisplayableOperator(self.name(), [(label, text) for label, text in fields if text])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        rows, mode = self._rows(stream), self._mode(stream)
        self._strategy: _Strategy
        if mode is Mode.WINDOWED:
            self._strategy = WindowedTopN(self._ranking, rows, output=ctx.output_schema.schema, ctx=ctx)
        elif mode is Mode.APPENDED:
            self._strategy = AppendTopN(self._ranking, rows, rank_column=self._rank_column, ctx=ctx)
        else:
            self._strategy = RetractTopN(self._ranking, rows, rank_column=self._rank_column, ctx=ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if batch.num_rows:
            self._strategy.process(batch, ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None:
            self._strategy.advance(watermark.event_time_us, collector)
        return watermark

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._strategy.save(barrier.epoch, ctx)

    def _rows(self, stream: ArroyoSchema) -> ArroyoSchema:
        """What tables hold of the input."""
        columns = plain_schema(without_updating(stream).schema)
        return ArroyoSchema(columns, stream.timestamp_column, self._ranking.partition_by)

    def _mode(self, stream: ArroyoSchema) -> Mode:
        if is_updating(stream):
            return Mode.UPDATING
        time_columns = {*WINDOW_COLUMNS, stream.timestamp_column}
        is_windowed = stream.timestamp_column is not None and not time_columns.isdisjoint(self._ranking.partition_by)
        return Mode.WINDOWED if is_windowed else Mode.APPENDED


class TopNOfBatch(ArrowOperator):
    """Before the shuffle: drops rows of a batch that cannot be among the first, because of others in it."""

    def __init__(self, ranking: Ranking, *, has_event_groups: bool) -> None:
        self._ranking = ranking
        self._has_event_groups = has_event_groups

    def name(self) -> str:
        return "std.top_n"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        self._group_by = list(self._ranking.partition_by)
        if self._has_event_groups and stream.timestamp_column and stream.timestamp_column not in self._group_by:
            self._group_by.append(stream.timestamp_column)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        groups = Groups.of_columns([batch.column(name) for name in self._group_by], batch.num_rows)
        first = self._ranking.first_rows(batch, groups.codes)
        collector.collect(batch if len(first.rows) == batch.num_rows else batch.take(pa.array(first.rows)))
