"""SQL expressions over the columns of a stream, by DataFusion: typed without data, planned once, run per batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from datafusion import Expr, LogicalPlan, SessionConfig, SessionContext
from datafusion.expr import EmptyRelation

from arroyo_core.api import Registry
from arroyo_core.api.limits import EXPRESSION_CHARS, EXPRESSION_OPERATORS
from arroyo_core.errors import ConfigError, DataError, UdfError, UdfTimeoutError
from arroyo_std import sql_errors
from arroyo_std.columns import normal_type
from arroyo_std.json_operators import plain_sql
from arroyo_std.on_error import ROW_ERRORS
from arroyo_std.plan_steps import step_names
from arroyo_std.slot import BatchSlot, empty_batch
from arroyo_std.sql_functions import UserFunctions

_SETTINGS = {
    # Names of columns mean what is written: no folding to lower case.
    "datafusion.sql_parser.enable_ident_normalization": "false",
    # Views would be cast to plain strings afterwards, at the cost of a copy.
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    # One batch in, one batch out.
    "datafusion.execution.target_partitions": "1",
    "datafusion.execution.time_zone": "UTC",
}

#: What joins two operands, or stands before one. Whatever is in quotes counts as none.
_OPERATOR = re.compile(
    r"""'[^']*'|"[^"]*"|(?P<operator>[-+*/%|&#^<>=!~]+|::|\[|\b(?:and|or|not|between|like|ilike|is|in|collate)\b)""",
    re.IGNORECASE,
)
#: What may be a column. Texts are none.
_NAME = re.compile(r"""'(?:[^']|'')*'|"(?P<quoted>(?:[^"]|"")*)"|(?P<word>\w+)""")
#: What a plan over one row at a time consists of; anything else would look beyond the batch.
_ROW_WISE_STEPS = {"ProjectionExec", "CooperativeExec", "DatasetExec"}


@dataclass(frozen=True, slots=True)
class Session:
    """A SQL session, and the user functions in it."""

    context: SessionContext
    functions: UserFunctions


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One computed column. `field` is the path of its SQL in the node's config, for errors."""

    name: str
    sql: str
    field: str


