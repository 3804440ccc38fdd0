"""The first rows of groups that never are complete: results change, and former ones are taken back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std import large_rows
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.large_rows import Rows, concat, cut_batches, join_rows, take
from arroyo_std.ranking import Ranking, ranks_in_groups
from arroyo_std.row_values import TAKEN_BACK, plain_rows
from arroyo_std.top_n_changes import Changes, FirstRows
from arroyo_std.top_n_log import COUNT, LOG_TABLE, LoggedTopN, log_schema

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

GROUPS_TABLE = "g"

#: The first rows of a group, in order, as a column of the table of groups; none for a group whose rows are in the log.
_ROWS = "_rows"
#: Tells rows apart, and orders equal ones: the epoch and the number in it.
_ARRIVAL = "_arrival"
#: Names that columns of the input cannot have.
OWN_COLUMNS = frozenset({_ROWS, _ARRIVAL, COUNT})


def updating_tables(rows: ArroyoSchema, *, is_updating: bool) -> dict[str, TableConfig]:
    """The tables of top-n over such rows, which come for ever, and may be taken back; neither forgets by time."""
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
            column_rules=ColumnRules(closed=TAKEN_BACK if is_updating else ""),
        ),
    }


def groups_schema(rows: ArroyoSchema) -> ArroyoSchema:
    """One row for each group, with a list of its first rows."""
    keys = rows.key_columns or ()
    listed = [*rows.schema, pa.field(_ARRIVAL, pa.int64())]
    fields = [rows.schema.field(key) for key in keys]
    return ArroyoSchema(pa.schema([*fields, pa.field(_ROWS, pa.list_(pa.struct(listed)))]), None, keys)


class AppendTopN:
    """Over rows that are only added: a row that is not among the first never will be, and is not kept.

    The first rows of a group are one value of a table, which a batch must be able to hold. Where they are larger, they
    are in the log instead, from then on.
    """

    def __init__(self, ranking: Ranking, rows: ArroyoSchema, *, rank_column: str | None, ctx: OperatorContext) -> None:
        self._ranking = ranking
        self._schema = rows.schema
        self._state = groups_schema(rows).schema
        self._changes = Changes(ranking.partition_by, rank_column)
        self._view = ctx.table_manager.get_last_key_value_table(GROUPS_TABLE)
        self._logged = LoggedTopN(ranking, rows, changes=self._changes, keeps_all=False, ctx=ctx)
        self._arrivals = ctx.epoch << 32

    def process(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._add(plain_rows(batch, self._schema), collector)

    def advance(self, watermark_us: int, collector: ArrowCollector) -> None:
        return

    def save(self, epoch: int, ctx: OperatorContext) -> None:
        return

    def _add(self, added: pa.RecordBatch, collector: ArrowCollector) -> None:
        groups = Groups.of_columns([added.column(name) for name in self._ranking.partition_by], added.num_rows)
        keys = added.take(pa.array(groups.first_rows()))
        lists = [part.column(_ROWS) for part in self._view.get_aligned_parts(keys)]
        is_logged = np.concatenate([_is_empty(column) for column in lists])
        if is_logged.any():
            is_theirs = is_logged[groups.codes]
            theirs = added.filter(pa.array(is_theirs))
            self._logged.change(theirs, np.ones(theirs.num_rows, dtype=np.int64), collector)
            if not is_theirs.all():
                self._add(added.filter(pa.array(~is_theirs)), collector)
            return
        arrivals = np.arange(self._arrivals, self._arrivals + added.num_rows)
        self._arrivals += added.num_rows
        rows, before = self._stored(lists, added)
        after = self._merge(rows, before, groups.codes, arrivals)
        is_changed = np.zeros(groups.count, dtype=np.bool_)
        is_changed[after.groups[np.isin(after.identities, arrivals)]] = True
        if not is_changed.any():
            return
        self._store(keys, rows, after, is_changed)
        self._changes.collect(rows, before, after, collector)

    def _stored(self, lists: Sequence[pa.ListArray], added: pa.RecordBatch) -> tuple[Rows, FirstRows]:
        """All rows that there are, the new ones last, and the first rows before these came."""
        parts, groups, arrivals = [], [], []
        start = 0
        for column in lists:
            *columns, identities = column.flatten().flatten()
            parts.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            groups.append(pc.list_parent_indices(column).to_numpy().astype(np.int64) + start)
            arrivals.append(identities.to_numpy())
            start += len(column)
        codes = np.concatenate(groups)
        before = FirstRows(np.arange(len(codes)), codes, ranks_in_groups(codes), np.concatenate(arrivals))
        return join_rows([*parts, added]), before

    def _merge(self, rows: Rows, before: FirstRows, codes: Codes, arrivals: Codes) -> FirstRows:
        groups = np.concatenate([before.groups, codes])
        identities = np.concatenate([before.identities, arrivals])
        first = self._ranking.first_rows(rows, groups, ties=[*rows.columns, pa.array(identities)])
        return FirstRows(first.rows, groups[first.rows], first.ranks, identities[first.rows])

    def _store(self, keys: pa.RecordBatch, rows: Rows, after: FirstRows, is_changed: Mask) -> None:
        """Write the lists of the groups that changed."""
        is_theirs = is_changed[after.groups]
        listed, identities = take(rows, after.rows[is_theirs]), after.identities[is_theirs]
        chosen = keys.filter(pa.array(is_changed))
        sizes = np.bincount(after.groups, minlength=len(is_changed))[is_changed]
        if isinstance(listed, pa.RecordBatch):
            self._upsert(chosen, listed, sizes, identities)
            return
        start = 0
        for group, size in enumerate(sizes.tolist()):
            self._store_one(chosen.slice(group, 1), listed.slice(start, size), identities[start : start + size])
            start += size

    def _store_one(self, key: pa.RecordBatch, rows: pa.Table, identities: Codes) -> None:
        if rows.nbytes <= large_rows.BATCH_BYTES:
            self._upsert(key, concat(rows.to_batches()), np.array([rows.num_rows]), identities)
            return
        for part in cut_batches(rows):
            self._logged.insert(part)
        self._upsert(key, part.slice(0, 0), np.array([0]), identities[:0])

    def _upsert(self, keys: pa.RecordBatch, rows: pa.RecordBatch, sizes: Codes, identities: Codes) -> None:
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        listed = self._state.field(_ROWS).type
        structs = pa.StructArray.from_arrays([*rows.columns, pa.array(identities)], fields=list(listed.value_type))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=listed)
        names = [name for name in self._state.names if name != _ROWS]
        self._view.upsert(
            pa.RecordBatch.from_arrays([*(keys.column(name) for name in names), lists], schema=self._state)
        )


def _is_empty(lists: pa.ListArray) -> Mask:
    found: Mask = pc.fill_null(pc.equal(pc.list_value_length(lists), 0), False).to_numpy(zero_copy_only=False)
    return found
