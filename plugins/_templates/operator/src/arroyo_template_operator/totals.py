"""`template.totals`: a column added up by key, over all rows so far."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    UnboundedState,
)
from arroyo_core.errors import ConfigError
from arroyo_core.state import timestamp_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "totals"


class Totals(ArrowOperator):
    """Gives the new total of each key of a batch; the totals are in the table `totals`, a row for each key."""

    def __init__(self, key: str, value: str, column: str) -> None:
        self._key = key
        self._value = value
        self._column = column

    def name(self) -> str:
        return "template.totals"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("key", self._key), ("sum of", self._value)])

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        (stream,) = inputs
        for field, name in (("key", self._key), ("value", self._value)):
            if name not in stream.names:
                raise ConfigError(f"no column {name!r}", field=field, value=name, allowed=stream.names)
        kind = stream.schema.field(self._value).type
        if not pa.types.is_integer(kind):
            raise ConfigError(
                f"cannot add up {self._value!r}, which is {kind}",
                field="value",
                value=self._value,
                allowed=["integers"],
            )
        if self._column == self._key:
            raise ConfigError("the key has this name already", field="column", value=self._column)
        return self._totals(stream)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # All rows of one key must meet in one subtask, or each would have a total of its own.
        return [(self._key,)]

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        # Totals of another column would go on from those of this one.
        return {"sum of": self._value}

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        return UnboundedState("it keeps a total of every key for ever", "add up by a column of few values")

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        # Without event times rows stay for ever, and the retention does not matter.
        columns = self._totals(inputs[0])
        return {TABLE: timestamp_table_config(TABLE, "the total of each key", timedelta(0), True, columns)}

    def on_start(self, ctx: OperatorContext) -> None:
        self._table = ctx.table_manager.get_last_key_value_table(TABLE)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        values = pc.fill_null(batch.column(self._value).cast(pa.int64()), 0)
        rows = pa.table({self._key: batch.column(self._key), self._column: values})
        added = rows.group_by(self._key).aggregate([(self._column, "sum")]).combine_chunks()
        if not added.num_rows:
            return
        key, amount = (added.column(place).chunk(0) for place in (0, 1))
        before = self._table.get_aligned(pa.record_batch([key], names=[self._key])).column(self._column)
        total = pc.add_checked(amount, pc.fill_null(before, 0))
        totals = pa.RecordBatch.from_arrays([key, total], schema=ctx.output_schema.schema)
        self._table.upsert(totals)
        collector.collect(totals)

    def _totals(self, stream: ArroyoSchema) -> ArroyoSchema:
        columns = pa.schema([stream.schema.field(self._key), pa.field(self._column, pa.int64())])
        return ArroyoSchema(columns, key_columns=(self._key,))
