"""Pure: which nodes share a task (chains), and which chains share a stage (waves)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arroyo_core.pipeline.plan import Chain, Edge, Routing


def derive_chains(parallelism: Mapping[str, int], edges: Sequence[Edge]) -> tuple[Chain, ...]:
    """Fuse a node with its successor where a forward edge is the only way out and the only way in.

    `parallelism` lists the nodes in topological order; the chains come in the order of their heads.
    """
    successors = _fusions(parallelism, edges)
    fused = set(successors.values())
    paths = [_follow(node, successors) for node in parallelism if node not in fused]
    chain_of = {node: number for number, path in enumerate(paths) for node in path}
    waves: list[int] = []
    for path in paths:
        # A chain's inputs come before it, so their waves are known.
        arrivals = [_arrival(edge, waves[chain_of[edge.source]]) for edge in edges if edge.target == path[0]]
        waves.append(max(arrivals, default=0))
    return tuple(
        Chain(id=number, nodes=path, parallelism=parallelism[path[0]], wave=waves[number])
        for number, path in enumerate(paths)
    )


def _fusions(nodes: Mapping[str, int], edges: Sequence[Edge]) -> dict[str, str]:
    outgoing: dict[str, list[Edge]] = {node: [] for node in nodes}
    incoming: dict[str, list[Edge]] = {node: [] for node in nodes}
    for edge in edges:
        outgoing[edge.source].append(edge)
        incoming[edge.target].append(edge)
    return {
        node: out[0].target
        for node, out in outgoing.items()
        if len(out) == 1 and out[0].routing is Routing.FORWARD and len(incoming[out[0].target]) == 1
    }


def _follow(node: str, successors: Mapping[str, str]) -> tuple[str, ...]:
    path = [node]
    while path[-1] in successors:
        path.append(successors[path[-1]])
    return tuple(path)


def _arrival(edge: Edge, source_wave: int) -> int:
    return source_wave + (0 if edge.routing is Routing.FORWARD else 1)
