"""From a pipeline's plan to that of a replay: the rows of letters instead of sources, then the node and what follows.

A replay is a job of its own with empty state, some time after the job that the rows failed in. So it is right only
where what comes of a row depends on that row alone; anything else is refused here, before a letter is touched.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Guarantee
from arroyo_core.api.config_defaults import with_defaults
from arroyo_core.api.dead_letters import is_dead_letters
from arroyo_core.api.updating import is_updating
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.chaining import derive_chains
from arroyo_core.pipeline.plan import Edge, Node, Plan, Routing
from arroyo_core.pipeline.resolution import encode_config
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.state.table_types import uses_two_phase_commit
from arroyo_dlq.claims import ReplayError

#: No id that a person writes has a dot.
SOURCE_ID = "dlq.rows"
SINK_ID = "dlq.out"
ROWS = "rows"
SOURCE, SINK = "filesystem.source", "filesystem.sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Which part of a pipeline a replay runs."""

    #: The node that gets the rows.
    into: str
    #: The last node that runs; its output goes to `sink`. None for all that follows.
    until: str | None = None
    #: A folder for what would go to the pipeline's own sinks, one below it for each of them; None for those sinks.
    sink: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The part of a plan that a replay runs; `bind` makes it a plan."""

    route: Route
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    #: The input of `route.into`.
    stream: ArroyoSchema
    #: Inputs that are not part of the replay: they get no rows.
    empty: Mapping[str, ArroyoSchema]
    #: What a person must know.
    warnings: tuple[str, ...]

    @property
    def row_folders(self) -> dict[str, ArroyoSchema]:
        """The folders that `bind` reads, and the type of the rows in each."""
        return {ROWS: self.stream, **self.empty}

    def bind(self, plan: Plan, plugins: PluginSet, *, url: str) -> Plan:
        """The plan that reads `{url}/{folder}` for each of `row_folders`, and keeps its state in `{url}/state`.

        The folders must have files: sources list them now.
        """
        width = plan.nodes[self.route.into].parallelism
        sources = [
            _source(plugins, f"{url}/{folder}", stream, id=_source_id(folder), parallelism=width)
            for folder, stream in self.row_folders.items()
        ]
        nodes = {node.id: node for node in (*sources, *self.nodes)}
        return replace(
            plan,
            nodes=nodes,
            edges=self.edges,
            chains=derive_chains({node.id: node.parallelism for node in nodes.values()}, self.edges),
            checkpoint=replace(plan.checkpoint, url=f"{url}/state"),
        )


def plan_replay(plan: Plan, plugins: PluginSet, route: Route) -> ReplayPlan:
    """Cut the part out of a plan that rows of `route.into` pass; raises `ReplayError` for what cannot be right."""
    _check_plugins(plugins)
    stream = _check_entry(plan, route.into)
    kept = _reached(plan, route)
    warnings = _check_operators(plan, plugins, kept, route)
    kept_nodes = {name: node for name, node in plan.nodes.items() if name in kept}
    edges = [edge for edge in plan.edges if edge.source in kept and edge.target in kept]
    entry = plan.inputs_of(route.into)[0]
    edges.append(replace(entry, source=SOURCE_ID, output=None))
    empty: dict[str, ArroyoSchema] = {}
    for edge in plan.edges:
        if edge.target in kept and edge.source not in kept and edge.target != route.into:
            folder = f"empty-{len(empty) + 1}"
            empty[folder] = plan.nodes[edge.target].input_schemas[edge.input]
            edges.append(replace(edge, source=_source_id(folder), output=None, routing=Routing.REBALANCE, keys=()))
    if route.sink is not None:
        kept_nodes, edges = _redirect(plan, plugins, route, kept_nodes, edges)
    return ReplayPlan(
        route=route,
        nodes=tuple(kept_nodes.values()),
        edges=tuple(edges),
        stream=stream,
        empty=empty,
        warnings=tuple(warnings),
    )


def _check_plugins(plugins: PluginSet) -> None:
    try:
        plugins.constructor(SOURCE)
    except PluginError as error:
        raise ReplayError(f"a replay reads rows with {SOURCE}: pip install arroyo-filesystem ({error})") from error


def _check_entry(plan: Plan, into: str) -> ArroyoSchema:
    node = plan.nodes.get(into)
    if node is None:
        known = [name for name, found in plan.nodes.items() if found.input_schemas and found.partial_of is None]
        near = difflib.get_close_matches(into, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ReplayError(
            f"the pipeline has no node {into!r}{hint} Where it has another name now, say so with --into NODE "
            f"(it has: {', '.join(known)})"
        )
    if not node.input_schemas:
        raise ReplayError(
            f"{into!r} ({node.operator}) is a source: what failed there are lines that never became rows. Fix the "
            "lines (`arroyo dlq show --format json` has their text), put them into a new file, and let the pipeline "
            "read that"
        )
    if len(node.input_schemas) > 1:
        raise ReplayError(
            f"{into!r} ({node.operator}) has {len(node.input_schemas)} inputs, and letters do not say from which of "
            "them a row came"
        )
    if is_updating(node.input_schemas[0]):
        raise ReplayError(
            f"the input of {into!r} is updating: later changes of the same results have gone on meanwhile, and a "
            "replay would put older values after them. Run the pipeline again from an epoch before the failure: "
            "arroyo run --from-epoch N"
        )
    return node.input_schemas[0]


def _reached(plan: Plan, route: Route) -> set[str]:
    """The nodes that run: from the entry on, up to `until`, and those that read letters of them."""
    reached = _closure(plan, {route.into})
    if route.until is None:
        return reached
    if route.until not in reached:
        raise ReplayError(f"no row of {route.into!r} comes to {route.until!r}: --until must name a node behind it")
    if not plan.outputs_of(route.until):
        raise ReplayError(f"{route.until!r} has no output: --until must name a node that is not a sink")
    if route.sink is None:
        raise ReplayError("--until needs --sink URL: the output of that node must go somewhere")
    leading = {route.until}
    while more := {edge.source for edge in plan.edges if edge.target in leading and edge.source in reached} - leading:
        leading |= more
    kept = leading
    while more := {edge.target for edge in plan.edges if edge.source in kept and _carries_letters(plan, edge)} - kept:
        kept = kept | more
    return kept


def _closure(plan: Plan, start: set[str]) -> set[str]:
    reached = set(start)
    while more := {edge.target for edge in plan.edges if edge.source in reached} - reached:
        reached |= more
    return reached


def _carries_letters(plan: Plan, edge: Edge) -> bool:
    return is_dead_letters(plan.nodes[edge.target].input_schemas[edge.input].schema)


def _check_operators(plan: Plan, plugins: PluginSet, kept: set[str], route: Route) -> list[str]:
    """Refuse what depends on other rows; returns warnings about sinks."""
    registered = plugins_for(plan, plugins)
    refused, warnings = [], []
    for node in [plan.nodes[name] for name in plan.nodes if name in kept]:
        operator = construct(node, registered).operator
        if operator is None:
            continue
        if not operator.is_sink():
            is_right = node.partial_of is None and operator.is_row_wise(node.input_schemas)
        elif route.sink is not None and not _is_letter_sink(node):
            # Another sink takes its place.
            is_right = True
        else:
            tables = operator.tables(node.input_schemas).values()
            # What waits for a commit changes no row; of other tables, the sink knows.
            is_right = operator.is_row_wise(node.input_schemas) or all(map(uses_two_phase_commit, tables))
            if operator.guarantee() is not Guarantee.EXACTLY_ONCE:
                warnings.append(
                    f"rows may come twice, or not at all, in {node.id!r} ({node.operator}) if a replay is interrupted: "
                    f"{operator.guarantee_reason()}"
                )
        if not is_right:
            refused.append(node)
    if refused:
        raise ReplayError(_refusal(plan, route, refused))
    return warnings


def _refusal(plan: Plan, route: Route, refused: Sequence[Node]) -> str:
    names = ", ".join(f"{node.partial_of or node.id!r} ({node.operator})" for node in _without_partials(refused))
    before = _last_before(plan, route.into, {node.id for node in refused})
    advice = (
        f"Replay up to there, --until {before} --sink URL, and let the pipeline read the files of that URL beside its "
        "own input (std.union): then the rows are counted in the job's own state"
        if before is not None
        else "Run the pipeline again from an epoch before the failure: arroyo run --from-epoch N"
    )
    return (
        f"a replay from {route.into!r} on would pass {names}, where what comes of a row depends on other rows. A "
        "replay has none of the job's state: windows and groups would hold the replayed rows alone, and their results "
        f"would come beside those that the job has written already. {advice}"
    )


def _without_partials(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.partial_of is None] or list(nodes)


def _last_before(plan: Plan, into: str, refused: set[str]) -> str | None:
    """The last node before the first that is refused, on one way there; None if the entry itself is."""
    if into in refused:
        return None
    here = into
    while True:
        following = [edge.target for edge in plan.outputs_of(here) if edge.output is None]
        if refused.intersection(following):
            return here
        onward = [name for name in following if _closure(plan, {name}) & refused]
        if not onward:
            return here
        here = onward[0]


def _is_letter_sink(node: Node) -> bool:
    return is_dead_letters(node.input_schemas[0].schema)


def _redirect(
    plan: Plan, plugins: PluginSet, route: Route, nodes: dict[str, Node], edges: Sequence[Edge]
) -> tuple[dict[str, Node], list[Edge]]:
    """The output into `route.sink` instead of the pipeline's own sinks; those of letters stay."""
    assert route.sink is not None
    if route.until is not None:
        last = nodes[route.until]
        sink = _sink(plugins, route.sink, last.output_schema, id=SINK_ID, parallelism=last.parallelism)
        out = Edge(source=last.id, target=SINK_ID, input=0, routing=Routing.FORWARD)
        return {**nodes, SINK_ID: sink}, [*edges, out]
    registered = plugins_for(plan, plugins)
    redirected = {}
    for name, node in nodes.items():
        operator = construct(node, registered).operator
        if operator is not None and operator.is_sink() and not _is_letter_sink(node):
            url = f"{route.sink.rstrip('/')}/{name}"
            node = _sink(plugins, url, node.input_schemas[0], id=name, parallelism=node.parallelism)
        redirected[name] = node
    return redirected, list(edges)


