"""The plan as a DOT graph for Graphviz: a cluster for each wave, one in it for each chain."""

from __future__ import annotations

from arroyo_core.pipeline.plan import Chain, Edge, Routing
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count, operator_details, routing_label


def render_dot(pipeline: PlannedPipeline) -> str:
    plan = pipeline.plan
    lines = [f"digraph {_quoted(pipeline.shown_name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for wave in range(plan.wave_count):
        lines += [f"  subgraph cluster_wave_{wave} {{", f'    label="wave {wave}";']
        for chain in plan.wave_chains(wave):
            lines += _chain(chain, pipeline)
        lines.append("  }")
    lines += [f"  {_edge(edge, pipeline)}" for edge in plan.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _chain(chain: Chain, pipeline: PlannedPipeline) -> list[str]:
    title = f"chain {chain.id}, {count(chain.parallelism, 'subtask')}"
    lines = [f"    subgraph cluster_chain_{chain.id} {{", f"      label={_quoted(title)};"]
    for node in chain.nodes:
        details = [f"{label}: {text}" for label, text in operator_details(node, pipeline)]
        text = "\n".join([node, pipeline.plan.nodes[node].operator, *details])
        lines.append(f"      {_quoted(node)} [label={_quoted(text)}];")
    return [*lines, "    }"]


def _edge(edge: Edge, pipeline: PlannedPipeline) -> str:
    arrow = f"{_quoted(edge.source)} -> {_quoted(edge.target)}"
    if edge.routing is Routing.FORWARD:
        return f"{arrow};"
    return f"{arrow} [label={_quoted(routing_label(edge, pipeline))}, penwidth=2];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
