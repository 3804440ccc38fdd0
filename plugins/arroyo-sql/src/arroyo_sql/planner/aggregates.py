"""Aggregate functions of SQL as those of std."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from datafusion import Expr, LogicalPlan

from arroyo_core.udf import AggregateUdf
from arroyo_sql.planner.columns import order_config
from arroyo_sql.planner.expressions import Printer, columns_of, literal_value, peel, unalias, wrap
from arroyo_sql.planner.protobuf_parts import Extras, extras_of
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import WINDOW_COLUMNS, Relation, quote
from arroyo_sql.planner.sql_types import is_number

FUNCTIONS = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "mean",
    "mean": "mean",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "var": "var_samp",
    "var_sample": "var_samp",
    "var_samp": "var_samp",
    "var_population": "var_pop",
    "var_pop": "var_pop",
    "corr": "corr",
    "covar": "covar_samp",
    "covar_samp": "covar_samp",
    "covar_pop": "covar_pop",
    "bool_and": "all",
    "bool_or": "any",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "median": "median",
    "approx_median": "approx_percentile",
    "approx_distinct": "approx_count_distinct",
    "approx_percentile_cont": "approx_percentile",
    "array_agg": "list",
    "first_value": "first",
    "last_value": "last",
    "string_agg": "string_agg",
    "percentile_cont": "percentile_cont",
    "quantile_cont": "percentile_cont",
    "approx_percentile_cont_with_weight": "approx_percentile_with_weight",
    **{name: name for name in ("regr_slope", "regr_intercept", "regr_count", "regr_r2", "regr_avgx", "regr_avgy")},
    **{name: name for name in ("regr_sxx", "regr_syy", "regr_sxy")},
}
#: What DataFusion computes of doubles; std takes any number, and is exact for more of them.
_OF_DOUBLES = frozenset(
    [
        "avg",
        "mean",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var",
        "var_pop",
        "var_population",
        "var_samp",
        "var_sample",
        "corr",
        "covar",
        "covar_pop",
        "covar_samp",
        "median",
        "approx_median",
        "approx_percentile_cont",
    ]
)
#: The same whether values count once or more.
_SAME_IF_DISTINCT = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})
#: Those that can leave out values that they have seen.
_DISTINCT = frozenset(
    [
        "sum",
        "avg",
        "mean",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "var",
        "var_samp",
        "var_sample",
        "var_pop",
        "var_population",
        "median",
        "array_agg",
        "string_agg",
    ]
)
_REGRESSIONS = (
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
)
_TWO = frozenset({"corr", "covar_samp", "covar_pop", "approx_percentile_with_weight", *_REGRESSIONS})
_ORDERED = frozenset({"array_agg", "string_agg", "first_value", "last_value"})
_PERCENTILES = frozenset({"approx_percentile_cont", "percentile_cont", "approx_percentile_cont_with_weight"})


@dataclass(slots=True)
class Aggregate:
    """One entry of `aggregates`. `arguments` are hints of expressions, which become columns."""

    expression: Expr
    function: str
    name: str
    is_own: bool = False
    arguments: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    #: The hint of a condition that becomes a column.
    condition: str | None = None
    #: Hints of the columns that rows are taken in the order of, whether that is ascending, and NULLs come first.
    order: list[tuple[str, bool, bool]] = field(default_factory=list)

    def config(self, columns: dict[str, str]) -> dict[str, Any]:
        """As the operator reads it; `columns` are the names that the arguments have there."""
        names = [columns[hint] for hint in self.arguments]
        config: dict[str, Any] = {"function": self.function}
        if self.is_own:
            config["columns"] = names
        elif names:
            config["column"] = names[0]
        if not self.is_own and len(names) > 1:
            config["other"] = names[1]
        if self.order:
            config["order_by"] = [order_config(columns[hint], *rest) for hint, *rest in self.order]
        if self.condition is not None:
            config["filter"] = quote(columns[self.condition])
        return {**config, **self.settings, "as": self.name}


@dataclass(slots=True)
class Reader:
    """Reads the aggregates of one GROUP BY. `wanted` collects the expressions that must be columns."""

    query: Query
    relation: Relation
    plan: LogicalPlan
    printer: Printer
    wanted: dict[str, Expr]
    taken: set[str] = field(default_factory=lambda: {*WINDOW_COLUMNS, "_rows", "_updating_meta"})

    def read(self, expression: Expr) -> Aggregate:
        call = unalias(expression)
        variant = call.to_variant()
        name = str(variant.aggregate_type())
        extras = extras_of(call, self.query.session.context)
        if extras is None:
            raise self.query.refuse(f"FILTER and ORDER BY of {name}() are not planned: filter the rows before", name)
        if any(flag in call.canonical_name() for flag in ("IGNORE NULLS", "RESPECT NULLS")):
            raise self.query.refuse(f"IGNORE NULLS of {name}() is not planned: FILTER (WHERE x IS NOT NULL)", name)
        made = self._function(expression, name, is_distinct=bool(variant.is_distinct()))
        arguments = self._arguments(
            made, name, [wrap(each) for each in variant.args()], is_distinct=variant.is_distinct()
        )
        if extras.condition is not None:
            self._filter(made, extras.condition)
        for argument in self._order(made, name, extras, arguments):
            made.arguments.append(self._want(self._hint(argument, f"argument_{len(self.wanted) + 1}"), argument))
        made.name = self._name(name, made, hint=self._hint(arguments[0], "") if arguments else "")
        return made

    def _function(self, expression: Expr, name: str, *, is_distinct: bool) -> Aggregate:
        if isinstance(self.query.registry.udfs.get(name), AggregateUdf):
            if is_distinct:
                raise self.query.refuse(f"{name}(DISTINCT ...) is not planned: aggregate a SELECT DISTINCT", name)
            return Aggregate(expression, name, "", is_own=True)
        function = FUNCTIONS.get(name)
        if function is None:
            known = ", ".join(sorted(FUNCTIONS))
            raise self.query.refuse(f"there is no aggregate {name}() of streams: there are {known}", name)
        if is_distinct and name not in _SAME_IF_DISTINCT:
            if name == "count":
                return Aggregate(expression, "count_distinct", "")
            if name not in _DISTINCT:
                raise self.query.refuse(f"{name}(DISTINCT ...) is not planned: aggregate a SELECT DISTINCT", name)
            return Aggregate(expression, function, "", settings={"distinct": True})
        return Aggregate(expression, function, "")

    def _arguments(self, made: Aggregate, name: str, arguments: list[Expr], *, is_distinct: bool) -> list[Expr]:
        if made.is_own:
            return arguments
        if name == "approx_median":
            made.settings["percentile"] = 0.5
        if name in _PERCENTILES:
            share = peel(arguments[-1])
            if share.variant_name() != "Literal" or len(arguments) > (3 if "weight" in name else 2):
                raise self.query.refuse(
                    f"{name}() takes columns, and a constant from 0 to 1 as the last argument", name
                )
            made.settings["percentile"] = float(str(literal_value(share)))
            arguments = arguments[:-1]
        if name == "string_agg":
            separator = peel(arguments[1])
            if separator.variant_name() != "Literal":
                raise self.query.refuse("string_agg() takes a column and a constant text between its values", name)
            made.settings["separator"] = str(literal_value(separator))
            arguments = arguments[:1]
        if name == "count" and not is_distinct and len(arguments) == 1:
            first = peel(arguments[0])
            if first.variant_name() == "Literal" and literal_value(first) is not None:
                return []
        if len(arguments) != (2 if made.function in _TWO else 1):
            raise self.query.refuse(
                f"{name}() of several columns is not planned: put them into one with struct()", name
            )
        return [self._uncast(name, argument) for argument in arguments]

    def _uncast(self, name: str, argument: Expr) -> Expr:
        """Without the cast that DataFusion puts around a number to compute with doubles, or with larger integers."""
        if unalias(argument).variant_name() != "Cast" or name not in _OF_DOUBLES:
            return argument
        inner = wrap(unalias(argument).to_variant().expr())
        return inner if is_number(self.printer.type_of(inner)) else argument

    def _filter(self, made: Aggregate, condition: Expr) -> None:
        """As SQL over columns that stay; as a column of its own where it is of something computed."""
        columns = columns_of(condition)
        fields = [self.printer.field(column) for column in columns]
        if not fields or any(field is None or field.column is None for field in fields):
            made.condition = self._want(f"condition_{len(self.wanted) + 1}", condition)
            return
        made.settings["filter"] = self.printer.sql(condition)
        for column in columns:
            self._want(self._hint(column, "condition"), column)

    def _order(self, made: Aggregate, name: str, extras: Extras, arguments: list[Expr]) -> list[Expr]:
        """The arguments, with what ORDER BY or WITHIN GROUP adds to them."""
        if not extras.order:
            return arguments
        if name in _PERCENTILES:
            key = extras.order[0]
            if len(extras.order) > 1 or not key.is_ascending:
                raise self.query.refuse(
                    f"{name}() is of one column in ascending order: take 1 less the percentile", name
                )
            # One of them may be cast to a double, which percentile_cont() is computed of.
            is_given = arguments and peel(arguments[0]).canonical_name() == peel(key.expression).canonical_name()
            return arguments if is_given else [self._uncast(name, key.expression), *arguments]
        if name not in _ORDERED:
            # The result of any other does not depend on the order of rows.
            return arguments
        if not self._is_by_time(made, name, extras):
            for key in extras.order:
                hint = self._want(self._hint(key.expression, f"order_{len(self.wanted) + 1}"), key.expression)
                made.order.append((hint, key.is_ascending, key.is_null_first))
        return arguments

    def _is_by_time(self, made: Aggregate, name: str, extras: Extras) -> bool:
        """Whether it is the first or the last by event time, which needs no more state than that."""
        by = self.printer.field(extras.order[0].expression)
        is_time = by is not None and by.column is not None and by.column == self.relation.time
        if name not in ("first_value", "last_value") or len(extras.order) > 1 or not is_time:
            return False
        if not extras.order[0].is_ascending:
            made.function = {"first": "last", "last": "first"}[made.function]
        return True

    def _hint(self, argument: Expr, other: str) -> str:
        """The column that an argument is: names that the query gives may change without a change of the state."""
        found = self.printer.field(argument)
        return other if found is None or found.column is None else found.column

    def _want(self, hint: str, expression: Expr) -> str:
        base, repeat = hint, 2
        while hint in self.wanted and self.wanted[hint].canonical_name() != expression.canonical_name():
            hint, repeat = f"{base}_{repeat}", repeat + 1
        self.wanted[hint] = expression
        return hint

    def _name(self, name: str, made: Aggregate, *, hint: str) -> str:
        parts = [name, "distinct" if made.function == "count_distinct" else "", hint]
        base = "_".join(part for part in parts if part)
        found, repeat = base, 2
        while found in self.taken:
            found, repeat = f"{base}_{repeat}", repeat + 1
        self.taken.add(found)
        return found
