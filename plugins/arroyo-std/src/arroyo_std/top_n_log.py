"""The first rows of groups whose rows are added and taken back, from a log of these changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, DeleteKey, OperatorContext
from arroyo_core.api.updating import retract_mask
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.large_rows import Rows, join_rows, take_batches
from arroyo_std.ranking import Ranking, ranks_in_groups
from arroyo_std.row_values import group_rows, plain_rows
from arroyo_std.top_n_changes import Changes, FirstRows

LOG_TABLE = "r"

#: How often a row was added (or, if negative, taken back), as a column of the log.
COUNT = "_count"
#: The log of a group is rewritten when it has this many entries for each row that is left, and some.
_LOG_FACTOR = 2
_LOG_SLACK = 64


def log_schema(rows: ArroyoSchema) -> ArroyoSchema:
    """Rows with how often they were added."""
    return ArroyoSchema(rows.schema.append(pa.field(COUNT, pa.int64())), None, rows.key_columns or ())


class LoggedTopN:
    """Keeps rows in a log, and sends how the first ones change. The rows of a group may be more than a batch can hold.

    A row that is taken back before it was added counts when it has been added once more. `keeps_all` says that rows
    which are not among the first stay, because they may move up when others go.
    """

    def __init__(
        self, ranking: Ranking, rows: ArroyoSchema, *, changes: Changes, keeps_all: bool, ctx: OperatorContext
    ) -> None:
        self._ranking = ranking
        self._log = log_schema(rows).schema
        self._changes = changes
        self._keeps_all = keeps_all
        self._view = ctx.table_manager.get_key_time_table(LOG_TABLE)

    def insert(self, rows: pa.RecordBatch) -> None:
        """Add rows of groups that the log has nothing else of, or of which it has had some from here."""
        self._view.insert(
            pa.RecordBatch.from_arrays([*rows.columns, pa.array(np.ones(rows.num_rows, np.int64))], schema=self._log)
        )

    def change(self, changed: pa.RecordBatch, counts: Codes, collector: ArrowCollector) -> None:
        """Add each row as often as its count says, or take it back."""
        by_group = Groups.of_columns([changed.column(name) for name in self._ranking.partition_by], changed.num_rows)
        keys = changed.take(pa.array(by_group.first_rows()))
        stored = list(self._view.lookup_parts(keys))
        # Columns are not copied where they are large: only rows that change are taken.
        rows = join_rows([*(part.batch.drop_columns([COUNT]) for part in stored), changed])
        deltas = np.concatenate([*(part.batch.column(COUNT).to_numpy() for part in stored), counts])
        entries = np.concatenate([np.empty(0, np.int64), *(part.query_rows for part in stored)])
        distinct = group_rows(rows.columns, rows.num_rows)
        first = distinct.first_rows()
        groups = np.concatenate([entries, by_group.codes])[first]
        before, after = np.zeros(distinct.count, dtype=np.int64), np.zeros(distinct.count, dtype=np.int64)
        np.add.at(before, distinct.codes[: len(entries)], deltas[: len(entries)])
        np.add.at(after, distinct.codes, deltas)
        old, new = self._first(rows, first, groups, before), self._first(rows, first, groups, after)
        if not self._keeps_all:
            after = np.bincount(new.identities, minlength=distinct.count)
        self._write(keys, rows, first, groups, entries=entries, before=before, after=after)
        self._changes.collect(rows, old, new, collector)

    def _first(self, rows: Rows, numbers: Codes, groups: Codes, counts: Codes) -> FirstRows:
        """The first rows of each group, each as often as it is there; its place in `numbers` is its identity."""
        present = np.flatnonzero(counts > 0)
        ranked = self._ranking.first_rows(rows, groups[present], among=numbers[present])
        found = present[ranked.rows]
        copies = np.repeat(found, np.minimum(counts[found], self._ranking.n))
        ranks = ranks_in_groups(groups[copies])
        is_first = ranks < self._ranking.n
        copies = copies[is_first]
        return FirstRows(numbers[copies], groups[copies], ranks[is_first], copies)

    def _write(
        self,
        keys: pa.RecordBatch,
        rows: Rows,
        numbers: Codes,
        groups: Codes,
        *,
        entries: Codes,
        before: Codes,
        after: Codes,
    ) -> None:
        """Add the change to the log; the log of a group that is much longer than its rows is written again."""
        log_sizes = np.bincount(entries, minlength=keys.num_rows)
        left = np.bincount(groups[after != 0], minlength=keys.num_rows)
        is_rewritten = log_sizes > _LOG_FACTOR * left + _LOG_SLACK
        counts = np.where(is_rewritten[groups], after, after - before)
        if is_rewritten.any():
            self._view.delete(DeleteKey(), keys.filter(pa.array(is_rewritten)))
        written = np.flatnonzero(counts != 0)
        start = 0
        for batch in take_batches(rows, numbers[written]):
            end = start + batch.num_rows
            entry = [*batch.columns, pa.array(counts[written[start:end]])]
            self._view.insert(pa.RecordBatch.from_arrays(entry, schema=self._log))
            start = end


class RetractTopN:
    """Over rows that are added and taken back: every row is kept, because it may move up when others go."""

    def __init__(self, ranking: Ranking, rows: ArroyoSchema, *, rank_column: str | None, ctx: OperatorContext) -> None:
        self._schema = rows.schema
        changes = Changes(ranking.partition_by, rank_column)
        self._logged = LoggedTopN(ranking, rows, changes=changes, keeps_all=True, ctx=ctx)

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        counts = np.where(retract_mask(batch), -1, 1)
        self._logged.change(plain_rows(batch, self._schema), counts, collector)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        return

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        return
