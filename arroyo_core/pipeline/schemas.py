"""Types every stream from the sources to the sinks, and decides how each edge is routed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.limits import COLUMNS
from arroyo_core.pipeline.field_paths import find_text
from arroyo_core.pipeline.operators import PlannedOperator
from arroyo_core.pipeline.plan import Edge
from arroyo_core.pipeline.routing import resolve_routing


@dataclass(frozen=True, slots=True)
class TypedNode:
    input_schemas: tuple[ArroyoSchema, ...]
    output_schema: ArroyoSchema
    edges: tuple[Edge, ...]
    side_schemas: Mapping[str, ArroyoSchema]


def type_nodes(
    order: Sequence[str],
    operators: Mapping[str, PlannedOperator],
    parallelism: Mapping[str, int],
    *,
    known: Mapping[str, ArroyoSchema] = MappingProxyType({}),
) -> dict[str, TypedNode]:
    """Type the nodes in topological order; mistakes are recorded at their nodes.

    A node is left out if it, or any of its inputs, could not be typed: one mistake, one message.
    The outputs of nodes in `known` are what is said there.
    """
    typed: dict[str, TypedNode] = {}
    for name in order:
        operator = operators.get(name)
        if operator is None or not _has_typed_inputs(operator, typed):
            continue
        found = _type_node(operator, typed, parallelism, known.get(name))
        if found is not None:
            typed[name] = found
    return typed


def _has_typed_inputs(operator: PlannedOperator, typed: Mapping[str, TypedNode]) -> bool:
    node = operator.spec
    count, most = len(node.inputs), operator.most_inputs
    is_counted = count >= operator.least_inputs and (most is None or count <= most)
    return node.has_valid_inputs and is_counted and all(source.id in typed for source in node.inputs)


def _type_node(
    operator: PlannedOperator,
    typed: Mapping[str, TypedNode],
    parallelism: Mapping[str, int],
    known: ArroyoSchema | None,
) -> TypedNode | None:
    inner = operator.constructed.inner
    inputs = _input_schemas(operator, typed)
    if inputs is None:
        return None
    output = known or operator.boundary.call(
        "output_schema()", lambda: _limited(inner.output_schema(inputs)), expected=ArroyoSchema
    )
    edges = _edges(operator, inputs, parallelism) if output is not None else None
    sides = _side_schemas(operator, inputs) if output is not None else None
    if output is None or edges is None or sides is None:
        return None
    return TypedNode(inputs, output, edges, sides)


def _limited(found: ArroyoSchema) -> ArroyoSchema:
    if isinstance(found, ArroyoSchema):
        COLUMNS.check(len(found.names))
    return found


def _input_schemas(operator: PlannedOperator, typed: Mapping[str, TypedNode]) -> tuple[ArroyoSchema, ...] | None:
    schemas = []
    for source in operator.spec.inputs:
        sides = typed[source.id].side_schemas
        if source.output is not None and source.output not in sides:
            operator.boundary.mistakes.add_unknown(
                f"{source.id!r} has no output {source.output!r} beside its main one",
                at=source.at,
                name=str(source),
                choices=[f"{source.id}.{name}" for name in sides],
            )
            return None
        schemas.append(typed[source.id].output_schema if source.output is None else sides[source.output])
    return tuple(schemas)


def _side_schemas(operator: PlannedOperator, inputs: tuple[ArroyoSchema, ...]) -> dict[str, ArroyoSchema] | None:
    inner = operator.constructed.operator
    if inner is None:
        return {}
    return operator.boundary.call("side_outputs()", lambda: dict(inner.side_outputs(inputs)), expected=dict)


def _edges(
    operator: PlannedOperator, inputs: tuple[ArroyoSchema, ...], parallelism: Mapping[str, int]
) -> tuple[Edge, ...] | None:
    keys = _routing_keys(operator, inputs)
    if keys is None:
        return None
    node = operator.spec
    edges = []
    for index, (source, schema, wanted) in enumerate(zip(node.inputs, inputs, keys, strict=True)):
        routing, route_keys = resolve_routing(
            schema, wanted, from_parallelism=parallelism[source.id], to_parallelism=parallelism[node.id]
        )
        if not _check_keys(operator, source.id, schema, route_keys):
            return None
        edges.append(
            Edge(source=source.id, target=node.id, input=index, routing=routing, keys=route_keys, output=source.output)
        )
    return tuple(edges)


def _routing_keys(operator: PlannedOperator, inputs: tuple[ArroyoSchema, ...]) -> list[tuple[str, ...] | None] | None:
    inner = operator.constructed.operator
    if inner is None:
        return []
    answer = operator.boundary.call("routing_keys()", lambda: list(inner.routing_keys(inputs)), expected=list)
    if answer is None:
        return None
    if len(answer) != len(inputs):
        operator.boundary.add_fault(f"routing_keys() gives {len(answer)} answers for {len(inputs)} inputs")
        return None
    return [None if keys is None else tuple(keys) for keys in answer]


def _check_keys(operator: PlannedOperator, source: str, schema: ArroyoSchema, keys: tuple[str, ...]) -> bool:
    node, redact = operator.spec, operator.boundary.environment.redact
    for key in keys:
        at = (find_text(node.config, key) if node.config else None) or node.operator_at
        if key not in schema.names:
            operator.boundary.mistakes.add_unknown(
                redact(f"{node.id!r} needs the rows of {source!r} by {key!r}, which is not a column of them"),
                at=at,
                name=redact(key),
                choices=[redact(name) for name in schema.names],
            )
            return False
        data_type = schema.schema.field(key).type
        if not is_hashable(data_type):
            operator.boundary.mistakes.add(
                redact(f"rows cannot be keyed by {key!r}: a column of type {data_type} has no stable hash"),
                at=at,
                value=redact(key),
            )
            return False
    return True
