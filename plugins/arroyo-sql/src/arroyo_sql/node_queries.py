"""Nodes of YAML files with a `query`: other nodes are its tables, and its rows are what the node gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from google.protobuf.empty_pb2 import Empty

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.errors import Location, PipelineError
from arroyo_core.pipeline.document import YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.expansions import Expansion, Unexpanded
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.sql_parameters import quote_given
from arroyo_core.plugin import PluginSet
from arroyo_sql.lexer import SourceText, Token, tokenize
from arroyo_sql.node_places import place
from arroyo_sql.planned import Node
from arroyo_sql.render import node_document
from arroyo_sql.script import Insert, Option, Script, Table

_PREFIX = "given.node_"
_SINK = "std.blackhole"
_SAME = "std.filter"
_WATERMARK = "std.watermark"


class NodeQuery(Expansion):
    """`{id: busy, query: SELECT ... FROM bids}`."""

    key = "query"

    def inputs(self, unexpanded: Unexpanded, ids: Collection[str]) -> Collection[str]:
        tokens = tokenize(SourceText("", unexpanded.value.text), Mistakes())
        named = {token.value for token in _table_names(tokens)}
        return [name for name in ids if name in named]

    def expand(
        self,
        unexpanded: Unexpanded,
        inputs: Mapping[str, ArroyoSchema],
        *,
        plugins: PluginSet,
        environment: Environment,
        mistakes: Mistakes,
    ) -> Sequence[YamlMap] | None:
        from arroyo_sql.planner import plan_script

        value = unexpanded.value
        sql = quote_given(value, f"the query of {unexpanded.id!r}", mistakes)
        if sql is None:
            return None
        text = place(value, sql, unexpanded.text)
        registry, tables = plugins.registry, []
        for index, (name, schema) in enumerate(inputs.items()):
            operator = f"{_PREFIX}{index}"
            registry = registry.with_constructor(operator, _GivenConstructor(schema))
            tables.append(_table(name, operator, value.at))
        # Nobody reads these here: they are what a wrong name may have meant.
        tables += [_table(name, _PREFIX, value.at) for name in sorted(unexpanded.others - inputs.keys())]
        insert = Insert(unexpanded.id, value.at, text)
        script = Script(value.at.file, (*tables, _table(unexpanded.id, _SINK, value.at), insert))
        found = Mistakes()
        planned = plan_script(
            script, plugins=replace(plugins, registry=registry), environment=environment, mistakes=found
        )
        for error in found.sorted():
            _add(error, mistakes, own=unexpanded.id)
        if found or planned is None:
            return None
        nodes = _without_ends(planned.nodes, unexpanded.id, list(inputs), value.at)
        return [node_document(node, was=None, redact=environment.redact) for node in nodes]


def _add(error: PipelineError, mistakes: Mistakes, *, own: str) -> None:
    """Record a mistake; where it lists tables, without the node that the query is."""
    allowed, suggestion = tuple(error.allowed), error.suggestion
    if own in allowed and error.message.startswith("there is no table"):
        allowed = tuple(name for name in allowed if name != own)
        suggestion = nearest(str(error.value), allowed)
    details = "\n".join(getattr(error, "__notes__", ())) or None
    mistakes.add(
        error.message,
        at=error.at,
        value=error.value,
        allowed=allowed,
        suggestion=suggestion,
        details=details,
        code=error.code,
    )


@dataclass(frozen=True, slots=True)
class _GivenConstructor(OperatorConstructor[Empty]):
    """Stands for a node of the file while the query is planned; never part of a pipeline."""

    schema: ArroyoSchema

    config_type = Empty

    def with_config(self, config: Empty, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(_Given(self.schema))


class _Given(SourceOperator):
    def __init__(self, schema: ArroyoSchema) -> None:
        self._schema = schema

    def name(self) -> str:
        return _PREFIX

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._schema

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        raise AssertionError("it stands for a node while a query is planned")


def _table(name: str, connector: str, at: Location) -> Table:
    return Table(name, at, options={"connector": Option("connector", connector, at, at)})


def _without_ends(nodes: Sequence[Node], name: str, tables: Sequence[str], at: Location) -> list[Node]:
    """The nodes between the tables and the sink. The last gets the name of the query, whatever it was called."""
    (sink,) = (node for node in nodes if node.operator == _SINK)
    # What stands for another node, which its id need not say: the planner has names of its own.
    same = {
        node.id: tables[int(node.operator.removeprefix(_PREFIX))] for node in nodes if node.operator.startswith(_PREFIX)
    }
    # Watermarks are made where the file says so, and not once more.
    for node in nodes:
        if node.operator == _WATERMARK and node.inputs[0] in same:
            same[node.id] = same[node.inputs[0]]
    inner = [node for node in nodes if node.id not in same and node is not sink]
    last = sink.inputs[0]
    if last in same:
        return [*inner, Node(name, _SAME, (same[last],), {"predicate": "true"}, at)]
    names = {**same, last: name}
    return [
        replace(node, id=names.get(node.id, node.id), inputs=tuple(names.get(each, each) for each in node.inputs))
        for node in inner
    ]


def _table_names(tokens: Sequence[Token]) -> list[Token]:
    """Names behind FROM, JOIN and commas: those of tables, and some others."""
    return [
        token
        for before, token in pairwise(tokens)
        if token.is_name
        and (before.is_word("FROM") or before.is_word("JOIN") or before.is_sign(",") or before.is_sign("("))
    ]
