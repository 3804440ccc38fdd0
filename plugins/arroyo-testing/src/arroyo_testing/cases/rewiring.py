"""Makes the plan of a test from the plan of a pipeline: other sources, other sinks, and taps on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.chaining import derive_chains
from arroyo_core.pipeline.plan import Edge, Node, Plan, Routing
from arroyo_testing.cases.operators import (
    CAPTURE,
    SCRIPT,
    CaptureConfig,
    Script,
    ScriptItem,
    case_origin,
    encode_config,
)

#: Rows of real sources, which end by themselves; an epoch of them takes no longer than this.
_INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Outlet:
    """An output of a node: its main one, or a side output. That of a sink is what it is given."""

    node: str
    output: str | None = None

    def __str__(self) -> str:
        return self.node if self.output is None else f"{self.node}.{self.output}"


def outlets_of(plan: Plan, sinks: Iterable[str]) -> dict[str, tuple[Outlet, ArroyoSchema]]:
    """Everything that a test can look at, by its name."""
    ends = set(sinks)
    found = {}
    for node in plan.written_nodes():
        outlet = Outlet(node.id)
        found[str(outlet)] = (outlet, node.input_schemas[0] if node.id in ends else node.output_schema)
        for name, schema in node.side_schemas.items():
            side = Outlet(node.id, name)
            found[str(side)] = (side, schema)
    return found


def sources_of(plan: Plan) -> dict[str, Node]:
    return {node.id: node for node in plan.written_nodes() if not plan.inputs_of(node.id)}


def rewire(
    plan: Plan,
    *,
    sinks: Iterable[str],
    scripts: Mapping[str, Sequence[ScriptItem]],
    cuts: Sequence[int],
    taps: Iterable[Outlet],
    state_url: str,
    capture_url: str,
) -> Plan:
    """The plan with sources that follow `scripts`, sinks that capture, and a captor at each of `taps`.

    A sink is always captured, under its own name.
    """
    nodes = dict(plan.nodes)
    for name, items in scripts.items():
        script = Script.of(items, cuts, nodes[name].output_schema)
        nodes[name] = replace(nodes[name], operator=SCRIPT, config=encode_config(script), origin=case_origin())
    ends = set(sinks)
    for name in ends:
        config = encode_config(CaptureConfig(capture_url, name))
        nodes[name] = replace(nodes[name], operator=CAPTURE, config=config, origin=case_origin(), side_schemas={})
    edges = list(plan.edges)
    for tap in taps:
        if tap.node not in ends:
            captor, edge = _captor(plan.nodes[tap.node], tap, capture_url)
            nodes[captor.id] = captor
            edges.append(edge)
    return replace(
        plan,
        nodes=nodes,
        edges=tuple(edges),
        chains=derive_chains({node.id: node.parallelism for node in nodes.values()}, edges),
        checkpoint=replace(plan.checkpoint, url=state_url, rows=None, bytes=None, interval_ms=_INTERVAL_MS),
    )


def _captor(node: Node, tap: Outlet, capture_url: str) -> tuple[Node, Edge]:
    schema = node.output_schema if tap.output is None else node.side_schemas[tap.output]
    captor = Node(
        # No id in a pipeline has a colon in it.
        id=f"{tap}:test",
        operator=CAPTURE,
        config=encode_config(CaptureConfig(capture_url, str(tap))),
        parallelism=node.parallelism,
        input_schemas=(schema,),
        output_schema=schema,
        origin=case_origin(),
    )
    return captor, Edge(source=node.id, target=captor.id, input=0, routing=Routing.FORWARD, output=tap.output)
