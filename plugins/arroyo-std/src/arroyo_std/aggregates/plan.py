"""All aggregates of an operator together: one state row per group, made, merged and finished column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError
from arroyo_core.state import ColumnOwner, column_path
from arroyo_std.aggregates.function import Aggregate, KernelAggregate, Rows, States, Times
from arroyo_std.aggregates.groups import Groups, Kernel
from arroyo_std.aggregates.keys import free_name
from arroyo_std.aggregates.registry import AggregateSpec, bind_aggregate
from arroyo_std.sql import CompiledExpressions, Expression, check_expressions, compile_expressions


class AggregatePlan:
    """The aggregates of one operator, bound to the type of its input. For one thread."""

    def __init__(
        self,
        specs: Sequence[AggregateSpec],
        schema: pa.Schema,
        registry: Registry,
        *,
        keys: Sequence[str] = (),
        is_updating: bool = False,
    ) -> None:
        """`keys` are the columns that stand beside the states."""
        self._specs = specs
        self._registry = registry
        self._schema = schema
        self.aggregates: list[Aggregate] = [
            bind_aggregate(spec, schema, registry, is_updating=is_updating) for spec in specs
        ]
        self.output_fields = [
            pa.field(spec.name, aggregate.output_type) for spec, aggregate in zip(specs, self.aggregates, strict=True)
        ]
        fields = [each.state_fields() for each in self.aggregates]
        self.state_fields = [
            pa.field(free_name(f"{spec.name}__{name}", keys), kind)
            for spec, each in zip(specs, fields, strict=True)
            for name, kind in each
        ]
        ends = np.cumsum([0, *(len(each) for each in fields)])
        self._slices = [slice(int(start), int(end)) for start, end in pairwise(ends)]
        #: The filters that differ, and which of them each aggregate has.
        self._filters = list(dict.fromkeys(spec.filter for spec in specs if spec.filter))
        self._compiled: CompiledExpressions | None = None

    def column_owners(self, parent: str = "") -> dict[str, ColumnOwner]:
        """Whose the state columns are, by their paths in a table, or in a column of one."""
        owners = [
            ColumnOwner(f"aggregate {spec.name}", f"{spec.shown()} {name}")
            for spec, aggregate in zip(self._specs, self.aggregates, strict=True)
            for name, _ in aggregate.state_fields()
        ]
        paths = [column_path(parent, field.name) for field in self.state_fields]
        return dict(zip(paths, owners, strict=True))

    @property
    def is_compact(self) -> bool:
        """Whether the states of many rows are smaller than the rows."""
        return all(aggregate.is_compact for aggregate in self.aggregates)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the input that the aggregates and their filters read."""
        named = frozenset(name for spec in self._specs for name in spec.read)
        expressions = [Expression(name=f"f{place}", sql=sql, field="") for place, sql in enumerate(self._filters)]
        if not expressions:
            return named
        return named | compile_expressions(expressions, self._schema, self._registry).columns

    def check(self) -> None:
        """Type the filters; for plan time. Raises `ConfigError` at the first that is not a condition."""
        for spec in self._specs:
            if not spec.filter:
                continue
            field = f"{spec.field}.filter"
            expression = Expression(name="filter", sql=spec.filter, field=field)
            found = check_expressions([expression], self._schema, self._registry).schema.field(0).type
            if not pa.types.is_boolean(found):
                raise ConfigError(f"the filter is {found}, not boolean", field=field, value=spec.filter)

    def start(self) -> None:
        """Plan the filters, before the first rows."""
        if self._filters:
            fields = {spec.filter: f"{spec.field}.filter" for spec in reversed(self._specs)}
            expressions = [
                Expression(name=f"f{place}", sql=sql, field=fields[sql]) for place, sql in enumerate(self._filters)
            ]
            self._compiled = compile_expressions(expressions, self._schema, self._registry)

    def partial(self, batch: pa.RecordBatch, groups: Groups, *, times_us: Times, arrivals: Times) -> States:
        """The state columns, one row per group, of a batch of rows."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        # Of no rows there is nothing to filter: a plan that was not started has a state of them too.
        masks = {sql: pa.array([], pa.bool_()) for sql in self._filters}
        if self._compiled is not None and batch.num_rows:
            found = self._compiled.evaluate(batch).columns
            masks = {sql: pc.fill_null(mask, False) for sql, mask in zip(self._filters, found, strict=True)}
        by_mask = {None: Rows(columns, times_us, arrivals)} | {
            sql: Rows(columns, times_us, arrivals, mask) for sql, mask in masks.items()
        }
        rows = [by_mask[spec.filter or None] for spec in self._specs]
        return self._run(
            groups,
            lambda place, aggregate: aggregate.lift(rows[place]),
            lambda place, aggregate: aggregate.partial(rows[place], groups),
        )

    def merge(self, states: Sequence[pa.Array], groups: Groups) -> States:
        """One state row per group from several; of an aggregate that is null in all of these it is null."""
        parts = [list(states[part]) for part in self._slices]
        return self._run(
            groups,
            lambda place, aggregate: aggregate.combine(parts[place]),
            lambda place, aggregate: _keep_unknown(parts[place], groups, aggregate.merge(parts[place], groups)),
        )

    def subtract(self, states: Sequence[pa.Array], others: Sequence[pa.Array]) -> States:
        """Each state row without the rows of the other."""
        return [
            column
            for aggregate, part in zip(self.aggregates, self._slices, strict=True)
            for column in aggregate.subtract(list(states[part]), list(others[part]))
        ]

    def finish(self, states: Sequence[pa.Array]) -> list[pa.Array]:
        """The results, one row per state row."""
        return [
            aggregate.finish(list(states[part])) for aggregate, part in zip(self.aggregates, self._slices, strict=True)
        ]

    def finish_sent(self, states: Sequence[pa.Array]) -> list[pa.Array]:
        """The results as they were sent: null for an aggregate that was not there yet."""
        results = []
        for result, part in zip(self.finish(states), self._slices, strict=True):
            is_unknown = _is_unknown(states[part])
            results.append(
                result if is_unknown is None else pc.if_else(is_unknown, pa.scalar(None, result.type), result)
            )
        return results

    def _run(
        self,
        groups: Groups,
        kernels_of: Callable[[int, KernelAggregate], list[Kernel]],
        states_of: Callable[[int, Aggregate], States],
    ) -> States:
        """All kernels in one pass, everything else on its own."""
        kernels = {
            place: kernels_of(place, aggregate)
            for place, aggregate in enumerate(self.aggregates)
            if isinstance(aggregate, KernelAggregate)
        }
        results = iter(groups.run([kernel for each in kernels.values() for kernel in each]))
        states: States = []
        for place, aggregate in enumerate(self.aggregates):
            if isinstance(aggregate, KernelAggregate):
                states += aggregate.lower([next(results) for _ in kernels[place]])
            else:
                states += states_of(place, aggregate)
        return states


def _is_unknown(states: Sequence[pa.Array]) -> pa.Array | None:
    """Which rows are from before an aggregate was there: null in all its columns; None if no row is."""
    if not all(state.null_count for state in states):
        return None
    return reduce(pc.and_, [state.is_null() for state in states])


def _keep_unknown(states: Sequence[pa.Array], groups: Groups, merged: States) -> States:
    """What was merged, null again for groups of which nothing is known."""
    is_unknown = _is_unknown(states)
    if is_unknown is None:
        return merged
    is_known = np.zeros(groups.count, dtype=np.bool_)
    is_known[groups.codes[~is_unknown.to_numpy(zero_copy_only=False)]] = True
    if is_known.all():
        return merged
    mask = pa.array(is_known)
    return [pc.if_else(mask, state, pa.scalar(None, state.type)) for state in merged]
