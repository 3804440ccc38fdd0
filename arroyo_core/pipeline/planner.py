"""From a pipeline file to a `Plan`, in phases that each find all the mistakes they can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Required, TypeAlias, TypedDict, Unpack

from arroyo_core.api import DisplayableOperator
from arroyo_core.api.limits import FILE_BYTES, NODES
from arroyo_core.api.policy import PlanningPolicy, current_policy, in_force, read_limited
from arroyo_core.errors import RefusedError
from arroyo_core.pipeline.builder.declaration import DeclaredJob
from arroyo_core.pipeline.chaining import derive_chains
from arroyo_core.pipeline.connections import check_connections, check_former_ids, resolve_inputs, unique_nodes
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.expansions import Expanding
from arroyo_core.pipeline.file_keys import MAX_PARALLELISM
from arroyo_core.pipeline.guarantees import NodeGuarantee
from arroyo_core.pipeline.inline import InlineText
from arroyo_core.pipeline.languages import language_of
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.operators import PlannedOperator, construct_operator
from arroyo_core.pipeline.parameters import Given
from arroyo_core.pipeline.partials import insert_partials
from arroyo_core.pipeline.plan import Node, Plan
from arroyo_core.pipeline.pruning import derive_source_schemas
from arroyo_core.pipeline.schemas import TypedNode, type_nodes
from arroyo_core.pipeline.sections import sections_of
from arroyo_core.pipeline.spec import PipelineSpec, read_spec
from arroyo_core.pipeline.text import decode
from arroyo_core.pipeline.topology import topological_order
from arroyo_core.pipeline.udfs import BundleLoader, load_udfs
from arroyo_core.pipeline.written import WrittenPipeline, load_pipeline
from arroyo_core.plugin import PluginSet


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPipeline:
    """A plan with what may be shown of it. `redact` hides what came from the environment."""

    plan: Plan
    shown_name: str
    shown_url: str | None
    displays: Mapping[str, DisplayableOperator]
    sinks: frozenset[str]
    guarantees: Mapping[str, NodeGuarantee]
    redact: Callable[[str], str] = field(repr=False)
    written: WrittenPipeline = field(repr=False)
    spec: PipelineSpec = field(repr=False)
    operators: Mapping[str, PlannedOperator] = field(repr=False)


#: Reads what was written; None after recording why it cannot be read at all.
Reader: TypeAlias = Callable[[Environment, Mistakes], WrittenPipeline | None]


class Planning(TypedDict, total=False):
    """How a pipeline is planned."""

    plugins: Required[PluginSet]
    environment: Required[Mapping[str, str]]
    #: Replaces the pipeline's own number, not that of single nodes.
    parallelism: int | None
    #: Opens the pipeline's `udfs`, which are imported.
    bundles: BundleLoader | None
    #: Values for the parameters that the file declares.
    parameters: Mapping[str, Given]
    #: Sources give all their columns, also those that no node needs.
    keeps_columns: bool
    #: What planning may do; that which is in force, where none is given.
    policy: PlanningPolicy | None


def plan_pipeline(path: str | Path, **planning: Unpack[Planning]) -> Plan:
    """The plan of a pipeline file.

    Reads schemas through the plugins, and runs nothing. Raises `InvalidPipelineError` with every mistake.
    """
    return plan_file(path, **planning).plan


def plan_text(text: str, *, file: str = "<text>", **planning: Unpack[Planning]) -> Plan:
    """Like `plan_pipeline`, from YAML in memory; `file` is its name in errors, and included files are near it."""
    return plan_text_shown(text, file=file, **planning).plan


def plan_file(path: str | Path, **planning: Unpack[Planning]) -> PlannedPipeline:
    """Like `plan_pipeline`, with what a person may be shown."""
    mistakes = Mistakes()
    with in_force(planning.get("policy") or current_policy()):
        return _plan(_text_reader(read_text(path, mistakes), str(path), planning), mistakes, **planning)


def plan_text_shown(text: str, *, file: str = "<text>", **planning: Unpack[Planning]) -> PlannedPipeline:
    """Like `plan_text`, with what a person may be shown."""
    with in_force(planning.get("policy") or current_policy()):
        return _plan(_text_reader(text, file, planning), Mistakes(), **planning)


def plan_job(job: DeclaredJob, **planning: Unpack[Planning]) -> PlannedPipeline:
    """Like `plan_file`, for a pipeline that a program declares; mistakes have the places of the program."""
    with in_force(planning.get("policy") or current_policy()):
        return _plan(job.write, Mistakes(), **planning)


def plan_document(read: Reader, **planning: Unpack[Planning]) -> PlannedPipeline:
    """Like `plan_file`, for a document that `read` makes, of a text or of anything else."""
    with in_force(planning.get("policy") or current_policy()):
        return _plan(read, Mistakes(), **planning)


def read_text(path: str | Path, mistakes: Mistakes) -> str:
    """The text of a file that the user names; raises `InvalidPipelineError` where it cannot be read.

    It may be a pipe, unless its author is not trusted: then it may be a link to anything.
    """
    if isinstance(path, InlineText):
        return path.text
    text, policy = None, current_policy()
    try:
        policy.check_path(path)
        data = read_limited(path, FILE_BYTES, is_regular=policy.is_untrusted)
        text = decode(data, file=str(path), mistakes=mistakes)
    except RefusedError as error:
        mistakes.add(error.message, at=None, value=str(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        mistakes.add(f"cannot read {path}: {reason}", at=None, value=str(path))
    if text is None:
        mistakes.raise_if_any()
        raise AssertionError("a file that cannot be read has a mistake")
    return text


def _text_reader(text: str, file: str, planning: Planning) -> Reader:
    def read(environment: Environment, mistakes: Mistakes) -> WrittenPipeline | None:
        return load_pipeline(
            text,
            file=file,
            environment=environment,
            given=planning.get("parameters", {}),
            mistakes=mistakes,
            language=language_of(file, planning["plugins"]).for_planning(planning["plugins"], planning.get("bundles")),
        )

    return read


def _plan(
    read: Reader,
    mistakes: Mistakes,
    *,
    plugins: PluginSet,
    environment: Mapping[str, str],
    parallelism: int | None = None,
    bundles: BundleLoader | None = None,
    parameters: Mapping[str, Given] = MappingProxyType({}),
    keeps_columns: bool = False,
    policy: PlanningPolicy | None = None,
) -> PlannedPipeline:
    known = Environment(environment)
    if parallelism is not None and not 1 <= parallelism <= MAX_PARALLELISM:
        mistakes.add(f"parallelism must be between 1 and {MAX_PARALLELISM}", at=None, value=parallelism)
    written = read(known, mistakes)
    if written is None:
        mistakes.raise_if_any()
        raise AssertionError("a document that cannot be read has a mistake")
    expanding = Expanding(plugins, bundles, known, written.texts, mistakes)
    written = replace(written, root=expanding.document(written.root))
    spec = read_spec(written.root, mistakes, sections=sections_of(plugins))
    if len(spec.nodes) > NODES.value:
        mistakes.add(f"the pipeline has {len(spec.nodes)} nodes: {NODES.hint}", at=spec.nodes[NODES.value].at)
        mistakes.raise_if_any()
    plugins, pins = load_udfs(spec, bundles, plugins=plugins, environment=known, mistakes=mistakes)
    nodes = unique_nodes(spec.nodes, mistakes)
    # Also those of a taken id: their operators and configs have mistakes of their own to report.
    for node in spec.nodes:
        if nodes[node.id] is not node:
            construct_operator(node, plugins=plugins, environment=known, mistakes=mistakes)
    constructed = {
        name: construct_operator(node, plugins=plugins, environment=known, mistakes=mistakes)
        for name, node in nodes.items()
    }
    operators = {name: operator for name, operator in constructed.items() if operator is not None}
    check_former_ids(nodes, mistakes)
    inputs = resolve_inputs(nodes, mistakes)
    check_connections(nodes, inputs, operators, mistakes, installed=plugins.registry.constructors)
    order = topological_order(inputs)
    if spec.udfs and current_policy().is_untrusted:
        # Without its bundles the pipeline calls functions that are not there: one mistake is enough.
        mistakes.raise_if_any()
    widths = {name: nodes[name].parallelism or parallelism or spec.parallelism for name in order}
    typed = type_nodes(order, operators, widths)
    mistakes.raise_if_any()
    sources = {} if keeps_columns else derive_source_schemas(order, operators, typed)
    if any(typed[name].output_schema != schema for name, schema in sources.items()):
        typed = type_nodes(order, operators, widths, known=sources)
        mistakes.raise_if_any()
    plan = replace(_assemble(spec, order, operators, typed, widths), udfs=pins)
    mistakes.raise_if_any()
    return PlannedPipeline(
        plan=plan,
        shown_name=spec.shown_name,
        shown_url=spec.shown_url,
        displays={node.id: operators[node.partial_of or node.id].display() for node in plan.nodes.values()},
        sinks=frozenset(name for name in order if operators[name].is_sink),
        guarantees={node.id: operators[node.partial_of or node.id].guarantee() for node in plan.nodes.values()},
        redact=known.redact,
        written=written,
        spec=spec,
        operators=operators,
    )


def _assemble(
    spec: PipelineSpec,
    order: list[str],
    operators: Mapping[str, PlannedOperator],
    typed: Mapping[str, TypedNode],
    widths: Mapping[str, int],
) -> Plan:
    edges = tuple(edge for name in order for edge in typed[name].edges)
    nodes = {
        name: Node(
            id=name,
            operator=str(operators[name].spec.operator),
            config=operators[name].config,
            parallelism=widths[name],
            input_schemas=typed[name].input_schemas,
            output_schema=typed[name].output_schema,
            origin=operators[name].boundary.origin,
            side_schemas=typed[name].side_schemas,
            settings=operators[name].settings(typed[name].input_schemas),
            was=operators[name].spec.was,
            commits_with_jobs=operators[name].commits_with_jobs,
        )
        for name in order
    }
    nodes, edges = insert_partials(nodes, edges, operators)
    return Plan(
        job_id=spec.name,
        nodes=nodes,
        edges=edges,
        chains=derive_chains({node.id: node.parallelism for node in nodes.values()}, edges),
        checkpoint=spec.checkpoint,
        execution=spec.execution,
    )
