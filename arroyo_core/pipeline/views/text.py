"""The plan as text for a terminal: what each node does, then how it runs."""

from __future__ import annotations

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.units import format_bytes, format_duration_us
from arroyo_core.api.visible import visible
from arroyo_core.pipeline.guarantees import end_to_end, weaknesses
from arroyo_core.pipeline.plan import Chain, Node, Plan, Routing, UdfPin
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.epochs import epochs
from arroyo_core.pipeline.views.labels import count, keys_label, operator_details, output_label, routing_label


def render_text(pipeline: PlannedPipeline) -> str:
    plan = pipeline.plan
    blocks = ["\n".join(_heading(pipeline)), "Nodes"]
    blocks += ["\n".join(_node(node, pipeline)) for node in plan.nodes.values()]
    blocks.append("Execution")
    blocks += ["\n".join(_wave(wave, pipeline)) for wave in range(plan.wave_count)]
    return visible("\n\n".join(blocks) + "\n")


def _heading(pipeline: PlannedPipeline) -> list[str]:
    plan = pipeline.plan
    exchanges = sum(edge.routing is not Routing.FORWARD for edge in plan.edges)
    sizes = [
        count(len(plan.nodes), "node"),
        count(len(plan.chains), "chain"),
        count(plan.wave_count, "wave"),
        count(exchanges, "exchange"),
    ]
    rows = [("Pipeline", pipeline.shown_name), ("", ", ".join(sizes)), ("Checkpoint", _checkpoint(pipeline))]
    rows += [("Epochs", epochs(pipeline)), ("Guarantee", _guarantee(pipeline))]
    if plan.udfs:
        rows.append(("Functions", "\n".join(_udf(pin) for pin in plan.udfs)))
    return _table(rows, 0)


def _udf(pin: UdfPin) -> str:
    called = f" as {pin.alias}" if pin.alias else ""
    names = ", ".join(signature.partition("(")[0] for signature in pin.signatures)
    return f"{pin}{called}: {names}"


def _checkpoint(pipeline: PlannedPipeline) -> str:
    checkpoint = pipeline.plan.checkpoint
    budgets = [format_duration_us(checkpoint.interval_ms * 1_000)]
    if checkpoint.rows is not None:
        budgets.append(f"{checkpoint.rows:,} rows")
    if checkpoint.bytes is not None:
        budgets.append(format_bytes(checkpoint.bytes))
    every = f"every {' or '.join(budgets)}" + (", whichever is first" if len(budgets) > 1 else "")
    return f"{pipeline.shown_url or 'nowhere (no url)'}, {every}, the last {checkpoint.keep} kept"


def _guarantee(pipeline: PlannedPipeline) -> str:
    lines = [f"{end_to_end(pipeline.guarantees).label}, end to end"]
    for name, guarantee in weaknesses(pipeline.guarantees).items():
        lines.append(f"because of {name}, {guarantee.level.label}: {guarantee.reason}")
    if pipeline.plan.checkpoint.url is None:
        lines[0] += ", within one run: without a checkpoint url a restart begins again"
    return "\n".join(lines)


def _node(node: Node, pipeline: PlannedPipeline) -> list[str]:
    role = " before its shuffle" if node.partial_of else ""
    title = f"  {node.id}: {node.operator}{role}, {count(node.parallelism, 'subtask')} ({str(node.origin).strip()})"
    rows = [(output_label(edge), routing_label(edge, pipeline)) for edge in pipeline.plan.inputs_of(node.id)]
    details = [("reads", f"{source} ({routing})") for source, routing in rows]
    details += operator_details(node.id, pipeline)
    if node.id not in pipeline.sinks:
        details += _output(node, pipeline)
    details += [
        (f"output .{name}", ", ".join(pipeline.redact(column) for column in schema.names))
        for name, schema in node.side_schemas.items()
    ]
    guarantee = pipeline.guarantees[node.id]
    if guarantee.is_end or guarantee.is_weak:
        details.append(("guarantee", f"{guarantee.level.label}: {guarantee.reason}"))
    return [title, *_table(details, 6)]


def _output(node: Node, pipeline: PlannedPipeline) -> list[tuple[str, str]]:
    schema = node.output_schema
    twin = _same_columns(node, pipeline.plan)
    rows = [("output", f"the columns of {twin}" if twin else "")]
    if twin is None:
        columns = _columns(schema, pipeline)
        rows = [("output" if not place else "", line) for place, line in enumerate(columns or ["no columns"])]
    if twin and schema.timestamp_column and not _inherits_time(node):
        rows.append(("event time", pipeline.redact(schema.timestamp_column)))
    if schema.key_columns is not None:
        rows.append(("keyed by", keys_label(schema.key_columns, pipeline) or "nothing: one global group"))
    return rows


def _same_columns(node: Node, plan: Plan) -> str | None:
    """The first input whose columns the node passes on unchanged."""
    for edge, schema in zip(plan.inputs_of(node.id), node.input_schemas, strict=True):
        if schema.schema.equals(node.output_schema.schema):
            return edge.source
    return None


def _inherits_time(node: Node) -> bool:
    return any(schema.timestamp_column == node.output_schema.timestamp_column for schema in node.input_schemas)


def _columns(schema: ArroyoSchema, pipeline: PlannedPipeline) -> list[str]:
    fields = [(pipeline.redact(field.name), field) for field in schema.schema]
    width = max((len(name) for name, _ in fields), default=0)
    return [
        f"{name:<{width}}  {field.type}"
        + ("" if field.nullable else " not null")
        + ("  (event time)" if field.name == schema.timestamp_column else "")
        for name, field in fields
    ]


def _wave(wave: int, pipeline: PlannedPipeline) -> list[str]:
    plan = pipeline.plan
    lines = [f"  wave {wave}, {count(plan.wave_parallelism(wave), 'subtask')}"]
    for chain in plan.wave_chains(wave):
        lines += _chain(chain, pipeline)
    return lines


def _chain(chain: Chain, pipeline: PlannedPipeline) -> list[str]:
    plan = pipeline.plan
    narrow = chain.parallelism != plan.wave_parallelism(chain.wave)
    width = f" ({count(chain.parallelism, 'subtask')})" if narrow else ""
    lines = [f"    chain {chain.id}{width}: {' -> '.join(chain.nodes)}"]
    for edge in plan.outputs_of(chain.tail):
        target = plan.chain_of(edge.target)
        arrow = "-->" if edge.routing is Routing.FORWARD else "==>"
        inputs = len(plan.inputs_of(edge.target))
        port = f", input {edge.input}" if inputs > 1 else ""
        lines.append(f"      {arrow} {routing_label(edge, pipeline)} {arrow} chain {target.id} ({edge.target}{port})")
    return lines


def _table(rows: list[tuple[str, str]], indent: int) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0)
    lines = []
    for label, text in rows:
        first, *others = text.splitlines() or [""]
        lines.append(f"{'':{indent}}{label:<{width}}  {first}".rstrip())
        lines += [f"{'':{indent + width}}  {line}" for line in others]
    return lines
