"""Pure: a graph without cycles in layers, so that edges lead down and few of them cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: How often the order of the layers is improved from above and from below.
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Layering:
    """Boxes and bends by layer, from the left to the right.

    A link that passes a layer has a bend there, so that it has a place of its own between the boxes. Vertices are
    numbered, boxes first.
    """

    layers: tuple[tuple[int, ...], ...]
    #: For each link the vertices that it leads through: a box, bends, a box.
    paths: tuple[tuple[int, ...], ...]

    def neighbours(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The vertices above and below each vertex, once for each link."""
        above: dict[int, list[int]] = {vertex: [] for layer in self.layers for vertex in layer}
        below: dict[int, list[int]] = {vertex: [] for vertex in above}
        for path in self.paths:
            for upper, lower in pairwise(path):
                above[lower].append(upper)
                below[upper].append(lower)
        return above, below


def derive_layers(count: int, links: Sequence[tuple[int, int]]) -> Layering:
    """Layers for boxes 0 to `count - 1`, which come in topological order."""
    depth = _depths(count, links)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for box in range(count):
        layers[depth[box]].append(box)
    paths = []
    next_vertex = count
    for source, target in links:
        bends = []
        for layer in range(depth[source] + 1, depth[target]):
            bends.append(next_vertex)
            layers[layer].append(next_vertex)
            next_vertex += 1
        paths.append((source, *bends, target))
    start = Layering(tuple(tuple(layer) for layer in layers), tuple(paths))
    return _with_few_crossings(start)


def _depths(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    depth = [0] * count
    # Boxes are in topological order, so that those above are known.
    for box in range(count):
        depth[box] = max((depth[source] + 1 for source, target in links if target == box), default=0)
    fed = {target for _, target in links}
    for box in range(count):
        readers = [depth[target] for source, target in links if source == box]
        if box not in fed and readers:
            # A source stands right above whoever reads it first.
            depth[box] = min(readers) - 1
    return depth


def _with_few_crossings(layering: Layering) -> Layering:
    above, below = layering.neighbours()
    layers = [list(layer) for layer in layering.layers]
    best, fewest = layering.layers, _crossings(layers, below)
    for sweep in range(_SWEEPS):
        is_downwards = sweep % 2 == 0
        numbers = range(1, len(layers)) if is_downwards else range(len(layers) - 2, -1, -1)
        for number in numbers:
            fixed = layers[number - 1] if is_downwards else layers[number + 1]
            _sort_layer(layers[number], fixed, above if is_downwards else below)
            _swap_neighbours(layers[number], fixed, above if is_downwards else below)
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = tuple(tuple(layer) for layer in layers), crossings
    return Layering(best, layering.paths)


def _sort_layer(layer: list[int], fixed: Sequence[int], linked: Mapping[int, Sequence[int]]) -> None:
    """By the mean place of those that a vertex is linked with; a vertex without any stays about where it was."""
    place = {vertex: number for number, vertex in enumerate(fixed)}
    own = {vertex: number for number, vertex in enumerate(layer)}

    def key(vertex: int) -> tuple[float, int]:
        places = [place[other] for other in linked[vertex]]
        return (sum(places) / len(places) if places else float(own[vertex]), own[vertex])

    layer.sort(key=key)


def _swap_neighbours(layer: list[int], fixed: Sequence[int], linked: Mapping[int, Sequence[int]]) -> None:
    place = {vertex: number for number, vertex in enumerate(fixed)}
    for at in range(len(layer) - 1):
        left, right = layer[at], layer[at + 1]
        if _inversions(right, left, place, linked) < _inversions(left, right, place, linked):
            layer[at], layer[at + 1] = right, left


def _inversions(left: int, right: int, place: Mapping[int, int], linked: Mapping[int, Sequence[int]]) -> int:
    return sum(place[a] > place[b] for a in linked[left] for b in linked[right])


def _crossings(layers: Sequence[Sequence[int]], below: Mapping[int, Sequence[int]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        place = {vertex: number for number, vertex in enumerate(lower)}
        for at, left in enumerate(upper):
            total += sum(_inversions(left, right, place, below) for right in upper[at + 1 :])
    return total
