"""Steps that see one row at a time: tables, names, projections, conditions, unnest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datafusion import Expr, LogicalPlan

from arroyo_core.udf import AsyncUdf
from arroyo_sql.planner.columns import hidden_columns, hint_of, layout_over, project, provide, settled
from arroyo_sql.planner.expressions import (
    call_of,
    columns_of,
    conjuncts,
    contains,
    is_window_call,
    literal_value,
    unalias,
    wrap,
)
from arroyo_sql.planner.pushing import is_plain
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.ranks import keep_first
from arroyo_sql.planner.relations import Field, Relation, quote
from arroyo_sql.planner.sql_types import TIME


def scan(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    name = str(variant.table_name()).split(".")[-1].strip('"')
    if variant.fetch() is not None or variant.filters():
        raise query.refuse(
            "conditions and limits inside of a table's scan are not planned: write them in a query around it", "limit"
        )
    function = query.functions.get(name)
    if function is None and not query.tables.has(name):
        raise query.refuse(
            "only TUMBLE, HOP and SESSION are functions of FROM: write unnest() of a list in SELECT, or a table WITH "
            "(connector = 'impulse') for numbers",
            "generate_series",
            "range",
            name,
        )
    relation = query.tables.scan(function.table if function is not None else name)
    if function is not None:
        if relation.time is None or relation.lookup is not None:
            raise query.refuse(
                f"{function.table!r} has no event time: declare WATERMARK FOR one of its columns", function.table
            )
        relation = replace(
            relation,
            virtual=function.window,
            fields=(
                *relation.fields,
                *(Field.of_column(part, TIME, name=part) for part in ("window_start", "window_end", "window_time")),
            ),
        )
    relation = relation.qualified(name)
    projection = variant.projection()
    if projection is None:
        return relation
    by_name = {field.name: field for field in relation.fields}
    return replace(relation, fields=tuple(by_name[column] for _, column in projection))


def alias(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    name, outside = str(variant.alias()).strip('"'), (query.hint, query.text, query.ttl)
    view = query.views.get(name)
    if view is not None:
        query.hint, query.text, query.ttl = name, view.text, view.ttl
    relation = query.visit(plan.inputs()[0])
    query.hint, query.text, query.ttl = outside
    return relation.qualified(name)


def projection(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    below = plan.inputs()[0]
    expressions = [wrap(each) for each in variant.projections()]
    query.wanted = frozenset(column.to_variant().name() for each in expressions for column in columns_of(each))
    relation = query.visit(below)
    query.wanted = None
    is_lazy = relation.virtual is not None or relation.ranking is not None or relation.lookup is not None
    # What is not there yet may be copied, but not computed with.
    if is_lazy and any(unalias(each).variant_name() != "Column" for each in expressions):
        relation = query.real(relation)
    relation, awaited = _all_awaited(query, relation, expressions, below)
    printer = query.printer(relation, below)
    fields = []
    for index, expression in enumerate(expressions):
        inner, name = unalias(expression), str(expression.schema_name())
        if index in awaited:
            fields.append(awaited[index].named(name))
            continue
        copied = printer.field(inner)
        if copied is not None:
            fields.append(copied if expression.variant_name() == "Column" else copied.named(name))
        else:
            fields.append(Field(None, name, printer.sql(inner)))
    relation = replace(relation, fields=tuple(fields))
    if any(each.column is None and query.is_volatile(each.sql) for each in fields):
        # Computed once: what is read above is the value that came here.
        return settled(query, relation)
    return relation


def _all_awaited(
    query: Query, relation: Relation, expressions: list[Expr], below: LogicalPlan
) -> tuple[Relation, dict[int, Field]]:
    """The relation with the results of asynchronous functions, and these by the place of their call.

    They come first: what is computed of the same rows has to read the columns that are there afterwards.
    """
    awaited: dict[int, Field] = {}
    for index, expression in enumerate(expressions):
        inner = unalias(expression)
        function = query.registry.udfs.get(call_of(inner)[0] or "")
        if isinstance(function, AsyncUdf):
            relation, found = _awaited(query, relation, inner, function, below)
            awaited[index] = found
            # Kept by the next one, under a name that no query has.
            relation = replace(relation, fields=(*relation.fields, found.named(f"\0{index}")))
    return relation, awaited


def _awaited(
    query: Query, relation: Relation, call: Expr, function: AsyncUdf, below: LogicalPlan
) -> tuple[Relation, Field]:
    arguments = {hint_of(each, f"argument_{index + 1}"): each for index, each in enumerate(call_of(call)[1])}
    relation, names = provide(query, relation, below, arguments, keeps_fields=True)
    column, repeat = function.name.rpartition(".")[2], 2
    while column in query.graph.columns(relation.node):
        column, repeat = f"{function.name.rpartition('.')[2]}_{repeat}", repeat + 1
    config = {"function": function.name, "arguments": [names[hint] for hint in arguments], "as": column}
    node = query.add(function.name.rpartition(".")[2], "std.async_udf", [relation.node], config)
    return replace(relation, node=node), Field.of_column(column, function.return_type, name=column)


def condition(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    wanted, query.wanted = query.wanted, None
    below = plan.inputs()[0]
    relation = query.visit(below)
    parts = conjuncts(wrap(variant.predicate()))
    if relation.lookup is not None:
        return replace(relation, pending=(*relation.pending, *parts))
    if relation.ranking is not None:
        kept, parts = keep_first(query, relation, below, parts, wanted)
        relation = kept if kept is not None else query.real(relation)
    pending = [part for part in parts if contains(part, is_window_call)]
    parts = [part for part in parts if not contains(part, is_window_call)]
    relation = replace(relation, pending=(*relation.pending, *pending))
    if relation.virtual is not None and any(_reads_window(part) for part in parts):
        relation = query.real(relation)
    return where(query, relation, below, parts)


def where(query: Query, relation: Relation, plan: LogicalPlan, parts: list[Expr]) -> Relation:
    """The rows for which all of these conditions are true."""
    parts = [part for part in parts if not _is_true(part)]
    if not parts:
        return relation
    printer = query.printer(relation, plan)
    printed = [printer.sql(part) for part in parts]
    predicate = bare(printed[0] if len(printed) == 1 else " AND ".join(printed))
    plain = [sql for part, sql in zip(parts, printed, strict=True) if is_plain(part, printer)]
    query.graph.conditions[predicate] = (predicate,) if plain == printed else tuple(plain)
    node = query.add("where", "std.filter", [relation.node], {"predicate": predicate})
    return replace(relation, node=node)


def _is_true(part: Expr) -> bool:
    return part.variant_name() == "Literal" and literal_value(part) is True


def bare(predicate: str) -> str:
    """Without the brackets around all of it."""
    if not (predicate.startswith("(") and predicate.endswith(")")):
        return predicate
    depth, is_text, is_name = 0, False, False
    for index, letter in enumerate(predicate):
        is_text ^= letter == "'" and not is_name
        is_name ^= letter == '"' and not is_text
        if is_text or is_name:
            continue
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and index < len(predicate) - 1:
            return predicate
    return predicate[1:-1]


def _reads_window(part: Expr) -> bool:
    return any(column.to_variant().name().startswith("window_") for column in columns_of(part))


def unnest(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    below = plan.inputs()[0]
    relation = query.rows(below)
    marker = "__unnest_placeholder("
    lists = [field for field in relation.fields if field.name.startswith(marker)]
    if len(lists) != 1:
        raise query.refuse("a SELECT has one unnest(): unnest the other list in a query around it", "unnest")
    text = plan.display()
    if "structs[]" not in text or "depth=1]" not in text.replace("|depth=1", "|depth=1]"):
        raise query.refuse("unnest() takes one list: read the fields of a struct by their names", "unnest")
    layout = layout_over(query, relation)
    kept = {}
    for field in relation.fields:
        if field is not lists[0] and field.window is None:
            kept[field.name] = layout.copy(field.column) if field.column else layout.compute(field.name, field.sql)
    for column in hidden_columns(query, relation):
        layout.copy(column)
    source = layout.compute("unnested", lists[0].sql)
    node = project(query, relation.node, layout.columns, is_exact=False)
    node = query.add("unnested", "std.unnest", [node], {"column": source})
    fields = []
    for field in relation.fields:
        if field is lists[0]:
            name = f"{field.name[:-1]},depth=1)"
            fields.append(Field.of_column(source, query.kind(node, source), name=name))
        elif field.window is not None:
            fields.append(field)
        else:
            fields.append(replace(field, column=kept[field.name], sql=quote(kept[field.name])))
    return replace(relation, node=node, fields=tuple(fields))
