"""The plan as a picture: a box for each node, a frame around those that run in one task, schemas on hover.

All text is in a monospaced font: its width is known without asking a font, so that it fits its box in any viewer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.plan import Chain, Edge, Plan, Routing
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count, operator_details, output_label, routing_label
from arroyo_devtools.drawing.annotations import NOTHING, Annotations
from arroyo_devtools.drawing.layout import Box, Layout, Link, Point, Route, lay_out

#: The widest of the monospaced fonts named in `_STYLE` takes this part of its size for a letter.
_LETTER = 0.61
_MAX_LETTERS = 44
_ID_SIZE, _TEXT_SIZE, _NOTE_SIZE, _TITLE_SIZE = 14, 12, 11, 18
_PADDING = 12.0
_MARGIN = 24.0
_LINE = 17.0
_CHAIN_TITLE = 22.0
_NODE_GAP = 26.0
_MIN_NODE_WIDTH = 190.0
_BAR_HEIGHT = 4.0
_TIMES = "\N{MULTIPLICATION SIGN}"

_STYLE = """\
text { font-family: 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, 'Courier New', monospace; fill: #1f2933; }
.title { font-size: 18px; font-weight: bold; }
.note { font-size: 11px; fill: #52606d; }
.id { font-size: 14px; font-weight: bold; }
.operator { font-size: 12px; fill: #3e4c59; }
.chain { fill: #f5f7fa; stroke: #cbd2d9; }
.node { fill: #ffffff; stroke: #7b8794; }
.source { fill: #e3f9e5; stroke: #3f9142; }
.sink { fill: #e6f1fc; stroke: #2b6cb0; }
.slowest { stroke: #de6b00; stroke-width: 2.5; }
.share { fill: #e4e7eb; }
.busy { fill: #829ab1; }
.slowest-busy { fill: #de6b00; }
.edge { fill: none; stroke: #7b8794; stroke-width: 1.4; }
.shuffle { stroke: #2b6cb0; stroke-width: 2.4; }
.rebalance { stroke: #2b6cb0; stroke-width: 2.4; stroke-dasharray: 7 4; }
.hover { fill: none; stroke: #ffffff; stroke-opacity: 0; stroke-width: 12; pointer-events: stroke; }
.label { font-size: 11px; fill: #243b53; text-anchor: middle; }
.label-back { fill: #ffffff; fill-opacity: 0.92; }"""


def render_svg(pipeline: PlannedPipeline, annotations: Annotations = NOTHING) -> str:
    """An SVG document without scripts, fonts or links of its own."""
    plan = pipeline.plan
    frames = [_frame(chain, pipeline, annotations) for chain in plan.chains]
    numbers = {node: number for number, chain in enumerate(plan.chains) for node in chain.nodes}
    edges = [edge for edge in plan.edges if numbers[edge.source] != numbers[edge.target]]
    labels = [_label(edge, pipeline) for edge in edges]
    layout = lay_out(
        [frame.box for frame in frames],
        [
            Link(source=numbers[edge.source], target=numbers[edge.target], label_width=_width(label, _NOTE_SIZE) + 8)
            for edge, label in zip(edges, labels, strict=True)
        ],
    )
    heading = _heading(pipeline, annotations)
    top = _MARGIN + 26 + _LINE * (len(heading) - 1) + 14
    title_width = max(_width(heading[0], _TITLE_SIZE), *(_width(line, _NOTE_SIZE) for line in heading[1:]))
    width = max(layout.width, title_width) + 2 * _MARGIN
    height = layout.height + top + _MARGIN
    # A narrow graph below a wide title stands in the middle.
    left = (width - layout.width) / 2
    parts = [
        *_head(width, height, pipeline),
        *_title(heading),
        f'<g transform="translate({_number(left)} {_number(top)})">',
        *_frames(frames, layout),
        *_edges(edges, labels, layout, frames, pipeline),
        *_nodes(frames, layout, pipeline, annotations),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A chain: its nodes from the top down."""

    chain: Chain
    title: str
    box: Box
    node_width: float
    heights: tuple[float, ...]
    lines: tuple[tuple[str, ...], ...]

    def node_corner(self, at: int, corner: Point) -> Point:
        y = corner.y + _CHAIN_TITLE + sum(self.heights[:at]) + at * _NODE_GAP
        return Point(corner.x + _PADDING, y)


def _frame(chain: Chain, pipeline: PlannedPipeline, annotations: Annotations) -> _Frame:
    plan = pipeline.plan
    title = f"chain {chain.id}, wave {chain.wave}"
    lines = tuple(tuple(map(_short, annotations.lines.get(node, ()))) for node in chain.nodes)
    widths = [_width(title, _NOTE_SIZE) * 2 + 40, _MIN_NODE_WIDTH]
    heights = []
    for node, notes in zip(chain.nodes, lines, strict=True):
        widths.append(_width(_short(node), _ID_SIZE))
        widths.append(_width(_operator_line(node, plan), _TEXT_SIZE))
        widths += [_width(note, _NOTE_SIZE) for note in notes]
        bar = _BAR_HEIGHT + 6 if node in annotations.shares else 0.0
        heights.append(2 * _PADDING + _LINE * (2 + len(notes)) - 4 + bar)
    node_width = max(widths) + 2 * _PADDING
    height = _CHAIN_TITLE + sum(heights) + _NODE_GAP * (len(heights) - 1) + _PADDING
    width = node_width + 2 * _PADDING
    # Links enter beside the title of the chain, not through it.
    reach = width / 2 - _PADDING - _width(title, _NOTE_SIZE) - 8
    return _Frame(
        chain=chain,
        title=title,
        box=Box(width=width, height=height, reach=max(0.0, reach)),
        node_width=node_width,
        heights=tuple(heights),
        lines=lines,
    )


def _operator_line(node: str, plan: Plan) -> str:
    return f"{_short(plan.nodes[node].operator)} {_TIMES}{plan.nodes[node].parallelism}"


def _label(edge: Edge, pipeline: PlannedPipeline) -> str:
    label = routing_label(edge, pipeline)
    if edge.output is not None:
        label = f".{edge.output}, {label}"
    if len(pipeline.plan.inputs_of(edge.target)) > 1:
        label = f"input {edge.input}: {label}"
    return _short(label)


def _heading(pipeline: PlannedPipeline, annotations: Annotations) -> list[str]:
    plan = pipeline.plan
    sizes = [count(len(plan.nodes), "node"), count(len(plan.chains), "chain"), count(plan.wave_count, "wave")]
    return [pipeline.shown_name, ", ".join(sizes), *([annotations.heading] if annotations.heading else [])]


def _head(width: float, height: float, pipeline: PlannedPipeline) -> list[str]:
    size = f'width="{_number(width)}" height="{_number(height)}" viewBox="0 0 {_number(width)} {_number(height)}"'
    label = quoteattr(_clean(f"The pipeline {pipeline.shown_name}"))
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={label}>',
        f"<style>\n{_STYLE}\n</style>",
        "<defs>",
        *(_arrow(name, colour) for name, colour in (("arrow", "#7b8794"), ("exchange", "#2b6cb0"))),
        "</defs>",
        f'<rect width="{_number(width)}" height="{_number(height)}" fill="#ffffff"/>',
    ]


def _arrow(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


def _title(heading: Sequence[str]) -> list[str]:
    title = _text("title", _MARGIN, _MARGIN + 14, heading[0])
    return [title, *(_text("note", _MARGIN, _MARGIN + 18 + _LINE * at, line) for at, line in enumerate(heading) if at)]


def _frames(frames: Sequence[_Frame], layout: Layout) -> list[str]:
    parts = []
    for frame, corner in zip(frames, layout.boxes, strict=True):
        parts.append(_rect("chain", corner, frame.box.width, frame.box.height, radius=8))
        parts.append(_text("note", corner.x + _PADDING, corner.y + 15, frame.title))
    return parts


def _edges(
    edges: Sequence[Edge],
    labels: Sequence[str],
    layout: Layout,
    frames: Sequence[_Frame],
    pipeline: PlannedPipeline,
) -> list[str]:
    parts = []
    for frame, corner in zip(frames, layout.boxes, strict=True):
        for at, edge in enumerate(_inner_edges(frame.chain, pipeline.plan)):
            start, end = frame.node_corner(at, corner), frame.node_corner(at + 1, corner)
            x = start.x + frame.node_width / 2
            way = f"M{_place(x, start.y + frame.heights[at])}L{_place(x, end.y)}"
            parts += _edge(edge, way, pipeline)
    for edge, route in zip(edges, layout.routes, strict=True):
        parts += _edge(edge, _way(route), pipeline)
    for label, route in zip(labels, layout.routes, strict=True):
        if route.label is not None:
            width = _width(label, _NOTE_SIZE) + 8
            corner = Point(route.label.x - width / 2, route.label.y - 8)
            parts.append(_rect("label-back", corner, width, 16, radius=3))
            parts.append(_text("label", route.label.x, route.label.y + 4, label))
    return parts


def _inner_edges(chain: Chain, plan: Plan) -> list[Edge]:
    return [plan.inputs_of(node)[0] for node in chain.nodes[1:]]


def _way(route: Route) -> str:
    """From the last node of a chain, through the frames, to the first node of another."""
    first, last = route.points[0], route.points[-1]
    way = [f"M{_place(first.x, first.y - _PADDING)}"]
    for at, (start, end) in enumerate(pairwise(route.points)):
        if at % 2 == 0:
            way.append(f"L{_place(end.x, end.y)}")
        else:
            middle = (start.y + end.y) / 2
            way.append(f"C{_place(start.x, middle)} {_place(end.x, middle)} {_place(end.x, end.y)}")
    return "".join([*way, f"L{_place(last.x, last.y + _CHAIN_TITLE)}"])


def _edge(edge: Edge, way: str, pipeline: PlannedPipeline) -> list[str]:
    is_forward = edge.routing is Routing.FORWARD
    kind = "edge" if is_forward else f"edge {edge.routing.value}"
    marker = "arrow" if is_forward else "exchange"
    source = pipeline.plan.nodes[edge.source]
    schema = source.output_schema if edge.output is None else source.side_schemas[edge.output]
    hint = [f"{output_label(edge)} to {edge.target}: {routing_label(edge, pipeline)}", *_columns(schema, pipeline)]
    return [
        f"<g>{_hint(hint)}",
        f'<path class="{kind}" d="{way}" marker-end="url(#{marker})"/>',
        f'<path class="hover" d="{way}"/></g>',
    ]


def _nodes(frames: Sequence[_Frame], layout: Layout, pipeline: PlannedPipeline, annotations: Annotations) -> list[str]:
    parts = []
    for frame, corner in zip(frames, layout.boxes, strict=True):
        for at, node in enumerate(frame.chain.nodes):
            parts += _node(node, frame, at, frame.node_corner(at, corner), pipeline, annotations)
    return parts


def _node(
    node: str, frame: _Frame, at: int, corner: Point, pipeline: PlannedPipeline, annotations: Annotations
) -> list[str]:
    plan = pipeline.plan
    kind = "sink" if node in pipeline.sinks else "node" if plan.inputs_of(node) else "source"
    is_slowest = node == annotations.slowest
    x, y = corner.x + _PADDING, corner.y + _PADDING + 11
    parts = [
        f"<g>{_hint(_node_hint(node, pipeline))}",
        _rect(f"{kind} slowest" if is_slowest else kind, corner, frame.node_width, frame.heights[at], radius=5),
        _text("id", x, y, _short(node)),
        _text("operator", x, y + _LINE, _operator_line(node, plan)),
        *(_text("note", x, y + _LINE * (row + 2), note) for row, note in enumerate(frame.lines[at])),
    ]
    if node in annotations.shares:
        share = min(1.0, max(0.0, annotations.shares[node]))
        place = Point(x, corner.y + frame.heights[at] - _BAR_HEIGHT - 8)
        width = frame.node_width - 2 * _PADDING
        parts.append(_rect("share", place, width, _BAR_HEIGHT, radius=2))
        if share > 0:
            parts.append(_rect("slowest-busy" if is_slowest else "busy", place, width * share, _BAR_HEIGHT, radius=2))
    return [*parts, "</g>"]


def _node_hint(node: str, pipeline: PlannedPipeline) -> list[str]:
    found = pipeline.plan.nodes[node]
    lines = [f"{node}: {found.operator}, {count(found.parallelism, 'subtask')} ({str(found.origin).strip()})"]
    lines += [f"{label}: {text}" for label, text in operator_details(node, pipeline)]
    if node not in pipeline.sinks:
        lines += ["", "output:", *_columns(found.output_schema, pipeline)]
    return lines


def _columns(schema: ArroyoSchema, pipeline: PlannedPipeline) -> list[str]:
    return [
        f"  {pipeline.redact(field.name)}: {field.type}"
        + ("" if field.nullable else " not null")
        + (" (event time)" if field.name == schema.timestamp_column else "")
        for field in schema.schema
    ]


def _hint(lines: Sequence[str]) -> str:
    return f"<title>{escape(_clean(chr(10).join(lines)))}</title>"


def _rect(kind: str, corner: Point, width: float, height: float, *, radius: float) -> str:
    place = f'x="{_number(corner.x)}" y="{_number(corner.y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<rect class="{kind}" {place} rx="{_number(radius)}"/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}">{escape(_clean(text))}</text>'


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…"


def _width(text: str, size: float) -> float:
    letters = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * size * _LETTER


def _clean(text: str) -> str:
    """Without what XML does not allow."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _place(x: float, y: float) -> str:
    return f"{_number(x)} {_number(y)}"


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
