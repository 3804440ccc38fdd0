"""`std.map_batches`: a user function that makes rows of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, DisplayableOperator, OperatorContext
from arroyo_core.api.updating import UPDATING_META, is_updating
from arroyo_core.errors import ConfigError, UdfError
from arroyo_core.udf import BatchUdf
from arroyo_std.on_error import OnError, RowErrors


class MapBatches(ArrowOperator):
    """Gives each batch to a function under `@batch_udf`, and sends what it gives.

    The event time stays, under its name; watermarks go on as they come, so a function that makes times earlier
    makes rows late. Keys do not stay: nobody knows what the function did to them.
    """

    def __init__(self, function: BatchUdf, *, on_error: OnError = OnError.FAIL) -> None:
        self._function = function
        self._errors = RowErrors(on_error)

    def name(self) -> str:
        return "std.map_batches"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        try:
            schema = self._function.derive_schema(stream.schema)
        except UdfError as error:
            raise ConfigError(error.summary, field="function", value=self._function.name) from error
        for column, what in (
            (stream.timestamp_column, "its event time"),
            (self._meta(stream), "what makes it updating"),
        ):
            if column is not None and column not in schema.names:
                raise ConfigError(
                    f"the input has {what} in column {column!r}, which {self._function.name!r} does not declare: its "
                    "'schema' must have it",
                    field="function",
                    value=self._function.name,
                )
        return ArroyoSchema(schema, stream.timestamp_column)

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        return self._errors.side_outputs(inputs[0])

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("function", self._function.name), *self._errors.display()])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._schema = ctx.output_schema.schema

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        for outcome in self._errors.compute(batch, self._evaluate, ctx, collector):
            if outcome.result is not None:
                collector.collect(outcome.result)
            elif not self._errors.keeps_rows:
                collector.collect(self._nulls(outcome.rows))

    def _evaluate(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._function.evaluate(batch, self._schema)

    def _nulls(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as far as they are the input's."""
        columns = [
            rows.column(field.name)
            if field.name in rows.schema.names and rows.schema.field(field.name).type == field.type
            else pa.nulls(rows.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    @staticmethod
    def _meta(stream: ArroyoSchema) -> str | None:
        return UPDATING_META if is_updating(stream) else None
