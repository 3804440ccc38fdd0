"""The columns of windowed aggregates: of the output, and of the partial aggregates in state."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.api import ArroyoSchema, Registry
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.keys import check_names, free_name, key_columns, key_fields
from arroyo_std.aggregates.partials import ROWS, partial_schema
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.windows.times import TIME_TYPE, Times, time_array

WINDOW_START = "window_start"
WINDOW_END = "window_end"
#: The event time of a window's row: one microsecond before its end, the last moment that belongs to it.
WINDOW_TIME = "window_time"
WINDOW_COLUMNS = (WINDOW_START, WINDOW_END, WINDOW_TIME)


class WindowLayout:
    """Keys, window and aggregates of one operator, for inputs of one type."""

    def __init__(
        self, keys: Sequence[str], specs: Sequence[AggregateSpec], stream: ArroyoSchema, registry: Registry
    ) -> None:
        self.keys = tuple(keys)
        self.key_fields = key_fields(keys, stream)
        for position, key in enumerate(keys):
            if key in WINDOW_COLUMNS:
                raise ConfigError(
                    f"the output has a column {key!r} of its own: rename the key with std.project",
                    field=f"keys[{position}]",
                    value=key,
                )
        check_names(specs, [*keys, *WINDOW_COLUMNS])
        self.plan = AggregatePlan(specs, stream.schema, registry, keys=keys)
        window = [pa.field(name, TIME_TYPE) for name in WINDOW_COLUMNS]
        self.output = ArroyoSchema(
            pa.schema([*self.key_fields, *window, *self.plan.output_fields]), WINDOW_TIME, self.keys
        )
        #: Partial aggregates by key and by the start of a window, or of the part of one.
        self.state = ArroyoSchema(
            pa.schema([*self.key_fields, pa.field(WINDOW_START, TIME_TYPE), *self.plan.state_fields]),
            WINDOW_START,
            self.keys,
        )

        #: Partial aggregates on their way through a shuffle; last is how many rows each stands for.
        self.partial = partial_schema([*self.state.schema, self.rows_field()], stream, timestamp_column=WINDOW_START)

    def rows_field(self) -> pa.Field:
        """The column of how many rows a partial row stands for; it is found by its place."""
        return pa.field(free_name(ROWS, self.state.names), pa.int64())

    def key_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The keys of a batch of the input, in plain types."""
        return key_columns(batch, self.key_fields)

    def states_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The state columns of rows of `state`."""
        return list(rows.columns[-len(self.plan.state_fields) :]) if self.plan.state_fields else []

    def finish(
        self, keys: Sequence[pa.Array], states: Sequence[pa.Array], *, starts_us: Times, ends_us: Times
    ) -> pa.RecordBatch:
        """Rows of the output, of states."""
        return self.rows(keys, self.plan.finish(states), starts_us=starts_us, ends_us=ends_us)

    def rows(
        self, keys: Sequence[pa.Array], results: Sequence[pa.Array], *, starts_us: Times, ends_us: Times
    ) -> pa.RecordBatch:
        """Rows of the output, of the results of aggregates."""
        window = [time_array(starts_us), time_array(ends_us), time_array(ends_us - 1)]
        return pa.RecordBatch.from_arrays([*keys, *window, *results], schema=self.output.schema)
