"""Words that several views share."""

from __future__ import annotations

from arroyo_core.pipeline.plan import Edge, Routing
from arroyo_core.pipeline.planner import PlannedPipeline


def count(number: int, noun: str) -> str:
    """`1 chain`, `2 chains`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def keys_label(keys: tuple[str, ...], pipeline: PlannedPipeline) -> str:
    return ", ".join(pipeline.redact(key) for key in keys)


def output_label(edge: Edge) -> str:
    """What is read, as a person writes it: `node`, or `node.output`."""
    return edge.source if edge.output is None else f"{edge.source}.{edge.output}"


def routing_label(edge: Edge, pipeline: PlannedPipeline) -> str:
    """`forward`, `rebalance`, `shuffle by auction`, `all rows to subtask 0`."""
    if edge.routing is not Routing.SHUFFLE:
        return edge.routing.value
    return f"shuffle by {keys_label(edge.keys, pipeline)}" if edge.keys else "all rows to subtask 0"


def operator_details(node: str, pipeline: PlannedPipeline) -> list[tuple[str, str]]:
    """What the operator shows of itself."""
    return [(label, text) for label, text in pipeline.displays[node].fields]
