"""One query of a script while it is planned: from DataFusion's plan to nodes, step by step from the tables up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from datafusion import Expr, LogicalPlan

from arroyo_core.api import Registry
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location, PipelineError
from arroyo_core.udf import ScalarUdf, Volatility
from arroyo_sql.planned import Connection
from arroyo_sql.planner.expressions import Printer
from arroyo_sql.planner.graph import Graph
from arroyo_sql.planner.placing import placed
from arroyo_sql.planner.relations import Field, Relation, Window
from arroyo_sql.planner.rewriting import QueryText, TableFunction
from arroyo_sql.planner.session import Session
from arroyo_sql.planner.sql_types import plain
from arroyo_sql.script import Table

_VOLATILE = frozenset({"random", "uuid"})
#: Plans one step of a query.
Visit: TypeAlias = "Callable[[Query, LogicalPlan, Any], Relation]"


class Tables(Protocol):
    """What queries read."""

    def lookup(self, table: Table) -> Connection:
        """The operator that looks rows of a table up."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is such a table or view."""
        ...

    def scan(self, name: str) -> Relation:
        """The rows of a table or of a view; raises `PipelineError` where there are none to read."""
        ...


@dataclass(frozen=True, slots=True)
class Inlined:
    """A view whose query is part of the one that reads it. `ttl` is the one of the view."""

    text: QueryText
    ttl: str | None


@dataclass(slots=True)
class Query:
    """`hint` begins the ids of the nodes: the name of the sink, or of the view."""

    graph: Graph
    session: Session
    registry: Registry
    tables: Tables
    text: QueryText
    hint: str
    visits: Mapping[str, Visit]
    #: How long state is kept, as text; None where the script does not say.
    ttl: str | None = None
    functions: Mapping[str, TableFunction] = field(default_factory=dict)
    #: Names of columns that the step above reads of the one below it; None for all.
    wanted: frozenset[str] | None = None
    #: Views whose queries are part of this one.
    views: Mapping[str, Inlined] = field(default_factory=dict)

    @property
    def at(self) -> Location:
        return self.text.start

    def visit(self, plan: LogicalPlan) -> Relation:
        """The rows of a plan, lazily: windows of table functions and ranks may not be there yet."""
        variant = plan.to_variant()
        kind = type(variant).__name__
        visit = self.visits.get(kind)
        if visit is None:
            raise self.refuse(
                f"{kind} cannot be planned for a stream: write SELECT with FROM, JOIN, WHERE, GROUP BY and UNION"
            )
        relation = visit(self, plan, variant)
        names = list(self.session.frame(plan).schema().names)
        if [each.name for each in relation.fields] != names:
            raise self.refuse(
                "the columns of this query cannot be told apart: give each a name of its own with AS, and join tables "
                "instead of reading one in another",
                "lateral",
                "select",
            )
        return relation

    def rows(self, plan: LogicalPlan) -> Relation:
        """The rows of a plan, with all of their columns."""
        return self.real(self.visit(plan))

    def real(self, relation: Relation) -> Relation:
        """The relation with the columns of its window and of its rank; raises where it is not one of rows."""
        if relation.lookup is not None:
            raise self.refuse(
                f"{relation.lookup.name!r} is looked up, so it has no rows of its own: join a stream with it, by "
                f"equalities and its plain columns",
                relation.lookup.name,
            )
        if relation.pending:
            raise self.refuse(
                "tumble(), hop() and session() stand in GROUP BY, not in conditions: group by them first", "where"
            )
        if relation.virtual is not None:
            relation = self._assigned(relation, relation.virtual)
        ranking = relation.ranking
        if ranking is None:
            return relation
        if not ranking.is_windowed:
            raise self.refuse(
                f"{ranking.function}() over a stream changes with every row: keep the first rows with WHERE rank <= n "
                f"right above it, or partition it by the window of the rows",
                ranking.function,
            )
        node = self.add("over", "std.window_function", [relation.node], {"expressions": {ranking.column: ranking.sql}})
        return replace(relation, node=node, ranking=None)

    def is_volatile(self, sql: str) -> bool:
        """Whether an expression calls a function that gives another value for each row or call."""
        called = set(re.findall(r"([\w.]+)\(", sql))
        own = {
            each.name.lower()
            for each in self.registry.udfs.values()
            if isinstance(each, ScalarUdf) and each.volatility is Volatility.VOLATILE
        }
        return bool(called & (_VOLATILE | own))

    def add(self, role: str, operator: str, inputs: Sequence[str], config: Mapping[str, Any], *words: str) -> str:
        """A node for a part of the query; its place is that of the first of these words."""
        at = self.text.find(*words) if words else self.at
        with placed(self.graph, self.text.source.text, self.at):
            return self.graph.add(f"{self.hint}_{role}", operator, inputs, config, at=at)

    def printer(self, relation: Relation, plan: LogicalPlan | None) -> Printer:
        def find(qualifier: str | None, name: str) -> Field:
            named = [each for each in relation.fields if each.name == name]
            found = [each for each in named if qualifier is None or each.qualifier == qualifier] or named
            if not found:
                shown = name if qualifier is None else f"{qualifier}.{name}"
                raise self.refuse(f"the column {shown!r} cannot be read here: give it a name in a subquery", name)
            return found[0]

        def time() -> Field:
            if relation.time is None:
                raise self.refuse(
                    "row_time() is the event time, and the rows have none: declare WATERMARK FOR a column of the "
                    "table, and keep that column",
                    "row_time",
                )
            column = relation.time
            named = (each for each in relation.fields if each.column == column)
            return next(named, Field.of_column(column, self.kind(relation.node, column), name=column))

        def type_of(expression: Expr) -> pa.DataType:
            if plan is None:
                raise self.refuse("a cast cannot be computed here: compute it in a subquery", "cast")
            frame = self.session.frame(plan).select(expression.alias("x"))
            return plain(frame.schema().field(0).type)

        return Printer(find, time, type_of, lambda message, words: self.refuse(message, *words))

    def refuse(self, message: str, *words: str) -> PipelineError:
        return self.text.refuse(message, words)

    def ttl_or(self, default: str | None) -> dict[str, str]:
        """The setting `ttl`, where there is one."""
        ttl = self.ttl or default
        return {} if ttl is None else {"ttl": ttl}

    def kind(self, node: str, column: str) -> pa.DataType:
        return self.graph.schema(node).schema.field(column).type

    def _assigned(self, relation: Relation, window: Window) -> Relation:
        if window.kind == "session":
            raise self.refuse(
                "rows get their session from all rows of a key: group by window_start and window_end", "session"
            )
        if relation.time is None:
            raise self.refuse(
                "windows of rows need an event time: declare WATERMARK FOR a column of the table", window.kind
            )
        config = {"size": format_duration_us(window.size_us)}
        if window.slide_us is not None:
            config["slide"] = format_duration_us(window.slide_us)
        node = self.add("in_windows", "std.assign_window", [relation.node], config)
        return replace(relation, node=node, time="window_time", window=window, virtual=None)
