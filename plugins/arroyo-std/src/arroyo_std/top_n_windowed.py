"""The first rows of groups that are complete when the watermark has passed their event time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_std.aggregates.groups import Groups
from arroyo_std.event_groups import EventGroups
from arroyo_std.large_rows import Rows, take
from arroyo_std.ranking import Ranking, order_codes
from arroyo_std.row_values import plain_rows


class WindowedTopN:
    """Groups are the values of `partition_by` at one event time; each is sent once."""

    def __init__(self, ranking: Ranking, rows: ArroyoSchema, *, output: pa.Schema, ctx: OperatorContext) -> None:
        self._ranking = ranking
        self._schema = rows.schema
        self._output = output
        times = [rows.timestamp_column] if rows.timestamp_column else []
        #: Event time first, so that results come in its order.
        self._group_by = [*times, *(name for name in ranking.partition_by if name not in times)]
        self._groups = EventGroups(rows, finish=self._finish, reduce=self._reduce, ctx=ctx)

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._groups.add(plain_rows(batch, self._schema), ctx)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        self._groups.advance(watermark_us, collector)

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        self._groups.save(epoch, ctx)

    def _reduce(self, rows: Rows) -> Rows:
        groups = Groups.of_columns([rows.column(name) for name in self._group_by], rows.num_rows)
        first = self._ranking.first_rows(rows, groups.codes)
        return rows if len(first.rows) == rows.num_rows else take(rows, first.rows)

    def _finish(self, rows: Rows) -> Rows:
        """The first rows by event time, group and rank, whatever the order they came in."""
        groups = Groups.of_columns([rows.column(name) for name in self._group_by], rows.num_rows)
        first = self._ranking.first_rows(rows, groups.codes)
        found = take(rows.select(self._group_by), first.rows)
        by_group = [code for column in found.columns for code in order_codes(column)]
        order = np.lexsort([first.ranks, *reversed(by_group)])
        columns = list(take(rows, first.rows[order]).columns)
        if len(self._output.names) > len(columns):
            columns.append(pa.array(first.ranks[order] + 1))
        return type(rows).from_arrays(columns, schema=self._output)
