"""The session that plans queries: tables without rows, functions that are never run, the rules to optimise by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from arroyo_std.json_functions import JSON_FUNCTIONS
from datafusion import Accumulator, DataFrame, Expr, LogicalPlan, SessionConfig, SessionContext, SQLOptions, udaf, udf

from arroyo_core.api import Registry
from arroyo_core.udf import AggregateUdf, AsyncUdf, ScalarUdf, Volatility
from arroyo_sql.planner.expressions import ROW_TIME
from arroyo_sql.planner.sql_types import TIME, WINDOW

_SETTINGS = {
    "datafusion.sql_parser.enable_ident_normalization": "true",
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.execution.target_partitions": "1",
    "datafusion.execution.time_zone": "UTC",
    # A subquery that gives one value becomes a join.
    "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery": "false",
}
#: Rules that invent names, take parts of the plan away, or make one aggregate two.
_UNWANTED_RULES = (
    "single_distinct_aggregation_to_group_by",
    "common_sub_expression_eliminate",
    "extract_leaf_expressions",
    "push_down_leaf_projections",
    "propagate_empty_relation",
    "filter_null_join_keys",
    "eliminate_group_by_constant",
    "unions_to_filter",
    "eliminate_join",
    "eliminate_filter",
    "push_down_limit",
    "replace_distinct_aggregate",
)
_SELECT_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_INTERVAL = pa.month_day_nano_interval()
#: Functions that DataFusion would compute while it plans: name, result.
_CLOCKS = (
    ("now", pa.timestamp("us", "UTC")),
    ("current_timestamp", pa.timestamp("us", "UTC")),
    ("current_date", pa.date32()),
    ("today", pa.date32()),
    (ROW_TIME, TIME),
)


class _Never(Accumulator):  # type: ignore[misc]  # datafusion is untyped
    """Stands for an aggregate while a query is planned."""

    def state(self) -> list[pa.Scalar]:
        raise RuntimeError("planning runs no aggregate")

    def update(self, *values: pa.Array) -> None:
        raise RuntimeError("planning runs no aggregate")

    def merge(self, states: list[pa.Array]) -> None:
        raise RuntimeError("planning runs no aggregate")

    def evaluate(self) -> pa.Scalar:
        raise RuntimeError("planning runs no aggregate")


def _never(*_: pa.Array) -> pa.Array:
    raise RuntimeError("planning runs no function")


class Session:
    """Plans queries over tables that have types but no rows."""

    def __init__(self, registry: Registry) -> None:
        self.context = SessionContext(SessionConfig(_SETTINGS))
        for rule in _UNWANTED_RULES:
            if not self.context.remove_optimizer_rule(rule):
                raise RuntimeError(f"DataFusion has no optimizer rule {rule!r}")
        self._add_windows()
        self._add_clocks()
        self._add_json()
        self._add_user_functions(registry)

    def register(self, name: str, fields: Iterable[pa.Field]) -> None:
        """Make a table known; one of the name that is there already is replaced."""
        quoted = '"' + name.replace('"', '""') + '"'
        self.context.deregister_table(quoted)
        nothing = pa.RecordBatch.from_pylist([], schema=pa.schema(list(fields)))
        self.context.register_record_batches(quoted, [[nothing]])

    def register_view(self, name: str, frame: DataFrame) -> None:
        """Make a query known as a table, whose plan takes the place of its name."""
        self.context.register_view('"' + name.replace('"', '""') + '"', frame)

    def query(self, sql: str) -> DataFrame:
        """Raises what DataFusion raises: bare exceptions."""
        return self.context.sql_with_options(sql, _SELECT_ONLY)

    def frame(self, plan: LogicalPlan) -> DataFrame:
        return self.context.create_dataframe_from_logical_plan(plan)

    def _add_windows(self) -> None:
        for name, kinds in (
            ("tumble", [_INTERVAL]),
            ("hop", [_INTERVAL] * 2),
            ("session", [_INTERVAL]),
            ("spark_window", [TIME, pa.string()]),
            ("spark_hop", [TIME, pa.string(), pa.string()]),
            ("session_window", [TIME, pa.string()]),
        ):
            self.context.register_udf(udf(_never, kinds, WINDOW, "volatile", name))

    def _add_clocks(self) -> None:
        # Volatile, so that the time of planning does not become a constant.
        for name, kind in _CLOCKS:
            self.context.register_udf(udf(_never, [], kind, "volatile", name))

    def _add_json(self) -> None:
        for function in JSON_FUNCTIONS.values():
            own = udf(function.evaluate, list(function.types), function.return_type, "immutable", function.name)
            self.context.register_udf(own)

    def _add_user_functions(self, registry: Registry) -> None:
        for function in registry.udfs.values():
            name = function.name if "." in function.name else function.name.lower()
            if isinstance(function, ScalarUdf | AsyncUdf):
                kinds = [parameter.type for parameter in function.parameters]
                is_volatile = isinstance(function, AsyncUdf) or function.volatility is Volatility.VOLATILE
                # Never immutable: a call with constants would be made while the query is planned.
                volatility = "volatile" if is_volatile else "stable"
                self.context.register_udf(udf(_never, kinds, function.return_type, volatility, name))
            elif isinstance(function, AggregateUdf):
                kinds = [parameter.type for parameter in function.parameters]
                result = function.return_type
                self.context.register_udaf(udaf(_Never, kinds, result, [result], "immutable", name))


def with_types(frame: DataFrame, types: Sequence[pa.DataType]) -> DataFrame:
    """The query with these types for columns that are NULL and nothing else, where there is one for each column."""
    schema = frame.schema()
    names = list(schema.names)
    untyped = [pa.types.is_null(field.type) for field in schema]
    if not any(untyped) or len(types) != len(names) or len(set(names)) != len(names):
        return frame
    columns = [Expr.column('"' + name.replace('"', '""') + '"') for name in names]
    return frame.select(
        *(
            column.cast(kind).alias(name) if is_untyped else column
            for column, name, kind, is_untyped in zip(columns, names, types, untyped, strict=True)
        )
    )
