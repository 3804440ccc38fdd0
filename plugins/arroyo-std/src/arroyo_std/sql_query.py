"""`std.sql`: one SELECT over the rows of one input, one row at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pyarrow as pa
from datafusion import DataFrame, Expr, LogicalPlan, SessionContext, SQLOptions

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    Registry,
)
from arroyo_core.api.updating import UPDATING_META, is_updating
from arroyo_core.errors import ConfigError, DataError
from arroyo_std import sql_errors
from arroyo_std.columns import derive_stream, normal_type
from arroyo_std.json_operators import plain_sql
from arroyo_std.plan_steps import step_names
from arroyo_std.slot import BatchSlot, empty_batch
from arroyo_std.sql import check_size, named_columns, open_session, scanned_columns
from arroyo_std.sql_functions import UserFunctions

#: The name of the input inside a query.
TABLE = "input"

#: Without these rules conditions stay where they are: pushed down they would get into the scan, which ignores them, and
#: one that is never true would take the scan away. The others must stay: `coalesce` and `now` cannot be run as written.
_UNWANTED_RULES = ("push_down_filter", "eliminate_filter", "propagate_empty_relation")
#: Of these, those that take a scan away.
_ELIMINATING_RULES = _UNWANTED_RULES[1:]
_SELECT_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)

_ALLOWED_STEPS = {"Projection", "Filter", "SubqueryAlias", "TableScan"}
_ALLOWED_EXECUTION = {"ProjectionExec", "FilterExec", "CooperativeExec", "DatasetExec"}
_REFUSED_STEPS = {
    "Aggregate": "aggregates and GROUP BY need many rows; use a window or std.updating_aggregate",
    "Distinct": "DISTINCT needs many rows; use std.deduplicate",
    "WindowExpr": "a window function needs many rows; use std.window_function",
    "Sort": "a stream has no end, so it has no ORDER BY; use std.top_n",
    "Limit": "a stream has no end, so it has no LIMIT; use std.top_n",
    "Join": "a query reads one input; use a join operator",
    "CrossJoin": "a query reads one input; use a join operator",
    "Union": "a query reads one input once; use std.union",
    "Unnest": "unnest makes many rows of one; use std.unnest",
    "EmptyRelation": f"the query reads no table; write FROM {TABLE}",
    "Values": f"the query reads no table; write SELECT ... FROM {TABLE}",
}


class CompiledQuery:
    """A planned query over batches of one schema. For one thread at a time."""

    def __init__(self, query: str, schema: pa.Schema, registry: Registry) -> None:
        self._query = query
        written = plain_sql(query, field="query").sql
        session = open_session(registry, [written])
        self._context, self.functions = session.context, session.functions
        _remove(self._context, _UNWANTED_RULES)
        self._slot = BatchSlot(schema)
        self._no_rows = self._slot.batch
        self._context.register_dataset(TABLE, self._slot)
        #: The input, which calls of UDFs are typed over.
        self.stream: DataFrame = self._context.table(TABLE)
        frame = self._context.sql_with_options(written, _SELECT_ONLY)
        self.logical_plan: LogicalPlan = frame.logical_plan()
        _check_steps(self.logical_plan, query)
        self._plan = frame.execution_plan()
        #: What `evaluate` yields: every field nullable, no views, no dictionaries.
        self.schema = pa.schema([pa.field(field.name, normal_type(field.type)) for field in frame.schema()])

    @property
    def steps(self) -> list[str]:
        """The names of the physical plan's steps, from the last to the first."""
        return step_names(self._plan)

    def copies(self) -> Mapping[str, str]:
        """Output columns that are unchanged input columns: output name -> input column."""
        return {name: source for name, source in _sources(self.logical_plan, self._slot.schema).items() if source}

    def evaluate(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The rows of the query's result under `schema`, in the order of the batch; None if there are none.

        Raises `DataError` where a row cannot be computed (a division by zero, a text that is not a number), and
        `UdfError` where a user function fails.
        """
        if batch.num_rows == 0:
            # DataFusion panics over an empty slice of a column of texts.
            return None
        try:
            return self.execute(batch)
        except Exception as error:
            # DataFusion raises bare exceptions; any other is not about the rows.
            if type(error) is not Exception:
                raise
            reason = sql_errors.readable(str(error))
            raise DataError(f"query: cannot compute {self._query!r}: {reason}") from error

    def execute(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The same as `evaluate`, but raises whatever DataFusion raises, and `UdfError`."""
        self._slot.batch = batch
        try:
            with self.functions.reporting():
                found = [part.to_pyarrow() for part in self._context.execute(self._plan, 0)]
        finally:
            self._slot.batch = self._no_rows
        parts = [part for part in found if part.num_rows]
        if not parts:
            return None
        rows = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(rows.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class SqlQuery(ArrowOperator):
    """Makes of each row none or one, as the query says. Event time and keys follow columns that are only copied."""

    def __init__(self, query: str, registry: Registry) -> None:
        self._query = query
        self._registry = registry

    def name(self) -> str:
        return "std.sql"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        compiled = check_query(self._query, stream.schema, self._registry)
        copies = compiled.copies()
        if is_updating(stream) and copies.get(UPDATING_META) != UPDATING_META:
            raise ConfigError(
                f"the input is updating: without {UPDATING_META!r} rows that are taken back would look like rows that "
                f"are added; select it, too",
                field="query",
                value=self._query,
            )
        return derive_stream(stream, compiled.schema, copies)

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        return [read_columns(self._query, inputs[0].schema, self._registry)]

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("query", " ".join(self._query.split()))])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._compiled = CompiledQuery(self._query, ctx.input_schemas[0].schema, self._registry)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        result = self._compiled.evaluate(batch)
        if result is not None:
            collector.collect(result)