def _source_id(folder: str) -> str:
    return SOURCE_ID if folder == ROWS else f"dlq.{folder}"


def _source(plugins: PluginSet, url: str, stream: ArroyoSchema, *, id: str, parallelism: int) -> Node:
    config = {"path": url, "format": "parquet"}
    if stream.timestamp_column is not None:
        config["eventTimeField"] = stream.timestamp_column
    return _node(plugins, SOURCE, config, id=id, parallelism=parallelism, inputs=(), output=stream.with_keys(None))


def _sink(plugins: PluginSet, url: str, stream: ArroyoSchema, *, id: str, parallelism: int) -> Node:
    config = {"path": url, "format": "parquet"}
    return _node(plugins, SINK, config, id=id, parallelism=parallelism, inputs=(stream,), output=stream)


def _node(
    plugins: PluginSet,
    operator: str,
    config: Mapping[str, str],
    *,
    id: str,
    parallelism: int,
    inputs: tuple[ArroyoSchema, ...],
    output: ArroyoSchema,
) -> Node:
    constructor = plugins.constructor(operator)
    message = json_format.ParseDict(dict(config), constructor.config_type())
    resolved = constructor.resolve(with_defaults(message))
    constructor.with_config(resolved, plugins.registry).inner.output_schema(inputs)
    return Node(
        id=id,
        operator=operator,
        config=encode_config(resolved),
        parallelism=parallelism,
        input_schemas=inputs,
        output_schema=output,
        origin=plugins.origin(operator),
    )
