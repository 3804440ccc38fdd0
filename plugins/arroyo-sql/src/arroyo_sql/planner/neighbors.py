"""`lag` and `lead` over the event time of a stream: values of the rows before and behind, without a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from datafusion import Expr, LogicalPlan

from arroyo_sql.planner.columns import hint_of, order_config, provide
from arroyo_sql.planner.expressions import Printer, literal_value, peel, wrap
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import Field, Relation, quote

NEIGHBORS = ("lag", "lead")

#: A function with its expression, and what DataFusion knows of it.
Call = tuple[Expr, Any]


def _waits(values: Sequence[dict[str, Any]]) -> bool:
    return any(value["function"] == "lead" for value in values)


@dataclass(frozen=True, slots=True)
class _Neighbor:
    """One function: its parts by the hints that their columns are wanted under."""

    function: str
    name: str
    argument: str
    offset: int
    default: Expr | None
    partition: list[str]
    #: Behind the event time.
    order: list[tuple[str, bool, bool]]


def neighbors(query: Query, relation: Relation, below: LogicalPlan, variant: Any, calls: Sequence[Call]) -> Relation:
    """The relation with these functions as columns: one operator for all that have their partitions and order."""
    wanted: dict[str, Expr] = {}
    found = [_neighbor(query, relation, below, variant, expression, raw, wanted) for expression, raw in calls]
    relation, names = provide(query, relation, below, wanted, keeps_fields=True, is_exact=True)
    printer = query.printer(relation, below)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    taken = set(query.graph.columns(relation.node))
    columns = []
    for each in found:
        column, repeat = each.function, 2
        while column in taken:
            column, repeat = f"{each.function}_{repeat}", repeat + 1
        taken.add(column)
        columns.append(column)
        value = {"function": each.function, "column": names[each.argument], "offset": each.offset, "as": column}
        if each.default is not None:
            value["default"] = printer.sql(each.default)
        keys = tuple(dict.fromkeys(names[hint] for hint in each.partition))
        order = tuple((names[hint], is_up, is_null_first) for hint, is_up, is_null_first in each.order)
        groups.setdefault((keys, order), []).append(value)
    node = relation.node
    # What holds rows back comes last.
    for (keys, order), values in sorted(groups.items(), key=lambda group: _waits(group[1])):
        config: dict[str, Any] = {"values": values, **query.ttl_or("0s")}
        if keys:
            config["keys"] = list(keys)
        if order:
            config["order_by"] = [order_config(*key) for key in order]
        node = query.add("neighbors", "std.neighbors", [node], config, found[0].function)
    fields = [
        Field.of_column(column, query.kind(node, column), name=each.name)
        for each, column in zip(found, columns, strict=True)
    ]
    return replace(relation, node=node, fields=(*relation.fields, *fields))


def _neighbor(
    query: Query,
    relation: Relation,
    below: LogicalPlan,
    variant: Any,
    expression: Expr,
    raw: Any,
    wanted: dict[str, Expr],
) -> _Neighbor:
    function = str(variant.window_func_name(raw))
    keys = [(wrap(key.expr()), bool(key.ascending()), bool(key.nulls_first())) for key in variant.get_sort_exprs(raw)]
    _check_order(query, relation, below, keys, function)
    argument, *others = [wrap(each) for each in variant.get_args(raw)]
    order = [(want(wanted, hint_of(each, "order"), each), is_up, first) for each, is_up, first in keys[1:]]
    return _Neighbor(
        function=function,
        name=str(expression.schema_name()),
        argument=want(wanted, hint_of(argument, "value"), argument),
        offset=_offset(query, others[0], function) if others else 1,
        default=_default(query, others[1], function) if len(others) > 1 else None,
        partition=[want(wanted, hint_of(each, "group"), each) for each in map(wrap, variant.get_partition_exprs(raw))],
        order=order,
    )


def _check_order(
    query: Query, relation: Relation, below: LogicalPlan, keys: Sequence[tuple[Expr, bool, bool]], function: str
) -> None:
    """Rows come in the order of their event time, and in no other."""
    if relation.is_updating:
        raise query.refuse(
            f"{function}() OVER needs rows that stay, and these change: read them before they are aggregated or "
            f"joined, or partition it by the window of the rows",
            function,
        )
    if relation.time is None:
        raise query.refuse(
            f"{function}() OVER a stream goes by event time, and the rows have none: declare WATERMARK FOR a column of "
            f"the table, and keep that column",
            function,
        )
    named = [each.name for each in relation.fields if each.column == relation.time]
    time = named[0] if named else relation.time
    if not keys or not _is_time(relation, query.printer(relation, below), keys[0][0]):
        raise query.refuse(
            f"{function}() OVER a stream goes by event time: write ORDER BY {quote(time)}, or partition it by the "
            f"window of the rows",
            function,
        )
    if not keys[0][1]:
        other = "lead" if function == "lag" else "lag"
        raise query.refuse(
            f"{function}() OVER a stream goes forward in time: write {other}() with ORDER BY {quote(time)}, without "
            f"DESC",
            function,
        )


def _is_time(relation: Relation, printer: Printer, expression: Expr) -> bool:
    """Whether its order is that of event time: windows of one size start and end in the same order."""
    field = printer.field(expression)
    if field is not None and field.column is not None and field.column == relation.time:
        return True
    window = relation.window
    if window is None or relation.time != "window_time":
        return False
    ordered = {window.end, "window_end", *(() if window.kind == "session" else (window.start, "window_start"))}
    return printer.sql(expression) in ordered


def _offset(query: Query, expression: Expr, function: str) -> int:
    expression = peel(expression)
    value = literal_value(expression) if expression.variant_name() == "Literal" else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise query.refuse(f"the offset of {function}() OVER a stream is a number from 1 on", function)
    return value


def _default(query: Query, expression: Expr, function: str) -> Expr | None:
    inner = peel(expression)
    if inner.variant_name() != "Literal":
        raise query.refuse(f"the default of {function}() OVER a stream is a literal: use coalesce() above it", function)
    return None if literal_value(inner) is None else expression


def want(wanted: dict[str, Expr], hint: str, expression: Expr) -> str:
    """The hint under which an expression is wanted as a column."""
    base, repeat = hint, 2
    while hint in wanted and wanted[hint].canonical_name() != expression.canonical_name():
        hint, repeat = f"{base}_{repeat}", repeat + 1
    wanted[hint] = expression
    return hint
