"""The columns of updating aggregates: of the output, of what came, and of the state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArroyoSchema, Registry
from arroyo_core.api.updating import UPDATING_META, is_updating, with_updating, without_updating
from arroyo_std.aggregates.groups import Groups
from arroyo_std.aggregates.keys import check_names, free_name, key_fields
from arroyo_std.aggregates.partials import ROWS, partial_schema
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.timers import timer_schema

#: Whether a partial row takes back rows.
IS_RETRACT = "_is_retract"
UPDATED = "_updated_us"
TIMER = "_timer_us"


class UpdatingLayout:
    """Keys, aggregates and state of one operator, for inputs of one type."""

    def __init__(
        self,
        keys: Sequence[str],
        specs: Sequence[AggregateSpec],
        stream: ArroyoSchema,
        registry: Registry,
        *,
        keeps_empty: bool = False,
    ) -> None:
        """`keeps_empty` says that a group without rows has a result, too."""
        self.keeps_empty = keeps_empty
        self.keys = tuple(keys)
        self.is_updating = is_updating(stream)
        rows = without_updating(stream)
        self._rows = rows.schema
        self.key_fields = key_fields(keys, rows)
        check_names(specs, [*keys, UPDATING_META])
        # A hidden aggregate: how many rows the group has.
        hidden = free_name(ROWS, {spec.name for spec in specs})
        counted = [AggregateSpec(function="count", field="", alias=hidden), *specs]
        self.plan = AggregatePlan(counted, rows.schema, registry, keys=keys, is_updating=self.is_updating)
        self.result_schema = pa.schema([*self.key_fields, *self.plan.output_fields[1:]])
        self.output = with_updating(ArroyoSchema(self.result_schema, None, self.keys))
        times = [pa.field(UPDATED, pa.int64()), pa.field(TIMER, pa.int64())]
        #: The states of rows that came, by key.
        self.delta = pa.schema([*self.key_fields, *self.plan.state_fields])
        #: The state of a group, when it last changed, and the time of its timer.
        self.state = ArroyoSchema(pa.schema([*self.key_fields, *self.plan.state_fields, *times]), key_columns=self.keys)
        self.timers = timer_schema(self.key_fields)
        #: Partial aggregates on their way through a shuffle.
        self.partial = partial_schema(
            [*self.key_fields, *self.plan.state_fields, pa.field(IS_RETRACT, pa.bool_())], stream
        )

    def states_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Of rows of `state` or of `delta`."""
        width = len(self.keys)
        return list(rows.columns[width : width + len(self.plan.state_fields)])

    def key_batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows, to look up; with a column that is none, because without keys there would be no rows."""
        columns = [*rows.columns[: len(self.keys)], pa.nulls(rows.num_rows, pa.int64())]
        return pa.RecordBatch.from_arrays(columns, names=[*self.keys, TIMER])

    def group_of_no_rows(self) -> pa.RecordBatch:
        """A row of `delta` for the only group there is without keys."""
        rows = pa.RecordBatch.from_pylist([], schema=self._rows)
        nobody = np.empty(0, dtype=np.int64)
        states = self.plan.partial(rows, Groups(nobody, 1, has_empty=True), times_us=nobody, arrivals=nobody)
        return pa.RecordBatch.from_arrays(states, schema=self.delta)

    def results(self, keys: Sequence[pa.Array], states: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*keys, *self.plan.finish(states)[1:]], schema=self.result_schema)

    def sent_results(self, keys: Sequence[pa.Array], states: Sequence[pa.Array]) -> pa.RecordBatch:
        """Results as they were sent, to be taken back."""
        return pa.RecordBatch.from_arrays([*keys, *self.plan.finish_sent(states)[1:]], schema=self.result_schema)
