"""Aggregates that users write: their states are made and merged by the user's code, one call per group or row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.udf import AggregateUdf
from arroyo_std.aggregates.function import Aggregate, Rows, States
from arroyo_std.aggregates.groups import Groups, order_by_code


class UserAggregate(Aggregate):
    """A function under `@udaf` over columns of the input. Raises `UdfError` wherever the user's code fails.

    A row with a null where its parameter takes none does not count.
    """

    def __init__(self, function: AggregateUdf, columns: Sequence[str]) -> None:
        self._function = function
        self._columns = columns
        self.output_type = function.return_type

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("state", self._function.state_type)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, self._columns, has_nulls=True)
        has_gaps = [
            column
            for column, parameter in zip(columns, self._function.parameters, strict=True)
            if column.null_count and not parameter.is_nullable
        ]
        if has_gaps:
            keep = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in has_gaps])
            mask = pa.array(keep)
            selected, columns = selected.where(keep), [column.filter(mask) for column in columns]
        columns, bounds = _sorted(selected, columns)
        return [self._function.partial(columns, bounds)]

    def merge(self, states: States, groups: Groups) -> States:
        if len(groups.codes) == groups.count and bool((groups.codes == np.arange(groups.count)).all()):
            # One state for each group is merged already.
            return states
        columns, bounds = _sorted(groups, states)
        return [self._function.merge(columns[0], bounds)]

    def finish(self, states: States) -> pa.Array:
        return self._function.finish(states[0])


def _sorted(groups: Groups, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], list[int]]:
    """The rows sorted by group, in their own order within one, and where each group begins, and the last ends."""
    codes = groups.codes
    if len(codes) and not bool((codes[:-1] <= codes[1:]).all()):
        order = pa.array(order_by_code(codes, groups.count))
        columns = [column.take(order) for column in columns]
    return list(columns), [0, *np.cumsum(groups.sizes()).tolist()]
