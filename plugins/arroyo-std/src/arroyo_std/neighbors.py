"""`std.neighbors`: columns with the values of rows before and behind, of the same key and in event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    Registry,
    UnboundedState,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import refuse_updating
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.groups import Groups
from arroyo_std.columns import check_column, check_unique
from arroyo_std.event_groups import EventGroups, event_group_tables
from arroyo_std.key_tails import OWN_COLUMNS, KeyTails, Neighbor, Tail, tail_tables
from arroyo_std.large_rows import Rows, as_batch, cut_batches, take
from arroyo_std.ranking import OrderBy, order_codes, sort_order
from arroyo_std.row_values import is_nested, plain_rows, plain_schema
from arroyo_std.setting_texts import names_text
from arroyo_std.sql import Expression, check_expressions

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: Where literals are computed: there is no column that they could mean.
_NO_COLUMNS = pa.schema({"_": pa.int64()})


class Neighbors(ArrowOperator):
    """Adds to each row values of the rows that are some places before or behind it among those of its key.

    Rows of a key are in the order of event time, then of `order_by`, then of all columns, so that the order of arrival
    does not matter. A row looks at rows whose times are at most `ttl_us` (None: any time) from its own. It goes on when
    the watermark has passed it and all rows it looks at, or cannot come any more.
    """

    def __init__(
        self,
        neighbors: Sequence[Neighbor],
        *,
        keys: tuple[str, ...],
        order_by: tuple[OrderBy, ...],
        ttl_us: int | None,
        registry: Registry,
    ) -> None:
        self._neighbors = tuple(neighbors)
        self._keys = keys
        self._order_by = order_by
        self._ttl_us = ttl_us
        self._registry = registry
        self._ahead = max(0, *(each.places for each in neighbors))

    def name(self) -> str:
        return "std.neighbors"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        refuse_updating(stream, operator=self.name())
        if stream.timestamp_column is None:
            raise ConfigError(
                "rows are in the order of their event time, and the stream has none: put std.watermark in front"
            )
        for name in stream.names:
            if name in OWN_COLUMNS:
                raise ConfigError(f"the input has a column {name!r}, a name that {self.name()} needs: rename it")
        self._check_columns(stream)
        plain = plain_schema(stream.schema)
        names = set(plain.names)
        for each in self._neighbors:
            check_column(each.column, plain.names, field=f"{each.field}.column")
            if each.name in names:
                raise ConfigError(
                    f"there is a column {each.name!r} already: give another name",
                    field=f"{each.field}.as",
                    value=each.name,
                )
            names.add(each.name)
            self._default(each, plain)
        fields = [pa.field(each.name, plain.field(each.column).type) for each in self._neighbors]
        return ArroyoSchema(pa.schema([*plain, *fields]), stream.timestamp_column, self._keys)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._keys]

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return True

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        if self._ttl_us is not None:
            return None
        return UnboundedState("it keeps the last rows of every key for ever", "give a ttl other than 0")

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return {**event_group_tables(self._rows(inputs[0])), **tail_tables(self._tail(inputs[0]))}

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Rows before are kept as far back as is looked, and rows that wait are due by the ttl.
        waits = {"ttl": self._shown_ttl()} if self._ahead else {}
        return {
            "keys": names_text(self._keys),
            "order by": names_text(each.shown() for each in self._order_by),
            "rows before": str(max(0, *(-each.places for each in self._neighbors))),
            "rows behind": str(self._ahead),
            **waits,
        }

    def display(self) -> DisplayableOperator:
        fields = [("keys", ", ".join(self._keys)), ("order by", ", ".join(each.shown() for each in self._order_by))]
        return DisplayableOperator(
            self.name(),
            [
                *((label, text) for label, text in fields if text),
                *((each.name, each.shown()) for each in self._neighbors),
                ("ttl", self._shown_ttl()),
            ],
        )

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        self._time_column = stream.timestamp_column or ""
        self._plain = plain_schema(stream.schema)
        defaults = [self._default(each, self._plain) for each in self._neighbors]
        self._tails = KeyTails(self._tail(stream), ctx.output_schema.schema, defaults, ctx)
        # Where rows are many, those of a key come in order all the same.
        self._groups = EventGroups(self._rows(stream), finish=self._finish, reduce=None, ctx=ctx, whole_by=self._keys)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._groups.add(plain_rows(batch, self._plain), ctx)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        watermark_us = watermark.event_time_us
        if watermark_us is None:
            return watermark
        self._groups.advance(watermark_us, collector)
        for rows in self._tails.expire(watermark_us):
            for batch in cut_batches(rows):
                collector.collect(batch)
        if not self._ahead or watermark_us >= END_OF_TIME_US:
            return watermark
        # Rows that wait for others must not be behind the watermark that goes on.
        return None if self._ttl_us is None else Watermark.event_time(watermark_us - self._ttl_us)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._groups.save(barrier.epoch, ctx)

    def _finish(self, rows: Rows) -> Rows:
        times = rows.column(self._time_column)
        ties = [
            pa.array(codes)
            for each in self._order_by
            for codes in order_codes(
                rows.column(each.column), is_descending=each.is_descending, nulls_last=each.nulls_last
            )
        ]
        rows = take(rows, sort_order([times, *ties, *rows.columns], rows.num_rows))
        groups = Groups.of_columns([rows.column(name) for name in self._keys], rows.num_rows)
        names = [*self._keys, *([self._time_column] if self._time_column not in self._keys else [])]
        keys = as_batch(take(rows.select(names), np.asarray(groups.first_rows())))
        return self._tails.append(keys, rows, groups.codes)

    def _rows(self, stream: ArroyoSchema) -> ArroyoSchema:
        """What waits for the watermark."""
        return ArroyoSchema(plain_schema(stream.schema), stream.timestamp_column, self._keys)

    def _tail(self, stream: ArroyoSchema) -> Tail:
        return Tail(rows=self._rows(stream), neighbors=self._neighbors, ttl_us=self._ttl_us)

    def _shown_ttl(self) -> str:
        return "none" if self._ttl_us is None else format_duration_us(self._ttl_us)

    def _check_columns(self, stream: ArroyoSchema) -> None:
        for position, key in enumerate(self._keys):
            check_column(key, stream.names, field=f"keys[{position}]")
            if is_nested(stream.schema.field(key).type):
                raise ConfigError("lists and maps cannot be keys", field=f"keys[{position}]", value=key)
        check_unique(self._keys, field="keys")
        for order in self._order_by:
            check_column(order.column, stream.names, field=f"{order.field}.column")
            if is_nested(stream.schema.field(order.column).type):
                raise ConfigError("lists and maps have no order", field=f"{order.field}.column", value=order.column)

    def _default(self, neighbor: Neighbor, schema: pa.Schema) -> pa.Array:
        """The value where there is no such row, as an array of one."""
        kind = schema.field(neighbor.column).type
        if neighbor.default is None:
            return pa.nulls(1, kind)
        field = f"{neighbor.field}.default"
        expression = Expression(name="value", sql=neighbor.default, field=field)
        compiled = check_expressions([expression], _NO_COLUMNS, self._registry)
        if compiled.columns:
            raise ConfigError("a default is a literal, such as 0 or 'none'", field=field, value=neighbor.default)
        found = compiled.evaluate(pa.record_batch({"_": pa.array([0])}, schema=_NO_COLUMNS)).column(0)
        try:
            return found.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConfigError(
                f"the default is no {kind}, the type of column {neighbor.column!r}", field=field, value=neighbor.default
            ) from error
