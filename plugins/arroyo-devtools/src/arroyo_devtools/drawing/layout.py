"""Pure: where boxes, links and the labels of links go in a picture. No link crosses a box, no label covers another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arroyo_devtools.drawing.layers import Layering, derive_layers

_BOX_GAP = 36.0
_BEND_WIDTH = 16.0
_LAYER_GAP = 44.0
LABEL_HEIGHT = 18.0
_LABEL_GAP = 10.0
_PORT_GAP = 30.0
_ROUNDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    width: float
    height: float
    #: How far from the middle a link may enter at the top, or leave at the bottom.
    reach: float = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    source: int
    target: int
    #: 0 for none.
    label_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Route:
    """From the bottom of a box to the top of another.

    Down between an even number of points and the next one, in a curve between an odd one and the next: the
    curve is a cubic Bezier with upright ends (see `curve_point`).
    """

    points: tuple[Point, ...]
    #: The middle of the label.
    label: Point | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The top left corner of each box, and the way of each link."""

    boxes: tuple[Point, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def lay_out(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes, which come in topological order, in layers from the top down."""
    layering = derive_layers(len(boxes), [(link.source, link.target) for link in links])
    middles = _middles(layering, boxes)
    ends = _ports(layering, boxes, links, middles)
    tops, labels = _rows(layering, boxes, links, middles, ends)
    routes = [
        Route(tuple(_points(path, layering, boxes, middles, end, tops)), label)
        for path, end, label in zip(layering.paths, ends, labels, strict=True)
    ]
    corners = [Point(middles[box] - boxes[box].width / 2, tops[_layer_of(layering, box)]) for box in range(len(boxes))]
    return _moved(corners, routes, boxes, links)


def curve_point(start: Point, end: Point, share: float) -> Point:
    """A point of the curve between two points, at `share` of the way down."""
    # With the control points at half the height, y is close to linear; bisection finds the rest.
    low, high = 0.0, 1.0
    for _ in range(30):
        at = (low + high) / 2
        low, high = (at, high) if _bezier(0.0, 0.5, 0.5, 1.0, at) < share else (low, at)
    return Point(_bezier(start.x, start.x, end.x, end.x, low), start.y + (end.y - start.y) * share)


def _bezier(a: float, b: float, c: float, d: float, at: float) -> float:
    rest = 1 - at
    return a * rest**3 + 3 * b * rest**2 * at + 3 * c * rest * at**2 + d * at**3


def _layer_of(layering: Layering, vertex: int) -> int:
    return next(number for number, layer in enumerate(layering.layers) if vertex in layer)


def _middles(layering: Layering, boxes: Sequence[Box]) -> dict[int, float]:
    """The middle of each vertex from the left: near those it is linked with, and not over its neighbours."""
    widths = {vertex: _width(vertex, boxes) for layer in layering.layers for vertex in layer}
    above, below = layering.neighbours()
    middles: dict[int, float] = {}
    for layer in layering.layers:
        middles.update(zip(layer, _apart(layer, [0.0] * len(layer), [1.0] * len(layer), widths), strict=True))
    down = range(len(layering.layers))
    for _ in range(_ROUNDS):
        for numbers, linked in ((down, above), (reversed(down), below)):
            for number in numbers:
                layer = layering.layers[number]
                wanted = [_mean([middles[other] for other in linked[v]], middles[v]) for v in layer]
                # A bend that is not straight is uglier than a box that is off the middle.
                weights = [8.0 if v >= len(boxes) else 1.0 for v in layer]
                middles.update(zip(layer, _apart(layer, wanted, weights, widths), strict=True))
    return middles


def _width(vertex: int, boxes: Sequence[Box]) -> float:
    return boxes[vertex].width if vertex < len(boxes) else _BEND_WIDTH


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _apart(
    layer: Sequence[int], wanted: Sequence[float], weights: Sequence[float], widths: Mapping[int, float]
) -> list[float]:
    """The places nearest to the wanted ones, by least squares, that keep the order and do not overlap.

    Taking away what the vertices to the left need at least leaves a regression on a rising sequence.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + _BOX_GAP)
    blocks: list[tuple[float, float, int]] = []
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        block = (want - offset, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            value, other, size = blocks.pop()
            total = other + block[1]
            block = ((value * other + block[0] * block[1]) / total, total, size + block[2])
        blocks.append(block)
    values = [value for value, _, size in blocks for _ in range(size)]
    return [value + offset for value, offset in zip(values, offsets, strict=False)]


def _ports(
    layering: Layering, boxes: Sequence[Box], links: Sequence[Link], middles: Mapping[int, float]
) -> list[tuple[float, float]]:
    """Where each link leaves its source and enters its target: side by side, in the order of where they come from."""
    leaves, enters = [0.0] * len(links), [0.0] * len(links)
    for box in range(len(boxes)):
        outgoing = [number for number, link in enumerate(links) if link.source == box]
        incoming = [number for number, link in enumerate(links) if link.target == box]
        outgoing.sort(key=lambda number: middles[layering.paths[number][1]])
        incoming.sort(key=lambda number: middles[layering.paths[number][-2]])
        for numbers, places in ((outgoing, leaves), (incoming, enters)):
            gap = min(_PORT_GAP, 2 * boxes[box].reach / max(1, len(numbers) - 1))
            for at, number in enumerate(numbers):
                places[number] = middles[box] + gap * (at - (len(numbers) - 1) / 2)
    return list(zip(leaves, enters, strict=True))


def _rows(
    layering: Layering,
    boxes: Sequence[Box],
    links: Sequence[Link],
    middles: Mapping[int, float],
    ends: Sequence[tuple[float, float]],
) -> tuple[list[float], list[Point | None]]:
    """The top of each layer, and the label of each link, which is above the layer of its target."""
    tops = []
    placed: list[Point | None] = [None] * len(links)
    y = 0.0
    for number, layer in enumerate(layering.layers):
        if number:
            into = [at for at, link in enumerate(links) if link.target in layer]
            curves = {at: _last_curve(layering.paths[at], middles, ends[at]) for at in into if links[at].label_width}
            gap, found = _place_labels(curves, links)
            for at, (x, below) in found.items():
                placed[at] = Point(x, y + below)
            y += gap
        tops.append(y)
        y += max((boxes[vertex].height for vertex in layer if vertex < len(boxes)), default=0.0)
    return tops, placed


def _last_curve(path: Sequence[int], middles: Mapping[int, float], end: tuple[float, float]) -> tuple[float, float]:
    return (end[0] if len(path) == 2 else middles[path[-2]], end[1])


def _place_labels(
    curves: Mapping[int, tuple[float, float]], links: Sequence[Link]
) -> tuple[float, dict[int, tuple[float, float]]]:
    """How high the gap must be, and for each link the middle of its label: x, and y below the top of the gap."""
    order = sorted(curves, key=lambda at: sum(curves[at]))
    for rows in range(1, len(order) + 1):
        gap = _LAYER_GAP + rows * LABEL_HEIGHT
        found = _fit(order, curves, links, rows, gap)
        if found is not None:
            return gap, found
    return _LAYER_GAP, {}


def _fit(
    order: Sequence[int], curves: Mapping[int, tuple[float, float]], links: Sequence[Link], rows: int, gap: float
) -> dict[int, tuple[float, float]] | None:
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    found = {}
    for at in order:
        half = (links[at].label_width + _LABEL_GAP) / 2
        for row in range(rows):
            y = _LAYER_GAP / 2 + (row + 0.5) * LABEL_HEIGHT
            x = curve_point(Point(curves[at][0], 0.0), Point(curves[at][1], gap), y / gap).x
            if all(x + half <= left or x - half >= right for left, right in taken[row]):
                taken[row].append((x - half, x + half))
                found[at] = (x, y)
                break
        else:
            return None
    return found


def _points(
    path: Sequence[int],
    layering: Layering,
    boxes: Sequence[Box],
    middles: Mapping[int, float],
    end: tuple[float, float],
    tops: Sequence[float],
) -> list[Point]:
    first = _layer_of(layering, path[0])
    points = []
    for step, vertex in enumerate(path[:-1]):
        layer = first + step
        x = end[0] if step == 0 else middles[vertex]
        heights = [boxes[other].height for other in layering.layers[layer] if other < len(boxes)]
        start = tops[layer] + (boxes[vertex].height if step == 0 else 0.0)
        points += [Point(x, start), Point(x, tops[layer] + max(heights, default=0.0))]
    return [*points, Point(end[1], tops[first + len(path) - 1])]


def _moved(corners: Sequence[Point], routes: Sequence[Route], boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Everything to the right of and below 0, 0."""
    lefts = [corner.x for corner in corners]
    rights = [corner.x + box.width for corner, box in zip(corners, boxes, strict=True)]
    for route, link in zip(routes, links, strict=True):
        lefts += [point.x for point in route.points]
        rights += [point.x for point in route.points]
        if route.label is not None:
            lefts.append(route.label.x - link.label_width / 2)
            rights.append(route.label.x + link.label_width / 2)
    left = min(lefts, default=0.0)
    moved = [
        Route(
            tuple(Point(point.x - left, point.y) for point in route.points),
            Point(route.label.x - left, route.label.y) if route.label else None,
        )
        for route in routes
    ]
    bottom = max((corner.y + box.height for corner, box in zip(corners, boxes, strict=True)), default=0.0)
    places = tuple(Point(corner.x - left, corner.y) for corner in corners)
    return Layout(places, tuple(moved), max(rights, default=0.0) - left, bottom)
