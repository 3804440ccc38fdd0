"""Pure questions about who feeds whom: order and cycles."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence


def topological_order(inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """Nodes after all their inputs; among those that are ready, in the order of the mapping.

    Nodes of a cycle, and what depends on one, are left out. Inputs must be keys of the mapping.
    """
    rank = {node: place for place, node in enumerate(inputs)}
    missing = {node: len(set(sources)) for node, sources in inputs.items()}
    readers = consumers(inputs)
    names = list(inputs)
    ready = [rank[node] for node, count in missing.items() if count == 0]
    order = []
    while ready:
        node = names[heapq.heappop(ready)]
        order.append(node)
        for reader in readers[node]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, rank[reader])
    return order


def consumers(inputs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """For each node those that read it, each once, in the order of the mapping."""
    readers: dict[str, list[str]] = {node: [] for node in inputs}
    for node, sources in inputs.items():
        for source in dict.fromkeys(sources):
            readers[source].append(node)
    return readers


def find_cycles(inputs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """One cycle for each knot of nodes that feed one another, along the flow of rows.

    Each begins with the knot's first node in the order of the mapping, and no node is in two.
    """
    left = set(inputs) - set(topological_order(inputs))
    cycles = []
    for node in inputs:
        if node in left:
            cycle = _cycle_through(node, inputs, left)
            if cycle:
                cycles.append(cycle)
                left -= set(cycle)
    return cycles


def _cycle_through(start: str, inputs: Mapping[str, Sequence[str]], among: set[str]) -> list[str] | None:
    """The shortest cycle from `start` back to it, by breadth-first search against the flow."""
    reached: dict[str, str] = {}
    queue = [start]
    for node in queue:
        for source in inputs[node]:
            if source == start:
                return _path(node, reached, start)
            if source in among and source not in reached:
                reached[source] = node
                queue.append(source)
    return None


def _path(node: str, reached: Mapping[str, str], start: str) -> list[str]:
    # `start` feeds `node`, which feeds reached[node], and so on back to `start`.
    path = [start]
    while node != start:
        path.append(node)
        node = reached[node]
    return path
