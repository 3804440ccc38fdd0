"""The plan as a drawing of letters: chains from the top down, with what is known of each node beside it."""

from __future__ import annotations

from arroyo_core.pipeline.plan import Chain, Routing
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count, output_label, routing_label
from arroyo_devtools.drawing.annotations import NOTHING, Annotations


def render_outline(pipeline: PlannedPipeline, annotations: Annotations = NOTHING) -> str:
    plan = pipeline.plan
    sizes = [count(len(plan.nodes), "node"), count(len(plan.chains), "chain"), count(plan.wave_count, "wave")]
    blocks = ["\n".join([f"{pipeline.shown_name}: {', '.join(sizes)}", *filter(None, [annotations.heading])])]
    blocks += ["\n".join(_chain(chain, pipeline, annotations)) for chain in plan.chains]
    return "\n\n".join(blocks) + "\n"


def _chain(chain: Chain, pipeline: PlannedPipeline, annotations: Annotations) -> list[str]:
    plan = pipeline.plan
    lines = [f"chain {chain.id}, wave {chain.wave}, {count(chain.parallelism, 'subtask')}"]
    for edge in plan.inputs_of(chain.head):
        arrow = "-->" if edge.routing is Routing.FORWARD else "==>"
        lines.append(f"  {output_label(edge)} {arrow} {routing_label(edge, pipeline)} {arrow}")
    rows = []
    for node in chain.nodes:
        notes = list(annotations.lines.get(node, ()))
        if node == annotations.slowest:
            notes.append("(slowest)")
        rows.append((node, plan.nodes[node].operator, "  ".join(notes)))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines += [f"  | {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip() for row in rows]
    return lines
