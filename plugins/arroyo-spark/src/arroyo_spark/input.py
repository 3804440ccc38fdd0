"""`spark.input`: the rows of a DataFrame that comes with the run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from arroyo_formats import read_schema

from arroyo_core.api import (
    ArroyoSchema,
    Dataset,
    DisplayableOperator,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config
from arroyo_spark.lineage import is_place, table_dataset
from arroyo_spark.spark_pb2 import InputConfig

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "given"
POSITION = "position"
_WAIT_S = 1.0

#: What Spark has no type for, and what pipelines write instead.
_INSTEAD = {
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.uint64(): "decimal(20,0)",
    pa.time64("us"): "int64 or string",
    pa.timestamp("s", "UTC"): "timestamp",
    pa.timestamp("ms", "UTC"): "timestamp",
    pa.timestamp("ns", "UTC"): "timestamp",
}


def resolve_input(config: InputConfig) -> InputConfig:
    """A copy whose dataset, if it is a path, is absolute."""
    resolved = InputConfig()
    resolved.CopyFrom(config)
    if is_place(config.dataset):
        resolved.dataset = absolute_url(config.dataset)
    return resolved


def check_input(config: InputConfig) -> ArroyoSchema:
    """The columns of a config; raises `ConfigError`."""
    schema = read_schema(config.schema)
    if schema is None:
        raise ConfigError("the columns of the DataFrame are needed", field="schema")
    for column in schema:
        if column.type in _INSTEAD:
            raise ConfigError(
                f"a DataFrame has no {column.type} columns: declare {_INSTEAD[column.type]}",
                field=f"schema.{column.name}",
                value=str(column.type),
            )
    return ArroyoSchema(schema, _event_time(config.event_time_field, schema) if config.event_time_field else None)


def _event_time(name: str, schema: pa.Schema) -> str:
    if name not in schema.names:
        near = difflib.get_close_matches(name, schema.names, n=1)
        raise ConfigError(
            f"no column {name!r}",
            field="event_time_field",
            value=name,
            allowed=schema.names,
            suggestion=near[0] if near else None,
        )
    if not pa.types.is_timestamp(schema.field(name).type):
        raise ConfigError(
            f"column {name!r} is {schema.field(name).type}, not a timestamp", field="event_time_field", value=name
        )
    return name


class SparkInput(SourceOperator):
    """Emits what an epoch is given: all of it, in that epoch."""

    def __init__(self, schema: ArroyoSchema, dataset: str = "") -> None:
        self._schema = schema
        self._dataset = dataset

    def name(self) -> str:
        return "spark.input"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._schema

    def is_selective(self) -> bool:
        return True

    def tables(self) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "which rows were given"))

    def given_table(self) -> str | None:
        return TABLE

    def guarantee_reason(self) -> str:
        return "which rows it was given is part of the checkpoint"

    def datasets(self) -> Sequence[Dataset]:
        if not self._dataset:
            return []
        return [Dataset.at(self._dataset) if is_place(self._dataset) else table_dataset(self._dataset)]

    def display(self) -> DisplayableOperator:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self._schema.schema)
        return DisplayableOperator(self.name(), [("rows", "come with the run"), ("columns", columns)])

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        given = ctx.given()
        if given is None:
            # An epoch to end at: what says so may come a moment later.
            while (message := ctx.wait(_WAIT_S)) is None:
                continue
            return message.finish_type
        try:
            for batch in given.batches:
                # So that whoever watches sees that it is alive.
                ctx.control()
                collector.collect(batch)
        finally:
            given.batches.close()
        position = given.position
        if ctx.task_info.task_index == 0:
            view = ctx.table_manager.get_global_keyed_state(TABLE)
            view.insert(POSITION, [position.stream, position.number])
        return SourceFinishType.CHECKPOINTED if position.stream else SourceFinishType.FINAL
