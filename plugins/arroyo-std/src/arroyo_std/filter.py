"""`std.filter`: keeps the rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    Registry,
)
from arroyo_core.errors import ConfigError
from arroyo_std.on_error import OnError, RowErrors
from arroyo_std.sql import Expression, check_expressions, compile_expressions


class Filter(ArrowOperator):
    """Drops rows whose predicate is false or NULL; the stream's type stays."""

    def __init__(self, predicate: str, registry: Registry, *, on_error: OnError = OnError.FAIL) -> None:
        self._predicate = Expression(name="predicate", sql=predicate, field="predicate")
        self._registry = registry
        self._errors = RowErrors(on_error)

    def name(self) -> str:
        return "std.filter"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        compiled = check_expressions([self._predicate], inputs[0].schema, self._registry)
        found = compiled.schema.field(0).type
        if not pa.types.is_boolean(found):
            sql = self._predicate.sql
            raise ConfigError(f"the predicate is {found}, not boolean", field="predicate", value=sql)
        return inputs[0]

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        return self._errors.side_outputs(inputs[0])

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        if self._errors.keeps_rows:
            return [None]
        compiled = compile_expressions([self._predicate], inputs[0].schema, self._registry)
        return [needed | compiled.columns]

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("predicate", self._predicate.sql), *self._errors.display()])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._compiled = compile_expressions([self._predicate], ctx.input_schemas[0].schema, self._registry)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        compiled = self._compiled
        outcomes = self._errors.compute(batch, compiled.evaluate, ctx, collector, collect=compiled.evaluate_collecting)
        for outcome in outcomes:
            if outcome.result is not None:
                self._emit(outcome.rows, outcome.result.column(0), collector)

    def _emit(self, batch: pa.RecordBatch, mask: pa.BooleanArray, collector: ArrowCollector) -> None:
        kept = pc.sum(mask, min_count=0).as_py()
        if kept == batch.num_rows:
            collector.collect(batch)
        elif kept:
            collector.collect(batch.filter(mask, null_selection_behavior="drop"))
