"""Conditions right behind a source are told to it as well, so that it need not read what they would throw away.

The filter stays: what a source makes of its `predicate` is a hint, and only the filter says what comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datafusion import Expr

from arroyo_sql.planned import Node
from arroyo_sql.planner.expressions import Printer, operands, unalias
from arroyo_sql.planner.graph import AbandonedError, Graph

#: The setting of sources that can be told, which is SQL.
OPTION = "predicate"
#: With it a source has no end.
_ENDLESS = "watch"
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "AND", "OR"})
_KINDS = frozenset({"BinaryExpr", "InList", "Between", "Like", "IsNull", "IsNotNull", "Not"})


def is_plain(expression: Expr, printer: Printer) -> bool:
    """Whether a condition only compares columns of its input with constants."""
    expression = unalias(expression)
    kind = expression.variant_name()
    if kind == "Literal":
        return True
    if kind == "Column":
        field = printer.field(expression)
        return field is not None and field.column is not None
    if kind not in _KINDS or (kind == "BinaryExpr" and str(expression.rex_call_operator()) not in _COMPARISONS):
        return False
    return all(is_plain(part, printer) for part in operands(expression))


def with_predicates(graph: Graph, nodes: list[Node], readers: Mapping[str, Sequence[Node]]) -> list[Node]:
    """The nodes, with sources that know what the only filter behind them asks for."""
    by_id = {node.id: node for node in nodes}
    changed: dict[str, Node] = {}
    for node in nodes:
        conditions = graph.conditions.get(node.config.get(OPTION, ""), ()) if node.operator == "std.filter" else ()
        path = _path_to_source(node, by_id) if conditions else []
        if not path or any(len(readers[each.id]) != 1 for each in path):
            continue
        has_time = any(each.operator == "std.watermark" for each in path)
        if _ENDLESS in path[-1].config and has_time:
            # Rows that are left out move the event time on, and nobody knows when others come.
            continue
        told = _told(graph, path[-1], conditions)
        if told is not None:
            changed[told.id] = told
    return [changed.get(node.id, node) for node in nodes]


def _path_to_source(node: Node, by_id: Mapping[str, Node]) -> list[Node]:
    """What is between a filter and its source, and the source; nothing where columns change between them."""
    path = [by_id[node.inputs[0]]]
    while path[-1].inputs and (
        path[-1].operator in ("std.watermark", "std.assign_window")
        or (path[-1].operator == "std.project" and set(path[-1].config) == {"keep"})
    ):
        path.append(by_id[path[-1].inputs[0]])
    return [] if path[-1].inputs else path


def _told(graph: Graph, source: Node, conditions: Sequence[str]) -> Node | None:
    """The source with those of the conditions that it takes."""
    known = graph.operator(source.id).config_type.DESCRIPTOR.fields_by_name
    if OPTION not in known or OPTION in source.config:
        return None
    if _takes(graph, source, conditions):
        return _with(source, conditions)
    taken = [condition for condition in conditions if len(conditions) > 1 and _takes(graph, source, [condition])]
    return _with(source, taken) if taken else None


def _takes(graph: Graph, source: Node, conditions: Sequence[str]) -> bool:
    try:
        graph.trial(_with(source, conditions))
    except AbandonedError:
        return False
    return True


def _with(source: Node, conditions: Sequence[str]) -> Node:
    return replace(source, config={**source.config, OPTION: " AND ".join(conditions)})
