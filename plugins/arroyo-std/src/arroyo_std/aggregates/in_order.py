"""Aggregates of values in an order that is asked for: list, string_agg, first, last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_std.aggregates.function import Aggregate, Rows, States
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.aggregates.lists import flatten, gather, lengths_of
from arroyo_std.ranking import OrderBy, order_codes


class _InOrder(Aggregate):
    """Values, and beside each the columns of the order."""

    def __init__(
        self, column: str, kind: pa.DataType, order_by: Sequence[OrderBy], order_kinds: Sequence[pa.DataType]
    ) -> None:
        self._columns = [column, *(each.column for each in order_by)]
        self._kinds = [kind, *order_kinds]
        self._order_by = order_by

    @property
    def _names(self) -> list[str]:
        return ["values", *(f"order_{place}" for place in range(len(self._order_by)))]

    def _sorted(self, codes: Codes, columns: Sequence[pa.Array]) -> Codes:
        """The order of rows by their group, then as is asked for, then by value."""
        value, *keys = columns
        numbers = [codes]
        for key, each in zip(keys, self._order_by, strict=True):
            numbers += order_codes(key, is_descending=each.is_descending, nulls_last=each.nulls_last)
        numbers += order_codes(value)
        found: Codes = np.lexsort(numbers[::-1])
        return found


class OrderedList(_InOrder):
    """All values, nulls too, in an order, or in none that is promised; null where there is none."""

    is_compact = False

    def __init__(
        self,
        column: str,
        kind: pa.DataType,
        order_by: Sequence[OrderBy],
        order_kinds: Sequence[pa.DataType],
        *,
        has_nulls: bool = True,
    ) -> None:
        super().__init__(column, kind, order_by, order_kinds)
        self._has_nulls = has_nulls
        self._list_type = pa.list_(kind)
        self.output_type = self._list_type

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [(name, pa.list_(kind)) for name, kind in zip(self._names, self._kinds, strict=True)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, self._columns, has_nulls=True)
        if not self._has_nulls and columns[0].null_count:
            mask = columns[0].is_valid()
            selected = selected.where(mask.to_numpy(zero_copy_only=False))
            columns = [column.filter(mask) for column in columns]
        return self._gathered(selected, columns)

    def merge(self, states: States, groups: Groups) -> States:
        parents, columns = flatten(states)
        return self._gathered(Groups(groups.codes[parents], groups.count, has_empty=True), columns)

    def finish(self, states: States) -> pa.Array:
        return self._lists(states)

    def _lists(self, states: States) -> pa.Array:
        listed = states[0]
        if self._order_by:
            parents, columns = flatten(states)
            order = pa.array(self._sorted(parents, columns))
            groups = Groups(parents, len(states[0]), has_empty=True)
            (listed,) = gather(groups, [columns[0].take(order)])
        is_empty = pa.array(lengths_of(listed) == 0)
        return pc.if_else(is_empty, pa.scalar(None, self._list_type), listed.cast(self._list_type))

    def _gathered(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        found = gather(groups, columns)
        return [each.cast(kind) for each, (_, kind) in zip(found, self.state_fields(), strict=True)]


class JoinedTexts(OrderedList):
    """All texts as one, with a separator between them; nulls do not count."""

    def __init__(
        self,
        column: str,
        kind: pa.DataType,
        order_by: Sequence[OrderBy],
        order_kinds: Sequence[pa.DataType],
        *,
        separator: str,
    ) -> None:
        super().__init__(column, kind, order_by, order_kinds, has_nulls=False)
        self._separator = separator
        self.output_type = kind

    def finish(self, states: States) -> pa.Array:
        return pc.binary_join(self._lists(states), self._separator)


class Outermost(_InOrder):
    """The value, null or not, of the row that is the first or the last in an order."""

    def __init__(
        self,
        column: str,
        kind: pa.DataType,
        order_by: Sequence[OrderBy],
        order_kinds: Sequence[pa.DataType],
        *,
        is_last: bool,
    ) -> None:
        super().__init__(column, kind, order_by, order_kinds)
        self._is_last = is_last
        self.output_type = kind

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("is_known", pa.bool_()), *zip(self._names, self._kinds, strict=True)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, self._columns, has_nulls=True)
        return self._pick(selected, columns)

    def merge(self, states: States, groups: Groups) -> States:
        known, *columns = states
        if known.null_count:
            mask = known.is_valid()
            groups = groups.where(mask.to_numpy(zero_copy_only=False))
            columns = [column.filter(mask) for column in columns]
        return self._pick(groups, columns)

    def finish(self, states: States) -> pa.Array:
        return states[1]

    def _pick(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        order = self._sorted(groups.codes, columns)
        # Of several assignments to one place the last remains.
        order = order if self._is_last else order[::-1]
        chosen = np.full(groups.count, -1, dtype=np.int64)
        chosen[groups.codes[order]] = order
        places = pa.array(chosen, mask=chosen < 0)
        is_known = pa.array(chosen >= 0, mask=chosen < 0)
        return [is_known, *(column.take(places) for column in columns)]
