"""The first n rows of each group, in a total order: by the columns asked for, then by all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.groups import Codes, canonical
from arroyo_std.columns import check_column, check_unique
from arroyo_std.row_values import is_nested, value_hashes

_LAST = np.iinfo(np.int64).max

#: From so many rows on, in so few groups, it pays to look for the last of the first ones before anything is sorted.
_MANY_ROWS = 1_024
_FEW_GROUPS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    """One column of an order. `field` is its path in the config."""

    column: str
    field: str
    is_descending: bool = False
    nulls_last: bool = True


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows by group and rank: `rows[i]` is the number of a row, `ranks[i]` its place in its group, from 0."""

    rows: Codes
    ranks: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How many rows of a group there are, and which come first."""

    n: int
    partition_by: tuple[str, ...]
    order_by: tuple[OrderBy, ...]
    #: Whether rows that are equal to the last one in the order are there, too, all with the rank of the first of them.
    keeps_ties: bool = False

    def check(self, stream: ArroyoSchema) -> None:
        """Raise `ConfigError` at the column that is not there, or that has no order."""
        for position, name in enumerate(self.partition_by):
            check_column(name, stream.names, field=f"partition_by[{position}]")
            if is_nested(stream.schema.field(name).type):
                raise ConfigError("lists and maps make no groups", field=f"partition_by[{position}]", value=name)
        check_unique(self.partition_by, field="partition_by")
        seen: set[str] = set()
        for order in self.order_by:
            check_column(order.column, stream.names, field=f"{order.field}.column")
            if is_nested(stream.schema.field(order.column).type):
                raise ConfigError("lists and maps have no order", field=f"{order.field}.column", value=order.column)
            if order.column in seen:
                raise ConfigError(
                    f"column {order.column!r} is listed twice", field=f"{order.field}.column", value=order.column
                )
            seen.add(order.column)

    def first_rows(self, rows: pa.RecordBatch, groups: Codes, *, ties: Sequence[pa.Array] | None = None) -> Ranked:
        """The first n rows of each group, by group and rank.

        Rows that are equal in the columns of the order are ordered by `ties` (default: all columns), then as they come.
        """
        ties = rows.columns if ties is None else ties
        found = self._contenders(rows, groups)
        if found is None:
            return self._ranked(rows, groups, ties)
        taken = pa.array(found)
        ranked = self._ranked(rows.take(taken), groups[found], [column.take(taken) for column in ties])
        return Ranked(found[ranked.rows], ranked.ranks)

    def _contenders(self, rows: pa.RecordBatch, groups: Codes) -> Codes | None:
        """Rows without those that the first column of the order rules out; None where that is not quickly told."""
        count = int(groups.max()) + 1 if len(groups) else 0
        if count > _FEW_GROUPS or len(groups) < _MANY_ROWS:
            return None
        first = self.order_by[0]
        values = _plain_numbers(rows.column(first.column))
        if values is None:
            return None
        found = []
        for group in range(count):
            members = np.flatnonzero(groups == group)
            if len(members) > self.n:
                own = values[members]
                last = _nth(own, self.n, is_descending=first.is_descending)
                members = members[own >= last if first.is_descending else own <= last]
            found.append(members)
        return np.sort(np.concatenate(found))

    def _ranked(self, rows: pa.RecordBatch, groups: Codes, ties: Sequence[pa.Array]) -> Ranked:
        order = [
            code
            for each in self.order_by
            for code in order_codes(
                rows.column(each.column), is_descending=each.is_descending, nulls_last=each.nulls_last
            )
        ]
        found, tie_ranks, runs = _candidates(order, groups, self.n)
        _order_ties(found, runs, ties)
        if self.keeps_ties:
            return Ranked(found, tie_ranks)
        ranks = ranks_in_groups(groups[found])
        keep = ranks < self.n
        return Ranked(found[keep], ranks[keep])


def order_codes(column: pa.Array, *, is_descending: bool = False, nulls_last: bool = True) -> list[Codes]:
    """Numbers in the order of the values: NaN is the greatest; lists and maps, which have no order, by their hash.

    A struct has several, one for each field after one for its nulls.
    """
    kind = column.type
    if is_nested(kind):
        return [value_hashes(column).view(np.int64)]
    if pa.types.is_struct(kind):
        parts = [order_codes(column.is_valid(), is_descending=nulls_last)[0]]
        for field in column.flatten():
            parts += order_codes(field, is_descending=is_descending, nulls_last=nulls_last)
        return parts
    if pa.types.is_null(kind):
        return [np.zeros(len(column), dtype=np.int64)]
    codes = pc.rank(canonical(column), sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    if is_descending:
        codes = -codes
    if column.null_count:
        codes[column.is_null().to_numpy(zero_copy_only=False)] = _LAST if nulls_last else -_LAST
    return [codes]


def _plain_numbers(column: pa.Array) -> npt.NDArray[Any] | None:
    """The values of a column of numbers or times, if none of them is null or NaN."""
    kind = column.type
    if column.null_count:
        return None
    if pa.types.is_temporal(kind) and kind.bit_width == 64:
        column = column.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        return None
    values: npt.NDArray[Any] = column.to_numpy()
    return None if pa.types.is_floating(column.type) and np.isnan(values).any() else values


def _nth(values: npt.NDArray[Any], n: int, *, is_descending: bool) -> Any:
    """The value that comes n-th in an order, of at least n."""
    if n == 1:
        return values.max() if is_descending else values.min()
    place = len(values) - n if is_descending else n - 1
    return np.partition(values, place)[place]


def ranks_in_groups(groups: Codes) -> Codes:
    """The place of each row among the neighbours of its group, from 0."""
    if len(groups) == 0:
        return np.empty(0, dtype=np.int64)
    places = np.arange(len(groups))
    starts = np.concatenate([[True], groups[1:] != groups[:-1]])
    ranks: Codes = places - np.maximum.accumulate(np.where(starts, places, 0))
    return ranks


def _candidates(order: Sequence[Codes], groups: Codes, n: int) -> tuple[Codes, Codes, Codes]:
    """Rows with fewer than n rows of their group before them, by group and order; how many those are; and the number of
    the tie that each is in, which ascends.
    """
    by_order = np.lexsort([*reversed(order), groups])
    is_new = np.zeros(len(groups), dtype=np.bool_)
    is_new[:1] = True
    sorted_groups = groups[by_order]
    for code in (sorted_groups, *(code[by_order] for code in order)):
        is_new[1:] |= code[1:] != code[:-1]
    # All rows of a tie have the rank of its first.
    firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(groups)), 0))
    ranks = ranks_in_groups(sorted_groups)[firsts]
    chosen = np.flatnonzero(ranks < n)
    return by_order[chosen], ranks[chosen], firsts[chosen]


def _order_ties(rows: Codes, runs: Codes, columns: Sequence[pa.Array]) -> None:
    """Put rows of one run in the order of the columns; only those are compared that are not alone in theirs."""
    is_tied = np.zeros(len(rows), dtype=np.bool_)
    np.equal(runs[1:], runs[:-1], out=is_tied[1:])
    is_tied[:-1] |= is_tied[1:]
    places = np.flatnonzero(is_tied)
    if len(places):
        tied = rows[places]
        codes = [code for column in columns for code in order_codes(column.take(pa.array(tied)))]
        rows[places] = tied[np.lexsort([*reversed(codes), runs[places]])]
