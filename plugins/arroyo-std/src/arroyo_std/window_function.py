"""`std.window_function`: columns that look at the other rows of the same event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    Registry,
    Watermark,
)
from arroyo_core.api.updating import refuse_updating
from arroyo_core.errors import ConfigError, DataError
from arroyo_core.state import large_type
from arroyo_std import sql_errors
from arroyo_std.columns import normal_type
from arroyo_std.event_groups import EventGroups, event_group_tables
from arroyo_std.json_operators import plain_sql
from arroyo_std.large_rows import Rows, concat, take
from arroyo_std.plan_steps import step_names
from arroyo_std.ranking import sort_order
from arroyo_std.row_values import is_nested, plain_rows, plain_schema
from arroyo_std.setting_texts import names_text
from arroyo_std.slot import BatchSlot, empty_batch
from arroyo_std.sql import Expression, check_calls, open_session
from arroyo_std.sql_functions import UserFunctions
from arroyo_std.window_clauses import WindowClauses, find_clauses

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: The number of each row, by which results find their rows again: windows sort them.
_ROW = "__row"
_ALLOWED_STEPS = {
    "ProjectionExec",
    "CooperativeExec",
    "DatasetExec",
    "SortExec",
    "WindowAggExec",
    "BoundedWindowAggExec",
}


class CompiledWindows:
    """Planned window functions over batches of one schema. For one thread at a time."""

    def __init__(self, expressions: Sequence[Expression], schema: pa.Schema, registry: Registry) -> None:
        self._expressions = expressions
        self._slot = BatchSlot(schema.append(pa.field(_ROW, pa.int64())))
        self._no_rows = self._slot.batch
        written = [plain_sql(expression.sql, field=expression.field).sql for expression in expressions]
        session = open_session(registry, written)
        self._context, self.functions = session.context, session.functions
        self._context.register_dataset(sql_errors.TABLE, self._slot)
        stream = self._context.table(sql_errors.TABLE)
        parsed = [
            stream.parse_sql_expr(sql).alias(expression.name)
            for sql, expression in zip(written, expressions, strict=True)
        ]
        frame = stream.select(stream.parse_sql_expr(f'"{_ROW}"'), *parsed)
        self._plan = frame.execution_plan()
        #: What `evaluate` yields: every field nullable, no views, no dictionaries.
        self.fields = [pa.field(field.name, normal_type(field.type)) for field in frame.schema()][1:]

    @property
    def steps(self) -> list[str]:
        """The names of the physical plan's steps, from the last to the first."""
        return step_names(self._plan)

    def evaluate(self, rows: Rows) -> list[Any]:
        """A column for each expression, in the order of the rows; raises `DataError` where one cannot be computed.

        Columns of a table are chunked.
        """
        try:
            return self.execute(rows)
        except Exception as error:
            # DataFusion raises bare exceptions; any other is not about the rows.
            if type(error) is not Exception:
                raise
            names = ", ".join(repr(expression.sql) for expression in self._expressions)
            raise DataError(f"cannot compute {names}: {sql_errors.readable(str(error))}") from error

    def execute(self, rows: Rows) -> list[Any]:
        """The same as `evaluate`, but raises whatever DataFusion raises, and `UdfError`."""
        self._slot.batch = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
        try:
            with self.functions.reporting():
                parts = [part.to_pyarrow() for part in self._context.execute(self._plan, 0)]
        finally:
            self._slot.batch = self._no_rows
        if not parts:
            return [pa.nulls(0, field.type) for field in self.fields]
        found = pa.Table.from_batches(parts) if isinstance(rows, pa.Table) else concat(parts)
        if found.num_rows != rows.num_rows:
            raise RuntimeError(f"DataFusion made {found.num_rows} rows of {rows.num_rows}")
        places = np.argsort(found.column(0).to_numpy(), kind="stable")
        columns = take(found.select(found.schema.names[1:]), places).columns
        return _cast(columns, self.fields)


