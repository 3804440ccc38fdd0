"""Nodes that are not needed are taken away when all of a script is planned, and others are made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from arroyo_sql.planned import Node
from arroyo_sql.planner.graph import AbandonedError, Graph
from arroyo_sql.planner.pushing import with_predicates
from arroyo_sql.planner.relations import UPDATING_META, WINDOW_COLUMNS, quote

#: Operators that pay no heed to event time.
_TIMELESS = frozenset(
    {
        "std.filter",
        "std.project",
        "std.sql",
        "std.unnest",
        "std.async_udf",
        "std.lookup_join",
        "std.stdout",
        "std.blackhole",
    }
)
#: Operators that read columns by name, so that others beside them make no difference.
_SELECTIVE = frozenset(
    {
        "std.project",
        "std.tumbling_window",
        "std.sliding_window",
        "std.session_window",
        "std.updating_aggregate",
    }
)
#: What sources call the columns that they are to give.
_CHOICES = ("fields", "columns")
#: An expression that is longer is not computed twice.
_CHEAP_CHARS = 30


def optimised(graph: Graph, ends: Sequence[str]) -> list[Node]:
    """The nodes that feed these ends, each after its inputs, without those that change nothing."""
    nodes = _reached(graph, ends)
    for improve in (_without_watermarks, _without_narrowing, _with_chosen_columns, _with_predicates, _with_queries):
        nodes = improve(graph, nodes)
    return nodes


def _reached(graph: Graph, ends: Sequence[str]) -> list[Node]:
    needed, waiting = set[str](), list(ends)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += graph.nodes[node].inputs
    return [node for id, node in graph.nodes.items() if id in needed]


def _readers(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    readers: dict[str, list[Node]] = {node.id: [] for node in nodes}
    for node in nodes:
        for source in dict.fromkeys(node.inputs):
            readers[source].append(node)
    return readers


def _without(nodes: Sequence[Node], dropped: Mapping[str, str]) -> list[Node]:
    """The nodes without some, whose readers read what those read."""

    def origin(id: str) -> str:
        while id in dropped:
            id = dropped[id]
        return id

    return [
        replace(node, inputs=tuple(origin(source) for source in node.inputs))
        for node in nodes
        if node.id not in dropped
    ]


def _without_watermarks(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Watermarks that nothing waits for."""
    readers = _readers(nodes)
    has_no_need: dict[str, bool] = {}
    for node in reversed(nodes):
        is_timeless = node.operator in _TIMELESS or graph.operator(node.id).is_sink
        has_no_need[node.id] = is_timeless and all(has_no_need[reader.id] for reader in readers[node.id])
    dropped = {
        node.id: node.inputs[0]
        for node in nodes
        if node.operator == "std.watermark" and all(has_no_need[reader.id] for reader in readers[node.id])
    }
    return _without(nodes, dropped)


def _without_narrowing(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Projections that only leave columns away, before what reads columns by name."""
    readers = _readers(nodes)
    dropped = {}
    for node in nodes:
        is_used = bool(readers[node.id]) and all(_is_selective(reader) for reader in readers[node.id])
        if _is_narrowing(node) and is_used:
            source = graph.schema(node.inputs[0])
            if source.timestamp_column == graph.schema(node.id).timestamp_column:
                dropped[node.id] = node.inputs[0]
    return _without(nodes, dropped)


def _is_selective(node: Node) -> bool:
    return node.operator in _SELECTIVE and "drop" not in node.config


def _is_narrowing(node: Node) -> bool:
    return node.operator == "std.project" and set(node.config) == {"keep"}


def _with_chosen_columns(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Sources give those columns only that a projection right behind them keeps, where they can be told to."""
    readers, by_id = _readers(nodes), {node.id: node for node in nodes}
    changed: dict[str, Node] = {}
    dropped: dict[str, str] = {}
    for node in nodes:
        path = _path_to_source(node, by_id) if _is_narrowing(node) else []
        if not path or any(len(readers[each.id]) != 1 for each in path):
            continue
        kept = list(node.config["keep"])
        added = [name for name in WINDOW_COLUMNS if any(each.operator == "std.assign_window" for each in path)]
        columns = [name for name in kept if name not in added]
        times = {each.config.get("column") for each in path if each.operator == "std.watermark"}
        chosen = _choosing(graph, path[-1], columns) if kept == [*columns, *added] and times <= set(columns) else None
        if chosen is not None:
            changed[chosen.id] = chosen
            dropped[node.id] = node.inputs[0]
    return _without([changed.get(node.id, node) for node in nodes], dropped)


def _path_to_source(node: Node, by_id: Mapping[str, Node]) -> list[Node]:
    """What is between a node and its source, and the source; nothing where rows change between them."""
    path = [by_id[node.inputs[0]]]
    while path[-1].operator in ("std.watermark", "std.assign_window"):
        path.append(by_id[path[-1].inputs[0]])
    return [] if path[-1].inputs else path


def _choosing(graph: Graph, source: Node, columns: list[str]) -> Node | None:
    """The source with these columns alone; None where it cannot be told, or gives others all the same."""
    known = graph.operator(source.id).config_type.DESCRIPTOR.fields_by_name
    option = next((name for name in _CHOICES if name in known and name not in source.config), None)
    if option is None:
        return None
    chosen = replace(source, config={**source.config, option: columns})
    try:
        names = graph.trial(chosen).names
    except AbandonedError:
        return None
    return chosen if list(names) == columns else None


def _with_predicates(graph: Graph, nodes: list[Node]) -> list[Node]:
    return with_predicates(graph, nodes, _readers(nodes))


def _with_queries(graph: Graph, nodes: list[Node]) -> list[Node]:
    """A condition, and what is computed of the rows that fulfil it, as one query."""
    readers, by_id = _readers(nodes), {node.id: node for node in nodes}
    changed: dict[str, Node] = {}
    dropped: dict[str, str] = {}
    for node in nodes:
        below = by_id[node.inputs[0]] if node.inputs else node
        is_pair = node.operator == "std.project" and below.operator == "std.filter" and "expressions" in node.config
        if not is_pair or len(readers[below.id]) != 1 or UPDATING_META in graph.columns(below.id):
            continue
        query = Node(
            node.id, "std.sql", node.inputs, {"query": _query(node.config, below.config["predicate"])}, node.at
        )
        try:
            is_same = graph.trial(query) == graph.schema(node.id)
        except AbandonedError:
            is_same = False
        if is_same:
            changed[node.id] = query
            dropped[below.id] = below.inputs[0]
    return _without([changed.get(node.id, node) for node in nodes], dropped)


def _query(config: Mapping[str, Any], predicate: str) -> str:
    columns = {**{name: quote(name) for name in config.get("keep", ())}, **config["expressions"]}
    shared: dict[str, str] = {}
    for sql in columns.values():
        if len(sql) > _CHEAP_CHARS and sql in predicate and sql not in shared:
            shared[sql] = f"shared_{len(shared) + 1}"
    source = "input"
    for sql, name in shared.items():
        predicate = predicate.replace(sql, name)
        columns = {column: each.replace(sql, name) for column, each in columns.items()}
    if shared:
        # Computed once, for the condition and for the result.
        source = f"(SELECT *, {', '.join(f'{sql} AS {name}' for sql, name in shared.items())} FROM input)"
    selected = ", ".join(sql if sql == quote(name) else f"{sql} AS {quote(name)}" for name, sql in columns.items())
    return f"SELECT {selected} FROM {source} WHERE {predicate}"