def check_query(query: str, schema: pa.Schema, registry: Registry) -> CompiledQuery:
    """Type a query that a user wrote; for plan time. Raises `ConfigError` at `query` if it cannot be."""
    check_size(query, field="query")
    try:
        compiled = CompiledQuery(query, schema, registry)
        _check_execution(compiled, query)
        _check_names(compiled, query)
        _check_calls(compiled, query)
        # Some mistakes (an unknown unit of date_trunc) show only when a function is called.
        compiled.execute(empty_batch(schema))
    except ConfigError:
        raise
    # DataFusion raises bare exceptions, for whatever reason.
    except Exception as error:
        raise _explain(error, query, schema, registry) from error
    return compiled


def read_columns(query: str, schema: pa.Schema, registry: Registry) -> frozenset[str]:
    """The columns that a query reads, in its result or in its conditions, or names only."""
    written = plain_sql(query, field="query").sql
    context = open_session(registry, [written]).context
    _remove(context, _ELIMINATING_RULES)
    # A table in memory takes no conditions into its scan, so that their columns are among those it is asked for.
    context.register_record_batches(TABLE, [[empty_batch(schema)]])
    scanned = scanned_columns(context.sql_with_options(written, _SELECT_ONLY).optimized_logical_plan())
    return scanned | named_columns([query], schema)


def _remove(context: SessionContext, rules: Sequence[str]) -> None:
    for rule in rules:
        if not context.remove_optimizer_rule(rule):
            raise RuntimeError(f"DataFusion has no optimizer rule {rule!r}")


def _explain(error: Exception, query: str, schema: pa.Schema, registry: Registry) -> ConfigError:
    text = str(error)
    if "table '" in text and "not found" in text:
        return ConfigError(f"a query reads one table, {TABLE!r}", field="query", value=query, allowed=[TABLE])
    if any(refused in text for refused in ("DDL not supported", "DML not supported", "Statement not supported")):
        return ConfigError("only a SELECT can be written here", field="query", value=query)
    if "single SQL statement" in text:
        return ConfigError("only one SELECT can be written here", field="query", value=query)
    functions = UserFunctions(registry)

    def is_good(other: str) -> bool:
        try:
            CompiledQuery(other, schema, registry).execute(empty_batch(schema))
        except Exception:
            return False
        return True

    found = sql_errors.explain(
        error, sql=query, field="query", columns=schema.names, functions=functions, is_good=is_good
    )
    found.message = found.message.replace("not a SQL expression", "not a SQL query")
    return found


def _check_steps(plan: LogicalPlan, query: str) -> None:
    """Refuse what looks beyond one row of one input."""
    step = type(plan.to_variant()).__name__
    if step not in _ALLOWED_STEPS:
        reason = _REFUSED_STEPS.get(step, f"only a SELECT of columns and conditions can be written here, not {step}")
        raise ConfigError(reason, field="query", value=query)
    for below in plan.inputs():
        _check_steps(below, query)


def _check_execution(compiled: CompiledQuery, query: str) -> None:
    if not _ALLOWED_EXECUTION.issuperset(compiled.steps):
        raise sql_errors.refused("ScalarSubquery", sql=query, field="query")


def _check_names(compiled: CompiledQuery, query: str) -> None:
    for expression in _projections(compiled.logical_plan):
        if expression.variant_name() not in ("Column", "Alias"):
            shown = expression.schema_name()
            raise ConfigError(f"the column {shown!r} has no name: write AS after it", field="query", value=query)
    for field in compiled.schema:
        if pa.types.is_null(field.type):
            raise ConfigError(
                f"column {field.name!r} is NULL, without a type; cast it to one", field="query", value=query
            )


def _check_calls(compiled: CompiledQuery, query: str) -> None:
    """Refuse calls of UDFs with arguments that they do not take, and those that fail for constants."""
    compiled.functions.check_constants(sql=query, field="query")
    if compiled.functions.is_called_in(plain_sql(query, field="query").sql):
        for expression in _expressions(compiled.logical_plan):
            compiled.functions.check_calls(expression, compiled.stream, sql=query, field="query")


def _expressions(plan: LogicalPlan) -> list[Expr]:
    variant = plan.to_variant()
    own = [variant.predicate()] if type(variant).__name__ == "Filter" else _projections(plan)
    # Of plans, DataFusion gives expressions without their Python class.
    wrapped = [each if isinstance(each, Expr) else Expr(each) for each in own]
    return [*wrapped, *(each for below in plan.inputs() for each in _expressions(below))]


def _projections(plan: LogicalPlan) -> list[Expr]:
    variant = plan.to_variant()
    return list(variant.projections()) if type(variant).__name__ == "Projection" else []


def _sources(plan: LogicalPlan, schema: pa.Schema) -> dict[str, str | None]:
    """For each output column the input column it is an unchanged copy of, or None."""
    inputs = plan.inputs()
    if not inputs:
        return {name: name for name in schema.names}
    below = _sources(inputs[0], schema)
    if type(plan.to_variant()).__name__ != "Projection":
        return below
    found: dict[str, str | None] = {}
    for expression in _projections(plan):
        inner, name = expression, None
        if expression.variant_name() == "Alias":
            alias = expression.to_variant()
            inner, name = alias.expr(), str(alias.alias())
        column = str(inner.to_variant().name()) if inner.variant_name() == "Column" else None
        name = name or column
        if name is not None:
            found[name] = below.get(column) if column is not None else None
    return found
