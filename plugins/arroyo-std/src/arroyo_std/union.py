"""`std.union`: joins streams of one type into one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, OperatorContext
from arroyo_core.errors import ConfigError
from arroyo_std.columns import with_schema


class Union(ArrowOperator):
    """Passes on the rows of all inputs, in no particular order; the watermark is the least of theirs.

    The output is keyed where all inputs are keyed alike: equal keys are then in the same subtask already.
    """

    def name(self) -> str:
        return "std.union"

    def input_count(self) -> tuple[int, int | None]:
        return (2, None)

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        first = inputs[0]
        for number, other in enumerate(inputs[1:], start=2):
            difference = _first_difference(first, other)
            if difference:
                raise ConfigError(f"the inputs differ: input 1 has {difference[0]}, input {number} has {difference[1]}")
        fields = [
            pa.field(name, first.schema.field(name).type, any(each.schema.field(name).nullable for each in inputs))
            for name in first.names
        ]
        keys = first.key_columns if all(each.key_columns == first.key_columns for each in inputs) else None
        return ArroyoSchema(pa.schema(fields), first.timestamp_column, keys)

    def lives_on(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        collector.collect(with_schema(batch, ctx.output_schema.schema))


def _first_difference(first: ArroyoSchema, other: ArroyoSchema) -> tuple[str, str] | None:
    """What the two have at the first place where they differ; None where they do not."""
    for position in range(max(len(first.names), len(other.names))):
        mine, theirs = _column_at(first.schema, position), _column_at(other.schema, position)
        if mine != theirs:
            return mine, theirs
    if first.timestamp_column != other.timestamp_column:
        return _event_time(first), _event_time(other)
    return None


def _column_at(schema: pa.Schema, position: int) -> str:
    if position >= len(schema):
        return f"no column {position + 1}"
    field = schema.field(position)
    return f"column {field.name!r} of type {field.type} in place {position + 1}"


def _event_time(stream: ArroyoSchema) -> str:
    return f"event time {stream.timestamp_column!r}" if stream.timestamp_column else "no event time"