class WindowFunction(ArrowOperator):
    """Adds columns computed by window functions over the rows of one event time, when the watermark has passed it."""

    def __init__(self, expressions: Sequence[Expression], registry: Registry) -> None:
        self._expressions = expressions
        self._registry = registry
        self._clauses: list[WindowClauses] = []
        for expression in expressions:
            clauses = find_clauses(expression.sql, field=expression.field)
            if not clauses.partitions:
                raise ConfigError(
                    "there is no window function: write one with OVER (...), or use std.project",
                    field=expression.field,
                    value=expression.sql,
                )
            self._clauses.append(clauses)

    def name(self) -> str:
        return "std.window_function"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        refuse_updating(stream, operator=self.name())
        if stream.timestamp_column is None:
            raise ConfigError(
                "window functions are computed over the rows of one event time, and the stream has none: put "
                "std.watermark in front"
            )
        self._check_names(stream)
        plain = plain_schema(stream.schema)
        for expression in self._timed(stream.timestamp_column):
            self._check(expression, plain)
        compiled = CompiledWindows(self._timed(stream.timestamp_column), plain, self._registry)
        schema = pa.schema([*plain, *compiled.fields])
        return ArroyoSchema(schema, stream.timestamp_column, self._keys(stream))

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._keys(inputs[0])]

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return event_group_tables(self._rows(inputs[0]))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Rows are kept as they came, and computed with when their time has come.
        return {"partition by": names_text(self._keys(inputs[0]))}

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [(each.name, each.sql) for each in self._expressions])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        self._time_column = stream.timestamp_column or ""
        self._plain = plain_schema(stream.schema)
        self._output = ctx.output_schema.schema
        self._compiled = CompiledWindows(self._timed(self._time_column), self._plain, self._registry)
        self._compiled_large: CompiledWindows | None = None
        self._groups = EventGroups(self._rows(stream), finish=self._compute, reduce=None, ctx=ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._groups.add(plain_rows(batch, self._plain), ctx)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None:
            self._groups.advance(watermark.event_time_us, collector)
        return watermark

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._groups.save(barrier.epoch, ctx)

    def _compute(self, rows: Rows) -> Rows:
        # Sorted by all columns, so that rows which the windows do not order come in the same order after a restart.
        rows = take(rows, sort_order([rows.column(self._time_column), *rows.columns], rows.num_rows))
        compiled = self._compiled if isinstance(rows, pa.RecordBatch) else self._large()
        found = _cast(compiled.evaluate(rows), list(self._output)[len(rows.columns) :])
        return type(rows).from_arrays([*rows.columns, *found], schema=self._output)

    def _large(self) -> CompiledWindows:
        """The same windows over columns with 64-bit offsets: one group may have more than 2 GiB of text."""
        if self._compiled_large is None:
            schema = pa.schema([field.with_type(large_type(field.type)) for field in self._plain])
            self._compiled_large = CompiledWindows(self._timed(self._time_column), schema, self._registry)
        return self._compiled_large

    def _rows(self, stream: ArroyoSchema) -> ArroyoSchema:
        """What waits for the watermark."""
        return ArroyoSchema(plain_schema(stream.schema), stream.timestamp_column, self._keys(stream))

    def _keys(self, stream: ArroyoSchema) -> tuple[str, ...]:
        """Rows that share a window share these columns: what all windows are partitioned by, or else the time."""
        common = frozenset.intersection(*(clauses.common_columns() for clauses in self._clauses))
        keys = tuple(name for name in stream.names if name in common and not is_nested(stream.schema.field(name).type))
        return keys or ((stream.timestamp_column,) if stream.timestamp_column else ())

    def _timed(self, time_column: str) -> list[Expression]:
        """The expressions with every window within one event time."""
        return [
            Expression(name=expression.name, sql=clauses.partitioned_by(time_column), field=expression.field)
            for expression, clauses in zip(self._expressions, self._clauses, strict=True)
        ]

    def _check_names(self, stream: ArroyoSchema) -> None:
        seen = set(stream.names)
        for expression in self._expressions:
            if expression.name in seen:
                field = "as" if expression.field == "expression" else expression.field
                raise ConfigError(
                    f"there is a column {expression.name!r} already: give another name",
                    field=field,
                    value=expression.name,
                )
            seen.add(expression.name)

    def _check(self, expression: Expression, schema: pa.Schema) -> None:
        original = next(each.sql for each in self._expressions if each.name == expression.name)
        field = expression.field
        try:
            check_calls(original, schema, self._registry, field=field)
            compiled = CompiledWindows([expression], schema, self._registry)
            compiled.functions.check_constants(sql=original, field=field)
            if not _ALLOWED_STEPS.issuperset(compiled.steps):
                raise sql_errors.refused("ScalarSubquery", sql=original, field=expression.field)
            # Some mistakes (an unknown unit of date_trunc) show only when a function is called.
            compiled.execute(empty_batch(schema))
        except ConfigError:
            raise
        # DataFusion raises bare exceptions, for whatever reason.
        except Exception as error:
            functions = UserFunctions(self._registry)
            raise sql_errors.explain(
                error, sql=original, field=field, columns=schema.names, functions=functions
            ) from error
        if pa.types.is_null(compiled.fields[0].type):
            raise ConfigError("the expression is NULL, without a type; cast it", field=expression.field, value=original)


def _cast(columns: Sequence[Any], fields: Sequence[pa.Field]) -> list[Any]:
    return [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
