"""Puts operators that make rows fewer in front of the shuffles they save work for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arroyo_core.api import ArrowOperator, ArroyoSchema
from arroyo_core.pipeline.operators import PlannedOperator
from arroyo_core.pipeline.plan import Edge, Node, Routing


def insert_partials(
    nodes: Mapping[str, Node], edges: Sequence[Edge], operators: Mapping[str, PlannedOperator]
) -> tuple[dict[str, Node], tuple[Edge, ...]]:
    """The nodes, still in topological order, and the edges, with a partial operator wherever one is of use."""
    found: dict[str, Node] = {}
    changed: dict[Edge, tuple[Edge, ...]] = {}
    for node in nodes.values():
        shuffles = [edge for edge in edges if edge.target == node.id and edge.routing is Routing.SHUFFLE]
        partial = None
        if len(shuffles) == 1 and len(node.input_schemas) == 1:
            partial = _partial(node, operators[node.id], width=nodes[shuffles[0].source].parallelism)
        if partial is not None:
            edge = shuffles[0]
            found[partial.id] = partial
            changed[edge] = (
                replace(edge, target=partial.id, routing=Routing.FORWARD, keys=()),
                replace(edge, source=partial.id, output=None),
            )
            node = replace(node, input_schemas=(partial.output_schema,))
        found[node.id] = node
    return found, tuple(new for edge in edges for new in changed.get(edge, (edge,)))


def _partial(node: Node, operator: PlannedOperator, *, width: int) -> Node | None:
    inner = operator.constructed.operator
    if inner is None:
        return None
    inputs = node.input_schemas
    made: list[ArrowOperator | None] | None = operator.boundary.call(
        "partial()", lambda: [inner.partial(inputs)], expected=list
    )
    partial = made[0] if made else None
    if partial is None:
        return None
    output = operator.boundary.call(
        "partial().output_schema()", lambda: partial.output_schema(inputs), expected=ArroyoSchema
    )
    if output is None:
        return None
    return replace(
        node,
        id=partial_id(node.id),
        parallelism=width,
        output_schema=output,
        side_schemas={},
        settings={},
        partial_of=node.id,
        was=None,
    )


def partial_id(node_id: str) -> str:
    """The id of the node that makes rows fewer in front of another; no id in a pipeline has a colon in it."""
    return f"{node_id}:partial"
