"""The plan as a Mermaid flowchart: a box for each wave, a box in it for each chain."""

from __future__ import annotations

from arroyo_core.pipeline.plan import Chain, Edge, Routing
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.labels import count, operator_details, routing_label
from arroyo_devtools.drawing.annotations import NOTHING, Annotations


def render_mermaid(pipeline: PlannedPipeline, annotations: Annotations = NOTHING) -> str:
    plan = pipeline.plan
    # Numbers instead of ids: `end` and other words are reserved in Mermaid.
    names = {node: f"n{number}" for number, node in enumerate(plan.nodes)}
    lines = ["flowchart LR"]
    for wave in range(plan.wave_count):
        lines.append(f'  subgraph w{wave}["wave {wave}"]')
        for chain in plan.wave_chains(wave):
            lines += _chain(chain, names, pipeline, annotations)
        lines.append("  end")
    lines += [f"  {_edge(edge, names, pipeline)}" for edge in plan.edges]
    if annotations.slowest in names:
        lines.append(f"  style {names[annotations.slowest]} stroke:#de6b00,stroke-width:3px")
    return "\n".join(lines) + "\n"


def _chain(chain: Chain, names: dict[str, str], pipeline: PlannedPipeline, annotations: Annotations) -> list[str]:
    lines = [f'    subgraph c{chain.id}["chain {chain.id}, {count(chain.parallelism, "subtask")}"]']
    for node in chain.nodes:
        details = [f"{label}: {text}" for label, text in operator_details(node, pipeline)]
        notes = annotations.lines.get(node, ())
        text = "<br/>".join(_escaped(part) for part in [node, pipeline.plan.nodes[node].operator, *details, *notes])
        lines.append(f'      {names[node]}["{text}"]')
    return [*lines, "    end"]


def _edge(edge: Edge, names: dict[str, str], pipeline: PlannedPipeline) -> str:
    source, target = names[edge.source], names[edge.target]
    if edge.routing is Routing.FORWARD:
        return f"{source} --> {target}"
    return f'{source} == "{_escaped(routing_label(edge, pipeline))}" ==> {target}'


def _escaped(text: str) -> str:
    """Mermaid knows no backslash: a special character is written by its code."""
    return "".join(f"#{ord(letter)};" if letter in '"#&<>;`\n' else letter for letter in text)
