"""The plan as JSON for tools."""

from __future__ import annotations

import json

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.guarantees import end_to_end
from arroyo_core.pipeline.plan import Edge, Node
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.epochs import given_nodes, rebuilt_nodes


def render_json(pipeline: PlannedPipeline) -> str:
    plan = pipeline.plan
    checkpoint = plan.checkpoint
    document = {
        "name": pipeline.shown_name,
        "checkpoint": {
            "url": pipeline.shown_url,
            "interval_ms": checkpoint.interval_ms,
            "rows": checkpoint.rows,
            "bytes": checkpoint.bytes,
            "keep": checkpoint.keep,
            "timeout_ms": checkpoint.timeout_ms,
        },
        "execution": plan.execution,
        "live_workers": {
            "slots": plan.live_slots,
            "made_again_in_each_epoch": rebuilt_nodes(pipeline),
            "given_dataframes": given_nodes(pipeline),
        },
        "guarantee": {
            "end_to_end": end_to_end(pipeline.guarantees).value,
            "survives_restart": checkpoint.url is not None,
        },
        "udfs": [
            {
                "kind": pin.kind.value,
                "name": pin.name,
                "version": pin.version,
                "sha256": pin.sha256 or None,
                "url": pin.shown_url or None,
                "as": pin.alias,
                "functions": list(pin.signatures),
            }
            for pin in plan.udfs
        ],
        "nodes": [_node(node, pipeline) for node in plan.nodes.values()],
        "edges": [_edge(edge, pipeline) for edge in plan.edges],
        "chains": [
            {"id": chain.id, "nodes": list(chain.nodes), "parallelism": chain.parallelism, "wave": chain.wave}
            for chain in plan.chains
        ],
        "waves": [
            {"wave": wave, "parallelism": plan.wave_parallelism(wave), "chains": [c.id for c in plan.wave_chains(wave)]}
            for wave in range(plan.wave_count)
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _node(node: Node, pipeline: PlannedPipeline) -> dict[str, object]:
    guarantee = pipeline.guarantees[node.id]
    return {
        "id": node.id,
        "operator": node.operator,
        "plugin": {"distribution": node.origin.distribution, "version": node.origin.version},
        "parallelism": node.parallelism,
        "is_sink": node.id in pipeline.sinks,
        "guarantee": {"level": guarantee.level.value, "reason": guarantee.reason},
        "details": [{"label": label, "text": text} for label, text in pipeline.displays[node.id].fields],
        "output": _schema(node.output_schema, pipeline),
        "side_outputs": {name: _schema(schema, pipeline) for name, schema in node.side_schemas.items()},
        "partial_of": node.partial_of,
    }


def _schema(schema: ArroyoSchema, pipeline: PlannedPipeline) -> dict[str, object]:
    redact = pipeline.redact
    keys = schema.key_columns
    return {
        "columns": [
            {"name": redact(field.name), "type": str(field.type), "nullable": field.nullable} for field in schema.schema
        ],
        "event_time": redact(schema.timestamp_column) if schema.timestamp_column else None,
        "keys": [redact(key) for key in keys] if keys is not None else None,
    }


def _edge(edge: Edge, pipeline: PlannedPipeline) -> dict[str, object]:
    return {
        "source": edge.source,
        "output": edge.output,
        "target": edge.target,
        "input": edge.input,
        "routing": edge.routing.value,
        "keys": [pipeline.redact(key) for key in edge.keys],
    }
