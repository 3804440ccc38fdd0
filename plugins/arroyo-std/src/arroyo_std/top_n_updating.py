"""The first rows of groups that never are complete: results change, and former ones are taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArrowCollector, ArroyoSchema, DeleteKey, OperatorContext
from arroyo_core.api.updating import make_updates, retract_mask, row_ids
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.ranking import Ranked, Ranking, ranks_in_groups
from arroyo_std.row_values import TAKEN_BACK, group_rows, plain_rows, row_hashes

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

GROUPS_TABLE = "g"
LOG_TABLE = "r"

#: The first rows of a group, in order, as a column of the table of groups.
_ROWS = "_rows"
#: Tells rows apart, and orders equal ones: the epoch and the number in it.
_ARRIVAL = "_arrival"
#: How often a row was added (or, if negative, taken back), as a column of the log.
_COUNT = "_count"
#: Names that columns of the input cannot have.
OWN_COLUMNS = frozenset({_ROWS, _ARRIVAL, _COUNT})
#: The log of a group is rewritten when it has this many entries for each row that is left, and some.
_LOG_FACTOR = 2
_LOG_SLACK = 64


def updating_tables(rows: ArroyoSchema) -> dict[str, TableConfig]:
    """The tables of both classes, for such rows; neither forgets anything by time."""
    return {
        GROUPS_TABLE: timestamp_table_config(
            GROUPS_TABLE,
            "the first rows of each group",
            timedelta(0),
            True,
            groups_schema(rows),
            column_rules=ColumnRules(),
        ),
        LOG_TABLE: timestamp_table_config(
            LOG_TABLE,
            "rows added and taken back",
            timedelta(0),
            False,
            log_schema(rows),
            column_rules=ColumnRules(closed=TAKEN_BACK),
        ),
    }


def groups_schema(rows: ArroyoSchema) -> ArroyoSchema:
    """One row for each group, with a list of its first rows."""
    keys = rows.key_columns or ()
    listed = [*rows.schema, pa.field(_ARRIVAL, pa.int64())]
    fields = [rows.schema.field(key) for key in keys]
    return ArroyoSchema(pa.schema([*fields, pa.field(_ROWS, pa.list_(pa.struct(listed)))]), None, keys)


def log_schema(rows: ArroyoSchema) -> ArroyoSchema:
    """Rows with how often they were added."""
    return ArroyoSchema(rows.schema.append(pa.field(_COUNT, pa.int64())), None, rows.key_columns or ())


@dataclass(frozen=True, slots=True)
class _Result:
    """The first rows of some groups, by group and rank. Rows with one identity are the same row."""

    rows: pa.RecordBatch
    groups: Codes
    ranks: Codes
    identities: Codes


class _Changes:
    """From two results of the same groups to the rows of an updating stream."""

    def __init__(self, partition_by: Sequence[str], rank_column: str | None) -> None:
        self._partition_by = partition_by
        self._rank_column = rank_column

    def collect(self, before: _Result, after: _Result, collector: ArrowCollector) -> None:
        """Send what is only in `before` as taken back, and what is only in `after` as added, group by group."""
        gone, new = self._differences(before, after)
        if not (gone.any() or new.any()):
            return
        retracts, appends = self._updates(before, gone, is_retract=True), self._updates(after, new, is_retract=False)
        groups = np.concatenate([before.groups[gone], after.groups[new]])
        ranks = np.concatenate([before.ranks[gone], after.ranks[new]])
        is_append = np.repeat([0, 1], [int(gone.sum()), int(new.sum())])
        # With ranks, one place after the other changes; without, rows go before others come.
        order = np.lexsort([is_append, ranks, groups] if self._rank_column else [ranks, is_append, groups])
        collector.collect(pa.concat_batches([retracts, appends]).take(pa.array(order)))

    def _differences(self, before: _Result, after: _Result) -> tuple[Mask, Mask]:
        keys = [
            np.concatenate([before.groups, after.groups]),
            np.concatenate([before.identities, after.identities]),
        ]
        if self._rank_column:
            keys.append(np.concatenate([before.ranks, after.ranks]))
        else:
            # A row that is there twice is told apart by its count.
            keys.append(np.concatenate([_occurrences(before), _occurrences(after)]))
        codes = Groups.of_columns([pa.array(key) for key in keys], len(keys[0])).codes
        split = len(before.groups)
        return ~np.isin(codes[:split], codes[split:]), ~np.isin(codes[split:], codes[:split])

    def _updates(self, result: _Result, mask: Mask, *, is_retract: bool) -> pa.RecordBatch:
        rows = result.rows.filter(pa.array(mask))
        if self._rank_column is None:
            ids = row_hashes(rows.columns, rows.num_rows)
            return make_updates(rows, is_retract=is_retract, ids=ids)
        rows = rows.append_column(pa.field(self._rank_column, pa.int64()), pa.array(result.ranks[mask] + 1))
        ids = row_ids(rows, [*self._partition_by, self._rank_column])
        return make_updates(rows, is_retract=is_retract, ids=ids)


class AppendTopN:
    """Over rows that are only added: a row that is not among the first never will be, and is not kept."""

    def __init__(self, ranking: Ranking, rows: ArroyoSchema, *, rank_column: str | None, ctx: OperatorContext) -> None:
        self._ranking = ranking
        self._schema = rows.schema
        self._state = groups_schema(rows).schema
        self._changes = _Changes(ranking.partition_by, rank_column)
        self._view = ctx.table_manager.get_last_key_value_table(GROUPS_TABLE)
        self._arrivals = ctx.epoch << 32

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        added = plain_rows(batch, self._schema)
        groups = Groups.of_columns([added.column(name) for name in self._ranking.partition_by], added.num_rows)
        arrivals = np.arange(self._arrivals, self._arrivals + added.num_rows)
        self._arrivals += added.num_rows
        keys = added.take(pa.array(groups.first_rows()))
        before = self._stored(keys)
        after = self._merge(before, added, groups.codes, arrivals)
        is_changed = np.zeros(groups.count, dtype=np.bool_)
        is_changed[after.groups[np.isin(after.identities, arrivals)]] = True
        if not is_changed.any():
            return
        self._store(keys, after, is_changed)
        self._changes.collect(before, after, collector)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        return

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        return

    def _stored(self, keys: pa.RecordBatch) -> _Result:
        lists = self._view.get_aligned(keys).column(_ROWS)
        groups = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
        *columns, arrivals = lists.flatten().flatten()
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return _Result(rows, groups, ranks_in_groups(groups), arrivals.to_numpy())

    def _merge(self, before: _Result, added: pa.RecordBatch, codes: Codes, arrivals: Codes) -> _Result:
        rows = pa.concat_batches([before.rows, added])
        groups = np.concatenate([before.groups, codes])
        identities = np.concatenate([before.identities, arrivals])
        first = self._ranking.first_rows(rows, groups, ties=[*rows.columns, pa.array(identities)])
        return _result(rows, groups, identities, first)

    def _store(self, keys: pa.RecordBatch, after: _Result, is_changed: Mask) -> None:
        """Write the lists of the groups that changed."""
        is_theirs = is_changed[after.groups]
        rows = after.rows.filter(pa.array(is_theirs))
        sizes = np.bincount(after.groups, minlength=len(is_changed))[is_changed]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        listed = self._state.field(_ROWS).type
        structs = pa.StructArray.from_arrays(
            [*rows.columns, pa.array(after.identities[is_theirs])], fields=list(listed.value_type)
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=listed)
        names = [name for name in self._state.names if name != _ROWS]
        chosen = keys.filter(pa.array(is_changed))
        self._view.upsert(
            pa.RecordBatch.from_arrays([*(chosen.column(name) for name in names), lists], schema=self._state)
        )


class RetractTopN:
    """Over rows that are added and taken back: every row is kept, because it may move up when others go.

    The table is a log. A row that is taken back before it was added counts when it has been added once more.
    """

    def __init__(self, ranking: Ranking, rows: ArroyoSchema, *, rank_column: str | None, ctx: OperatorContext) -> None:
        self._ranking = ranking
        self._schema = rows.schema
        self._log = log_schema(rows).schema
        self._changes = _Changes(ranking.partition_by, rank_column)
        self._view = ctx.table_manager.get_key_time_table(LOG_TABLE)

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        changed = plain_rows(batch, self._schema)
        counts = np.where(retract_mask(batch), -1, 1)
        by_group = Groups.of_columns([changed.column(name) for name in self._ranking.partition_by], changed.num_rows)
        keys = changed.take(pa.array(by_group.first_rows()))
        stored = self._view.lookup(keys)
        entries = len(stored.query_rows)
        rows = pa.concat_batches([stored.batch.drop_columns([_COUNT]), changed])
        deltas = np.concatenate([stored.batch.column(_COUNT).to_numpy(), counts])
        groups = np.concatenate([stored.query_rows, by_group.codes])
        distinct = group_rows(rows.columns, rows.num_rows)
        first = distinct.first_rows()
        rows, groups = rows.take(pa.array(first)), groups[first]
        before, after = np.zeros(distinct.count, dtype=np.int64), np.zeros(distinct.count, dtype=np.int64)
        np.add.at(before, distinct.codes[:entries], deltas[:entries])
        np.add.at(after, distinct.codes, deltas)
        self._write(keys, rows, groups, entries=stored.query_rows, before=before, after=after)
        self._changes.collect(self._first(rows, groups, before), self._first(rows, groups, after), collector)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        return

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        return

    def _first(self, rows: pa.RecordBatch, groups: Codes, counts: Codes) -> _Result:
        """The first rows of each group, each as often as it is there."""
        copies = np.repeat(np.arange(len(counts)), np.clip(counts, 0, self._ranking.n))
        copied, copied_groups = rows.take(pa.array(copies)), groups[copies]
        first = self._ranking.first_rows(copied, copied_groups)
        return _result(copied, copied_groups, copies, first)

    def _write(
        self, keys: pa.RecordBatch, rows: pa.RecordBatch, groups: Codes, *, entries: Codes, before: Codes, after: Codes
    ) -> None:
        """Add the change to the log; the log of a group that is much longer than its rows is written again."""
        log_sizes = np.bincount(entries, minlength=keys.num_rows)
        left = np.bincount(groups[after != 0], minlength=keys.num_rows)
        is_rewritten = log_sizes > _LOG_FACTOR * left + _LOG_SLACK
        counts = np.where(is_rewritten[groups], after, after - before)
        if is_rewritten.any():
            self._view.delete(DeleteKey(), keys.filter(pa.array(is_rewritten)))
        written = counts != 0
        entry = rows.filter(pa.array(written))
        self._view.insert(pa.RecordBatch.from_arrays([*entry.columns, pa.array(counts[written])], schema=self._log))


def _result(rows: pa.RecordBatch, groups: Codes, identities: Codes, first: Ranked) -> _Result:
    return _Result(rows.take(pa.array(first.rows)), groups[first.rows], first.ranks, identities[first.rows])


def _occurrences(result: _Result) -> Codes:
    """Of rows with one identity in one group the first is 0, the next 1, and so on."""
    codes = Groups.of_columns([pa.array(result.groups), pa.array(result.identities)], len(result.groups)).codes
    order = np.argsort(codes, kind="stable")
    found = np.empty(len(codes), dtype=np.int64)
    found[order] = ranks_in_groups(codes[order])
    return found
