"""Finds the columns that nobody needs, so that sources need not read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.pipeline.operators import PlannedOperator
from arroyo_core.pipeline.schemas import TypedNode

#: Columns of one stream; None for all of them.
Columns = Set[str] | None


def derive_source_schemas(
    order: Sequence[str], operators: Mapping[str, PlannedOperator], typed: Mapping[str, TypedNode]
) -> dict[str, ArroyoSchema]:
    """The type of each source without the columns that nobody needs.

    `order` is topological. Only a source that is selective loses any; it keeps its event time, its keys,
    and at least one column.
    """
    needed: dict[str, Columns] = dict.fromkeys(order, frozenset())
    for name in reversed(order):
        operator = operators[name]
        for source, columns in zip(operator.spec.inputs, _needed_by(operator, typed[name], needed[name]), strict=True):
            # What a side output has is not what its node is asked for.
            wanted = None if source.output is not None else columns
            needed[source.id] = _union(needed[source.id], wanted)
    return {
        name: _selected(operators[name], typed[name].output_schema, needed[name])
        for name in order
        if operators[name].is_source
    }


def _needed_by(operator: PlannedOperator, node: TypedNode, needed: Columns) -> list[Columns]:
    inner = operator.constructed.operator
    if inner is None or not node.input_schemas:
        return []
    inputs = node.input_schemas
    of_output = frozenset(node.output_schema.names) if needed is None else needed
    answer = operator.boundary.call(
        "needed_columns()", lambda: list(inner.needed_columns(inputs, of_output)), expected=list
    )
    if answer is None:
        return [None] * len(inputs)
    if len(answer) != len(inputs):
        operator.boundary.add_fault(f"needed_columns() gives {len(answer)} answers for {len(inputs)} inputs")
        return [None] * len(inputs)
    return [None if columns is None else frozenset(columns) for columns in answer]


def _union(left: Columns, right: Columns) -> Columns:
    return None if left is None or right is None else left | right


def _selected(operator: PlannedOperator, schema: ArroyoSchema, needed: Columns) -> ArroyoSchema:
    source = operator.constructed.source
    if needed is None or source is None:
        return schema
    if not operator.boundary.call("is_selective()", source.is_selective, expected=bool):
        return schema
    wanted = needed | {schema.timestamp_column, *(schema.key_columns or ())}
    # Rows without any column could not be counted.
    fields = [field for field in schema.schema if field.name in wanted] or [schema.schema.field(0)]
    return ArroyoSchema(pa.schema(fields, schema.schema.metadata), schema.timestamp_column, schema.key_columns)
