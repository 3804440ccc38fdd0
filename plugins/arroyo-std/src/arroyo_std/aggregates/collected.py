"""Aggregates that keep values: count_distinct, median, list, and any function over distinct or retractable rows.

Their states grow with the distinct values of a group (`list`: with its rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_std.aggregates.function import Aggregate, Rows, States
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.aggregates.lists import flatten, gather, lengths_of, tally
from arroyo_std.large_rows import concat, join_arrays, take_batches


class Multiset(Aggregate):
    """The distinct values of a group, each with how often it occurs. Nulls do not count."""

    is_retractable = True
    is_compact = False

    def __init__(self, columns: Sequence[str], kinds: Sequence[pa.DataType], *, has_nulls: bool = False) -> None:
        self._columns = columns
        self._kinds = kinds
        self._has_nulls = has_nulls

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        names = ["values"] if len(self._columns) == 1 else [f"values_{place}" for place in range(len(self._columns))]
        lists = [(name, pa.list_(kind)) for name, kind in zip(names, self._kinds, strict=True)]
        return [*lists, ("counts", pa.list_(pa.int64()))]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, keep = rows.select(groups, self._columns, has_nulls=self._has_nulls)
        return self._gather(*tally(selected, columns, np.ones(int(keep.sum()), dtype=np.int64)))

    def merge(self, states: States, groups: Groups) -> States:
        parents, (*columns, counts) = flatten(states)
        elements = Groups(groups.codes[parents], groups.count, has_empty=True)
        return self._gather(*tally(elements, columns, counts.to_numpy()))

    def subtract(self, states: States, others: States) -> States:
        kept, (*columns, counts) = flatten(states)
        gone, (*gone_columns, gone_counts) = flatten(others)
        codes = np.concatenate([kept, gone])
        joined = [join_arrays([left, right]) for left, right in zip(columns, gone_columns, strict=True)]
        both = np.concatenate([counts.to_numpy(), -gone_counts.to_numpy()])
        return self._gather(*tally(Groups(codes, len(states[0]), has_empty=True), joined, both))

    def finish(self, states: States) -> pa.Array:
        return states[0]

    def _gather(self, groups: Groups, columns: list[pa.Array], counts: Codes) -> States:
        lists = gather(groups, [*columns, pa.array(counts)])
        fields = self.state_fields()
        return [each if each.type == kind else each.cast(kind) for each, (_, kind) in zip(lists, fields, strict=True)]


class CountDistinct(Multiset):
    """How many distinct values there are, exactly."""

    output_type = pa.int64()

    def __init__(self, column: str, kind: pa.DataType) -> None:
        super().__init__([column], [kind])

    def finish(self, states: States) -> pa.Array:
        # What was taken back more often than it was given is not there.
        parents, (_, counts) = flatten(states)
        is_there = counts.to_numpy() > 0
        return pa.array(np.bincount(parents[is_there], minlength=len(states[0])).astype(np.int64))


class Percentile(Multiset):
    """The value at a rank, exactly; between two values if the rank is: the median of an even number is their mean."""

    output_type = pa.float64()

    def __init__(self, column: str, kind: pa.DataType, *, percentile: float) -> None:
        super().__init__([column], [kind])
        self._percentile = percentile

    def finish(self, states: States) -> pa.Array:
        parents, (values, counts) = flatten(states)
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        weights = np.maximum(counts.to_numpy(), 0)
        order = np.lexsort((numbers, parents))
        parents, numbers, weights = parents[order], numbers[order], weights[order]
        totals = np.zeros(len(states[0]), dtype=np.int64)
        np.add.at(totals, parents, weights)
        if not len(numbers):
            return pa.nulls(len(totals), pa.float64())
        ends = np.cumsum(weights)
        before = np.cumsum(totals) - totals
        rank = self._percentile * np.maximum(totals - 1, 0)
        lower, upper = np.floor(rank).astype(np.int64), np.ceil(rank).astype(np.int64)
        # The element at a position is the first whose running count exceeds it.
        below, above = (
            numbers[np.minimum(np.searchsorted(ends, before + position, side="right"), len(numbers) - 1)]
            for position in (lower, upper)
        )
        share = rank - lower
        # Of equal values nothing is computed: infinite ones have no difference.
        found = np.where(below == above, below, below * (1 - share) + above * share)
        return pa.array(found, pa.float64(), mask=totals == 0)


class ListOf(Aggregate):
    """All values, nulls too, in no promised order; null where there is none."""

    is_compact = False

    def __init__(self, column: str, kind: pa.DataType) -> None:
        self._column = column
        self.output_type = pa.list_(kind)

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("values", self.output_type)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, [self._column], has_nulls=True)
        return gather(selected, columns)

    def merge(self, states: States, groups: Groups) -> States:
        parents, elements = flatten(states)
        return gather(Groups(groups.codes[parents], groups.count, has_empty=True), elements)

    def finish(self, states: States) -> pa.Array:
        is_empty = pa.array(lengths_of(states[0]) == 0)
        return pc.if_else(is_empty, pa.scalar(None, self.output_type), states[0])


class Recomputed(Aggregate):
    """A function that cannot take back rows, over the multiset of all rows that count; or over distinct values.

    The inner function sees the rows again whenever a result is wanted, so its cost grows with the group. Distinct
    values it sees once, without their times.
    """

    is_retractable = True
    is_compact = False
    _TIME = "_time_us"

    def __init__(
        self, inner: Aggregate, columns: Sequence[str], kinds: Sequence[pa.DataType], *, is_distinct: bool = False
    ) -> None:
        self._inner = inner
        self._is_distinct = is_distinct
        self._names = list(columns) if is_distinct else [*columns, self._TIME]
        self._rows = Multiset(self._names, kinds if is_distinct else [*kinds, pa.int64()], has_nulls=True)
        self.output_type = inner.output_type

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return self._rows.state_fields()

    def partial(self, rows: Rows, groups: Groups) -> States:
        timed = Rows({**rows.columns, self._TIME: pa.array(rows.times_us)}, rows.times_us, rows.arrivals, rows.mask)
        return self._rows.partial(timed, groups)

    def merge(self, states: States, groups: Groups) -> States:
        return self._rows.merge(states, groups)

    def subtract(self, states: States, others: States) -> States:
        return self._rows.subtract(states, others)

    def finish(self, states: States) -> pa.Array:
        parents, (*columns, counts) = flatten(states)
        times = np.clip(counts.to_numpy(), 0, 1 if self._is_distinct else None)
        rows = np.repeat(np.arange(len(parents)), times)
        values = pa.RecordBatch.from_arrays(columns, names=self._names)
        found: States | None = None
        done = 0
        # Values that are there many times may be more than a batch can hold: then they come in several.
        for part in take_batches(values, rows):
            end = done + part.num_rows
            taken = dict(zip(part.schema.names, part.columns, strict=True))
            times_us = np.zeros(part.num_rows, np.int64) if self._is_distinct else taken[self._TIME].to_numpy()
            again = Rows(taken, times_us, np.arange(done, end))
            groups = Groups(parents[rows[done:end]], len(states[0]), has_empty=True)
            more = self._inner.partial(again, groups)
            found = more if found is None else self._joined(found, more)
            done = end
        return self._inner.finish(found or [])

    def _joined(self, left: States, right: States) -> States:
        """The states of the same groups of some rows and of others as one."""
        names = [name for name, _ in self._inner.state_fields()]
        both = concat([pa.RecordBatch.from_arrays(states, names=names) for states in (left, right)])
        return self._inner.merge(both.columns, Groups(np.tile(np.arange(len(left[0])), 2), len(left[0])))
