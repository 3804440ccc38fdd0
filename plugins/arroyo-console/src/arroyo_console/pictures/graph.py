"""A pipeline as boxes and arrows, with what each node did; links lead to the nodes where the page has more of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from arroyo_devtools.drawing.layout import Box, Link, Route, lay_out

from arroyo_console.pictures.markup import letters_of, number, short, text

_LETTER = 7.4
_NOTE_LETTER = 6.8
_MAX_LETTERS = 42
_PADDING = 12.0
_LINE = 17.0
_BAR = 5.0
_MIN_WIDTH = 168.0
_MARGIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturedNode:
    """A box: its texts as they stand in it, and what makes it stand out."""

    id: str
    operator: str
    inputs: Sequence[str] = ()
    parallelism: int = 1
    is_sink: bool = False
    notes: Sequence[str] = ()
    #: From 0 to 1; None draws no bar.
    busy_share: float | None = None
    is_slowest: bool = False
    #: It waits for the node after it.
    is_held_up: bool = False

    @property
    def kind(self) -> str:
        return "sink" if self.is_sink else "inner" if self.inputs else "source"

    def marks(self) -> list[str]:
        """In words what its colours say."""
        marks = ["slowest"] if self.is_slowest else []
        return [*marks, *(["back-pressure"] if self.is_held_up else [])]


def render_graph(
    nodes: Sequence[PicturedNode], *, label: str, link: Callable[[str], str] | None = None, prefix: str = "g"
) -> str:
    """An SVG element; `prefix` keeps its ids apart from those of other pictures on the page.

    Inputs that are not among the nodes are left out, and what goes in a circle is drawn without the arrows back.
    """
    ordered = _in_order(nodes)
    places = {node.id: at for at, node in enumerate(ordered)}
    boxes = [_box(node) for node in ordered]
    links = [
        Link(source=places[source], target=places[node.id])
        for node in ordered
        for source in node.inputs
        if source in places and places[source] < places[node.id]
    ]
    layout = lay_out(boxes, links)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {number(width)} {number(height)}" role="group" '
        f'aria-label="{text(label)}">',
        f'<defs><marker id="{prefix}-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="arrow" d="M0 0L10 5L0 10z"/></marker></defs>',
    ]
    parts += [f'<path class="edge" d="{_way(route)}" marker-end="url(#{prefix}-arrow)"/>' for route in layout.routes]
    for node, box, corner in zip(ordered, boxes, layout.boxes, strict=True):
        parts.append(_node(node, box, corner.x, corner.y, link))
    return "".join([*parts, "</svg>"])


def _in_order(nodes: Sequence[PicturedNode]) -> list[PicturedNode]:
    by_id: Mapping[str, PicturedNode] = {node.id: node for node in nodes}
    sorter = TopologicalSorter({node.id: [name for name in node.inputs if name in by_id] for node in nodes})
    try:
        return [by_id[name] for name in sorter.static_order()]
    except CycleError:
        return list(by_id.values())


def _box(node: PicturedNode) -> Box:
    widths = [
        _LETTER * 1.1 * letters_of(short(node.id, _MAX_LETTERS)),
        _LETTER * letters_of(_operator_line(node)),
        *(_NOTE_LETTER * letters_of(short(note, _MAX_LETTERS)) for note in _notes(node)),
    ]
    width = max(_MIN_WIDTH, *widths) + 2 * _PADDING
    bar = _BAR + 6 if node.busy_share is not None else 0.0
    return Box(width=width, height=2 * _PADDING + _LINE * (2 + len(_notes(node))) - 4 + bar)


def _operator_line(node: PicturedNode) -> str:
    return f"{short(node.operator, _MAX_LETTERS)} \N{MULTIPLICATION SIGN}{node.parallelism}"


def _notes(node: PicturedNode) -> list[str]:
    marks = node.marks()
    return [*node.notes, *([", ".join(marks)] if marks else [])]


def _node(node: PicturedNode, box: Box, x: float, y: float, link: Callable[[str], str] | None) -> str:
    classes = ["node", node.kind, *(["slowest"] if node.is_slowest else []), *(["held"] if node.is_held_up else [])]
    said = ", ".join([node.id, node.operator, *_notes(node)])
    left, line = x + _PADDING, y + _PADDING + 11
    notes = _notes(node)
    marked = bool(node.marks())
    parts = [
        f'<rect class="{" ".join(classes)}" x="{number(x)}" y="{number(y)}" width="{number(box.width)}" '
        f'height="{number(box.height)}" rx="6"/>',
        _text("id", left, line, short(node.id, _MAX_LETTERS)),
        _text("operator", left, line + _LINE, _operator_line(node)),
    ]
    for at, note in enumerate(notes):
        kind = "note mark" if marked and at == len(notes) - 1 else "note"
        parts.append(_text(kind, left, line + _LINE * (at + 2), short(note, _MAX_LETTERS)))
    if node.busy_share is not None:
        share = min(1.0, max(0.0, node.busy_share))
        room = box.width - 2 * _PADDING
        bar = f'x="{number(left)}" y="{number(y + box.height - _BAR - 8)}" height="{_BAR:g}" rx="2"'
        parts.append(f'<rect class="share" {bar} width="{number(room)}"/>')
        if share > 0:
            kind = "busy slowest" if node.is_slowest else "busy"
            parts.append(f'<rect class="{kind}" {bar} width="{number(room * share)}"/>')
    inner = "".join(parts)
    if link is None:
        return f'<g role="img" aria-label="{text(said)}"><title>{text(said)}</title>{inner}</g>'
    return f'<a href="{text(link(node.id))}" aria-label="{text(said)}"><title>{text(said)}</title>{inner}</a>'


def _text(kind: str, x: float, y: float, value: str) -> str:
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}">{text(value)}</text>'


def _way(route: Route) -> str:
    way = [f"M{number(route.points[0].x)} {number(route.points[0].y)}"]
    for at, (start, end) in enumerate(pairwise(route.points)):
        if at % 2 == 0:
            way.append(f"L{number(end.x)} {number(end.y)}")
        else:
            middle = number((start.y + end.y) / 2)
            way.append(f"C{number(start.x)} {middle} {number(end.x)} {middle} {number(end.x)} {number(end.y)}")
    return "".join(way)