class CompiledExpressions:
    """Planned expressions over batches of one schema. For one thread at a time."""

    def __init__(self, expressions: Sequence[Expression], schema: pa.Schema, registry: Registry) -> None:
        self._expressions = expressions
        self._registry = registry
        written = [plain_sql(expression.sql, field=expression.field).sql for expression in expressions]
        session = open_session(registry, written)
        self._context, self.functions = session.context, session.functions
        self._slot = BatchSlot(schema)
        self._input_schema = schema
        self._no_rows = self._slot.batch
        self._apart: list[CompiledExpressions] | None = None
        self._context.register_dataset(sql_errors.TABLE, self._slot)
        stream = self._context.table(sql_errors.TABLE)
        self._parsed: list[Expr] = [stream.parse_sql_expr(sql) for sql in written]
        names = [expression.name for expression in expressions]
        aliased = [parsed.alias(name) for parsed, name in zip(self._parsed, names, strict=True)]
        frame = stream.select(*aliased)
        self._frame = frame
        #: Expressions that are nothing but a call of a UDF, by position: SQL would only hand the columns through.
        self._calls = {
            position: call
            for position, parsed in enumerate(self._parsed)
            if (call := self.functions.direct_call(parsed, schema)) is not None
        }
        planned = [each for position, each in enumerate(aliased) if position not in self._calls]
        self._plan = stream.select(*planned).execution_plan() if planned else None
        #: What `evaluate` yields: every field nullable, no views, no dictionaries.
        self.schema = pa.schema([pa.field(field.name, normal_type(field.type)) for field in frame.schema()])
        #: Expressions that are nothing but a column: output name -> input column.
        self.copies = {
            name: str(parsed.to_variant().name())
            for name, parsed in zip(names, self._parsed, strict=True)
            if parsed.variant_name() == "Column"
        }

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the input that the expressions read, or name: without these they could not be planned."""
        named = named_columns([expression.sql for expression in self._expressions], self._input_schema)
        return scanned_columns(self._frame.optimized_logical_plan()) | named

    @property
    def steps(self) -> list[str]:
        """The names of the physical plan's steps, from the last to the first; calls of UDFs alone are in no plan."""
        return step_names(self._plan) if self._plan else []

    @property
    def aliases(self) -> list[str]:
        """The columns whose SQL has an outer AS."""
        pairs = zip(self._expressions, self._parsed, strict=True)
        return [expression.name for expression, parsed in pairs if parsed.variant_name() == "Alias"]

    def evaluate(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One output row for each input row, under `schema`.

        Raises `DataError` naming the expression where a row cannot be computed (a division by
        zero, a text that is not a number), and `UdfError` where a user function fails.
        """
        if batch.num_rows == 0:
            # DataFusion panics over an empty slice of a column of texts.
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        try:
            return self.execute(batch)
        except Exception as error:
            # DataFusion raises bare exceptions; any other is not about the rows.
            if type(error) is not Exception:
                raise
            raise self._blame(batch, error) from error

    def execute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same as `evaluate`, but raises whatever DataFusion raises, and `UdfError`."""
        with self.functions.reporting():
            called = {position: call(batch) for position, call in self._calls.items()}
            planned = iter(self._run_plan(batch))
        results = [called[at] if at in called else next(planned) for at in range(len(self.schema))]
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(results, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _run_plan(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        if self._plan is None:
            return ()
        self._slot.batch = batch
        try:
            # A plan of row-wise steps makes one batch of one batch, so nothing is left in the stream after it.
            result = next(iter(self._context.execute(self._plan, 0))).to_pyarrow()
        finally:
            self._slot.batch = self._no_rows
        if result.num_rows != batch.num_rows:
            raise RuntimeError(f"DataFusion made {result.num_rows} rows of {batch.num_rows}")
        columns: Sequence[pa.Array] = result.columns
        return columns

    def evaluate_collecting(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, UdfError]]:
        """The same as `evaluate`, and the errors of rows that failed, by row; their values mean nothing.

        Raises as `evaluate` does where it cannot be told which row failed.
        """
        with self.functions.collecting(batch.num_rows) as failed:
            return self.evaluate(batch), failed

    def evaluate_apart(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that fail, with null for each expression that fails for them."""
        if self._apart is None:
            self._apart = [
                CompiledExpressions([expression], self._input_schema, self._registry)
                for expression in self._expressions
            ]
        columns = [single._nulled(rows) for single in self._apart]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _nulled(self, rows: pa.RecordBatch) -> pa.Array:
        """The only expression, with null where it fails."""
        try:
            result, failed = self.evaluate_collecting(rows)
        except UdfTimeoutError:
            raise
        except ROW_ERRORS:
            if rows.num_rows == 1:
                return pa.nulls(1, self.schema.field(0).type)
            return pa.concat_arrays([self._nulled(rows.slice(row, 1)) for row in range(rows.num_rows)])
        if not failed:
            return result.column(0)
        is_failed = np.zeros(rows.num_rows, dtype=np.bool_)
        is_failed[list(failed)] = True
        return result.column(0).take(pa.array(np.arange(rows.num_rows), mask=is_failed))

    def _blame(self, batch: pa.RecordBatch, error: Exception) -> DataError:
        """Find the expression that failed by running each alone; the plan as a whole does not say."""
        for expression in self._expressions:
            try:
                CompiledExpressions([expression], self._input_schema, self._registry).execute(batch)
            except Exception as cause:
                reason = sql_errors.readable(str(cause))
                return DataError(f"{expression.field}: cannot compute {expression.sql!r}: {reason}")
        return DataError(f"cannot compute the expressions: {sql_errors.readable(str(error))}")


def check_expressions(expressions: Sequence[Expression], schema: pa.Schema, registry: Registry) -> CompiledExpressions:
    """Type expressions that a user wrote over the columns of `schema`; for plan time.

    They see the columns of one row: aggregates, window functions, subqueries and tables are
    refused. Raises `ConfigError` at the field of the first expression that cannot be.
    """
    if len(expressions) > 1:
        # All at once, which takes little longer than one. Where any is wrong, each alone shows which it is.
        with suppress(Exception):
            return _check(expressions, schema, registry)
    for expression in expressions:
        try:
            compiled = _check([expression], schema, registry)
        except ConfigError:
            raise
        # DataFusion raises bare exceptions, for whatever reason.
        except Exception as error:
            raise sql_errors.explain(
                error,
                sql=expression.sql,
                field=expression.field,
                columns=schema.names,
                functions=UserFunctions(registry),
                is_good=partial(_is_good, expression, schema, registry),
            ) from error
    return compiled if len(expressions) == 1 else compile_expressions(expressions, schema, registry)


def compile_expressions(
    expressions: Sequence[Expression], schema: pa.Schema, registry: Registry
) -> CompiledExpressions:
    """Plan expressions that `check_expressions` accepted for this schema; for run time.

    Functions of the clock (`now()`) are constant from here on, so for one epoch of one subtask.
    """
    return CompiledExpressions(expressions, schema, registry)


def _is_good(expression: Expression, schema: pa.Schema, registry: Registry, sql: str) -> bool:
    """Whether the expression could be written as this SQL."""
    try:
        _check([replace(expression, sql=sql)], schema, registry)
    except Exception:
        return False
    return True


def _check(expressions: Sequence[Expression], schema: pa.Schema, registry: Registry) -> CompiledExpressions:
    """Refuse what is SQL, but not typed expressions over one row; what is not SQL fails by itself.

    Of several expressions the first may be blamed for any.
    """
    for expression in expressions:
        check_size(expression.sql, field=expression.field)
        if not expression.sql.strip():
            raise ConfigError("the SQL expression is empty", field=expression.field, value=expression.sql)
        check_calls(expression.sql, schema, registry, field=expression.field)
    sql, field = expressions[0].sql, expressions[0].field
    compiled = CompiledExpressions(expressions, schema, registry)
    compiled.functions.check_constants(sql=sql, field=field)
    for step in compiled.steps:
        if step not in _ROW_WISE_STEPS:
            raise sql_errors.refused("WindowFunction" if "Window" in step else "ScalarSubquery", sql=sql, field=field)
    if compiled.aliases:
        raise ConfigError("an expression has no AS; its name is given beside it", field=field, value=sql)
    if any(pa.types.is_null(column.type) for column in compiled.schema):
        raise ConfigError("the expression is NULL, without a type; cast it to one", field=field, value=sql)
    # Some mistakes (an unknown unit of date_trunc) show only when a function is called.
    compiled.execute(empty_batch(schema))
    return compiled


def scanned_columns(plan: LogicalPlan) -> frozenset[str]:
    """The columns that an optimised plan reads of its only table; none where a condition can never hold."""
    while plan.inputs():
        (plan,) = plan.inputs()
    scan = plan.to_variant()
    return frozenset() if isinstance(scan, EmptyRelation) else frozenset(name for _, name in scan.projection())


def named_columns(texts: Iterable[str], schema: pa.Schema) -> frozenset[str]:
    """The columns that SQL names, though it may not need their values; some more where words of it are like them."""
    words: set[str] = set()
    for found in (match for text in texts for match in _NAME.finditer(text)):
        if found["quoted"] is not None:
            words.add(found["quoted"].replace('""', '"'))
        elif found["word"] is not None:
            words.add(found["word"])
    return frozenset(words.intersection(schema.names))


def check_calls(sql: str, schema: pa.Schema, registry: Registry, *, field: str) -> None:
    """Raise `ConfigError` where an expression calls a UDF with arguments that it does not take."""
    written = plain_sql(sql, field=field).sql
    if not UserFunctions(registry).is_called_in(written):
        return
    session = open_session(registry, [written])
    session.context.register_dataset(sql_errors.TABLE, BatchSlot(schema))
    stream = session.context.table(sql_errors.TABLE)
    session.functions.check_calls(stream.parse_sql_expr(written), stream, sql=sql, field=field)


def check_size(sql: str, *, field: str | None = None) -> None:
    """Raise `ConfigError` for SQL that is too long, or has too many operators.

    A chain of operators is as deep as it is long: DataFusion takes time by its square, and the stack has an end.
    """
    EXPRESSION_CHARS.check(len(sql), field=field)
    if len(sql) > EXPRESSION_OPERATORS.value:
        EXPRESSION_OPERATORS.check(sum(1 for found in _OPERATOR.finditer(sql) if found["operator"]), field=field)


def open_session(registry: Registry, texts: Sequence[str]) -> Session:
    """A SQL session; the one place where functions of the registry join DataFusion's own, if these texts may call them.

    Raises `PluginError` where a name is taken.
    """
    for text in texts:
        check_size(text)
    context = SessionContext(SessionConfig(_SETTINGS))
    functions = UserFunctions(registry)
    functions.register(context, texts)
    return Session(context, functions)
