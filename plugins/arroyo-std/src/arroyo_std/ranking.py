"""The first n rows of each group, in a total order: by the columns asked for, then by all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_core.state import one_chunk, take_in_parts
from arroyo_std.aggregates.groups import Codes, Mask, canonical
from arroyo_std.columns import check_column, check_unique
from arroyo_std.large_rows import Rows
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

    def shown(self) -> str:
        """For people."""
        return self.column + (" desc" if self.is_descending else "") + ("" if self.nulls_last else " nulls first")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows by group and rank: `rows[i]` is the number of a row, `ranks[i]` its rank in its group, from 0."""

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

    def first_rows(
        self, rows: Rows, groups: Codes, *, ties: Sequence[Any] | None = None, among: Codes | None = None
    ) -> Ranked:
        """The first n rows of each group, by group and rank; of the rows with numbers `among`, or of all.

        `groups` are those of the rows that take part, and the result has places among them. Rows that are equal in the
        columns of the order are ordered by `ties` (default: all columns), then as they come.
        """
        keys = [one_chunk(rows.column(each.column)) for each in self.order_by]
        if among is not None and len(among) == rows.num_rows and bool((among == np.arange(len(among))).all()):
            among = None
        if among is not None:
            taking_part = pa.array(among)
            keys = [key.take(taking_part) for key in keys]
        found = self._contenders(keys[0], groups)
        if found is not None:
            keys, groups = [key.take(pa.array(found)) for key in keys], groups[found]
        order = [
            code
            for key, each in zip(keys, self.order_by, strict=True)
            for code in order_codes(key, is_descending=each.is_descending, nulls_last=each.nulls_last)
        ]
        chosen, tie_ranks, runs = _candidates(order, groups, self.n)
        places = chosen if found is None else found[chosen]
        ordered = _order_ties(places if among is None else among[places], runs, rows.columns if ties is None else ties)
        if ordered is not None:
            chosen, places = chosen[ordered], places[ordered]
        if self.keeps_ties:
            return Ranked(places, tie_ranks)
        ranks = ranks_in_groups(groups[chosen])
        keep = ranks < self.n
        return Ranked(places[keep], ranks[keep])

    def _contenders(self, key: pa.Array, groups: Codes) -> Codes | None:
        """Rows without those that the first column of the order rules out; None where that is not quickly told."""
        count = int(groups.max()) + 1 if len(groups) else 0
        if count > _FEW_GROUPS or len(groups) < _MANY_ROWS:
            return None
        values = _plain_numbers(key)
        if values is None:
            return None
        if bool((groups[:-1] <= groups[1:]).all()):
            # As windows are, whose rows come in the order of time: each group is a slice.
            ends = np.searchsorted(groups, np.arange(count), side="right").tolist()
            slices = [slice(start, end) for start, end in pairwise([0, *ends])]
            return np.concatenate([own.start + self._first_places(values[own]) for own in slices])
        members = [np.flatnonzero(groups == group) for group in range(count)]
        return np.sort(np.concatenate([own[self._first_places(values[own])] for own in members]))

    def _first_places(self, values: npt.NDArray[Any]) -> Codes:
        """Where the first n values of a group are, and others that are equal to the last of these."""
        if len(values) <= self.n:
            return np.arange(len(values))
        is_descending = self.order_by[0].is_descending
        last = _nth(values, self.n, is_descending=is_descending)
        return np.flatnonzero(values >= last if is_descending else values <= last)


def order_codes(column: Any, *, is_descending: bool = False, nulls_last: bool = True) -> list[Codes]:
    """Numbers in the order of the values: NaN is the greatest; lists and maps, which have no order, by their hash.

    A struct has several, one for each field after one for its nulls.
    """
    kind = column.type
    if is_nested(kind):
        return [value_hashes(column).view(np.int64)]
    column = one_chunk(column)
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


def sort_order(columns: Sequence[Any], rows: int) -> Codes:
    """The order of rows by all columns, the first one first; equal rows keep theirs.

    Values of a column are compared only of rows that are equal in the columns before it.
    """
    order = np.arange(rows)
    starts = np.zeros(rows, dtype=np.bool_)
    starts[:1] = True
    for column in columns:
        runs = np.cumsum(starts, dtype=np.int64)
        places = np.flatnonzero(_is_tied(runs))
        if not len(places):
            break
        tied = order[places]
        if len(places) == rows:
            codes = [code[tied] for code in order_codes(column)]
        else:
            codes = order_codes(_take(column, tied))
        by_code = np.lexsort([*reversed(codes), runs[places]])
        order[places] = tied[by_code]
        for code in codes:
            found = code[by_code]
            starts[places[1:]] |= found[1:] != found[:-1]
    return order


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


def _order_ties(rows: Codes, runs: Codes, columns: Sequence[Any]) -> Codes | None:
    """The order that puts rows of one run in that of the columns, None for that in which they are.

    Only those are compared that are not alone in their run.
    """
    places = np.flatnonzero(_is_tied(runs))
    if not len(places):
        return None
    codes = [code for column in columns for code in order_codes(_take(column, rows[places]))]
    order = np.arange(len(rows))
    order[places] = places[np.lexsort([*reversed(codes), runs[places]])]
    return order


def _is_tied(runs: Codes) -> Mask:
    """Which rows are not alone in their run; runs ascend."""
    is_tied = np.zeros(len(runs), dtype=np.bool_)
    np.equal(runs[1:], runs[:-1], out=is_tied[1:])
    is_tied[:-1] |= is_tied[1:]
    return is_tied


def _take(column: Any, numbers: Codes) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return take_in_parts(pa.table([column], names=["column"]), numbers).column(0)
    return column.take(pa.array(numbers))
