"""UNION ALL, and steps that only queries with an end can have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from datafusion import LogicalPlan

from arroyo_core.errors import PipelineError
from arroyo_sql.planner.columns import Layout, project
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, Field, Relation, quote
from arroyo_sql.planner.sql_types import cast_sql, plain, same

_EVENT_TIME = "event_time"


def union(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    inputs = plan.inputs()
    relations = [query.rows(below) for below in inputs]
    schema = query.session.frame(plan).schema()
    names = _unique([field.name for field in schema])
    times = [relation.time for relation in relations]
    has_time = all(times)
    is_updating = any(relation.is_updating for relation in relations)
    if is_updating and not all(relation.is_updating for relation in relations):
        raise query.refuse(
            "UNION of a stream that changes and one that only adds is not planned: group both, or neither",
            "union",
        )
    nodes = []
    for below, relation in zip(inputs, relations, strict=True):
        columns: dict[str, str] = {}
        given = [plain(field.type) for field in query.session.frame(below).schema()]
        for index, (name, field) in enumerate(zip(names, relation.fields, strict=True)):
            columns[name] = _typed(query, relation, field, given[index], plain(schema.field(index).type))
        if has_time:
            time = str(relation.time)
            at = next((name for name, sql in columns.items() if sql == quote(time)), None)
            columns = (
                {**columns, _EVENT_TIME: quote(time)} if at is None or not _all_at(relations, names, at) else columns
            )
        nodes.append(project(query, relation.node, columns, is_exact=True, is_ordered=True, role="part"))
    node = query.add("union", "std.union", nodes, {})
    stream = query.graph.schema(node)
    fields = tuple(
        Field.of_column(name, stream.schema.field(name).type, name=schema.field(index).name)
        for index, name in enumerate(names)
    )
    return Relation(node, fields, stream.timestamp_column, UPDATING_META in stream.names)


def _all_at(relations: list[Relation], names: list[str], name: str) -> bool:
    """Whether the column of this name is the event time of every input."""
    index = names.index(name)
    return all(relation.fields[index].column == relation.time for relation in relations)


def _unique(names: list[str]) -> list[str]:
    layout = Layout()
    return [layout.compute(name, f"{index}") for index, name in enumerate(names)]


def _typed(query: Query, relation: Relation, field: Field, given: pa.DataType, wanted: pa.DataType) -> str:
    kind = query.kind(relation.node, field.column) if field.column is not None else given
    if field.window is not None or same(kind, wanted):
        return field.sql
    printed = cast_sql(field.sql, wanted)
    return field.sql if printed is None else printed


def sort(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    raise query.refuse(
        "a stream has no end, so it has no ORDER BY: rank its rows with row_number() OVER (... ORDER BY ...)",
        "order by",
    )


def limit(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    raise query.refuse(
        "a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10",
        "limit",
        "offset",
        "fetch",
    )


def no_table(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    message = "a query of a stream reads a table: write FROM"
    at = query.text.find_select_without_table()
    raise PipelineError(message, at=at) if at is not None else query.refuse(message, "values", "select")


def subquery(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    if "unnest" in query.text.sql.lower():
        raise query.refuse("unnest() stands in SELECT: SELECT x, unnest(list) AS y FROM t", "unnest")
    raise query.refuse(
        "a subquery of FROM cannot read columns of the tables beside it here: join it with ON", "lateral"
    )
