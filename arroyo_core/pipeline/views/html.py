"""A plan as HTML for notebooks: its picture, and a table of nodes. All names are escaped: nobody vouches for them."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from arroyo_core.api.visible import visible
from arroyo_core.pipeline.guarantees import end_to_end
from arroyo_core.pipeline.plan import Node
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count, operator_details, output_label, routing_label
from arroyo_core.plugin import PluginSet

_CELL = "padding: 2px 10px; text-align: left; vertical-align: top; white-space: pre-wrap; max-width: 40em;"
_HEAD = f"{_CELL} border-bottom: 1px solid currentColor;"
_TABLE = "border-collapse: collapse; font-size: 90%; margin: 4px 0;"


def text(value: object) -> str:
    """Any text as HTML shows it, with nothing of it taken as HTML or hidden."""
    return html.escape(visible(str(value)))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table whose cells are texts."""
    top = "".join(f'<th style="{_HEAD}">{text(head)}</th>' for head in heads)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{text(cell)}</td>' for cell in row) + "</tr>" for row in rows)
    return f'<table style="{_TABLE}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def draw_svg(
    pipeline: PlannedPipeline,
    plugins: PluginSet,
    *,
    heading: str = "",
    notes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str | None:
    """The picture that a plugin draws; None where none does."""
    found = plugins.hooks.call_one(
        "arroyo_draw", str, what="drawing pipelines", pipeline=pipeline, heading=heading, notes=notes
    )
    return None if found is None else str(found)


def picture(svg: str) -> str:
    """An SVG that can neither style nor script the page that it is in."""
    data = base64.b64encode(svg.encode()).decode()
    style = "max-width: 100%; background: white;"
    return f'<img alt="the graph of the pipeline" style="{style}" src="data:image/svg+xml;base64,{data}">'


def render_html(pipeline: PlannedPipeline, plugins: PluginSet) -> str:
    """The picture, if a plugin draws it, and a table of the nodes."""
    plan = pipeline.plan
    facts = [
        count(len(plan.nodes), "node"),
        count(plan.wave_count, "wave"),
        f"checkpoints at {pipeline.shown_url}" if pipeline.shown_url else "no checkpoint url",
        f"{end_to_end(pipeline.guarantees).label}, end to end",
    ]
    svg = draw_svg(pipeline, plugins)
    nodes = [_node(node, pipeline) for node in plan.written_nodes()]
    parts = [
        f"<div><b>{text(pipeline.shown_name)}</b>: {text(', '.join(facts))}</div>",
        picture(svg) if svg else "",
        f"<details{'' if svg else ' open'}><summary>nodes</summary>",
        table(["node", "operator", "reads", "settings", "columns"], nodes),
        "</details>",
    ]
    return f"<div>{''.join(parts)}</div>"


def _node(node: Node, pipeline: PlannedPipeline) -> list[str]:
    edges = pipeline.plan.inputs_of(node.id)
    reads = [f"{output_label(edge)} ({routing_label(edge, pipeline)})" for edge in edges]
    details = [f"{label}: {each}" for label, each in operator_details(node.id, pipeline)]
    columns = [f"{pipeline.redact(field.name)}: {field.type}" for field in node.output_schema.schema]
    return [
        node.id,
        f"{node.operator}, {count(node.parallelism, 'subtask')}",
        "\n".join(reads),
        "\n".join(details),
        "" if node.id in pipeline.sinks else "\n".join(columns),
    ]
