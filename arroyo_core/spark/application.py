"""A chain of operators without state over a DataFrame, lazily: `apply`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml
from google.protobuf.empty_pb2 import Empty

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CommitToken,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Origin,
    Registry,
    SignalMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    SystemClock,
    TaskInfo,
    Watermark,
)
from arroyo_core.errors import SetupError
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.plan import Node, Plan, Routing
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch
from arroyo_core.runtime.secrets import NodeSecrets
from arroyo_core.runtime.tables import TableOpener, declared_tables
from arroyo_core.spark.column_types import arrow_schema, spark_schema
from arroyo_core.spark.feed import as_declared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The ends of the chain: they stand for the DataFrames, and never run.
_ROWS, _RESULT = "applied.rows", "applied.result"
_FIRST, _LAST = "rows", "result"

_STATELESS = "only operators without state can be applied: run the others in a pipeline, with Pipeline.run(inputs=...)"


def apply(
    frame: DataFrame, nodes: str | Sequence[Mapping[str, Any]], *, environment: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows of a DataFrame after a chain of operators; nothing runs before Spark needs them.

    `nodes` are those of a pipeline file, one after the other, as YAML or as mappings: each has an `operator`, mostly a
    `config`, and may have an `id`; its input is the node before it. Each partition goes through operators of its own.

    Raises `InvalidPipelineError` with the mistakes of the nodes, `SetupError` for an operator that keeps state, needs
    rows of one key together or writes by itself, `DataError` for columns that one of the two sides has no type for.
    """
    plugins = installed_plugins()
    schema = arrow_schema(frame.schema)
    written = _written(nodes)
    plan = plan_text(
        yaml.safe_dump({"name": "applied", "parallelism": 1, "nodes": written}, sort_keys=False, allow_unicode=True),
        file="nodes",
        plugins=_with_ends(plugins, schema),
        environment=dict(os.environ if environment is None else environment),
        keeps_columns=True,
    )
    chain = tuple(plan.nodes[str(node["id"])] for node in written[1:-1])
    _check(plan, chain, plugins)
    result = chain[-1].output_schema.schema
    return frame.mapInArrow(_function(_Chain(chain, schema)), spark_schema(result))


def _written(nodes: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The nodes of a whole pipeline."""
    found = yaml.safe_load(nodes) if isinstance(nodes, str) else nodes
    if not isinstance(found, Sequence) or not found or not all(isinstance(node, Mapping) for node in found):
        raise SetupError("nodes: a list of nodes is needed, each with an operator, such as {operator: std.filter, ...}")
    written: list[dict[str, Any]] = [{"id": _FIRST, "operator": _ROWS}]
    for number, node in enumerate(found, 1):
        if "inputs" in node:
            raise SetupError(
                f"nodes: node {number} has inputs; those of a chain have the node before them as their input"
            )
        written.append({"id": f"node_{number}", **node, "inputs": [written[-1]["id"]]})
    return [*written, {"id": _LAST, "operator": _RESULT, "inputs": [written[-1]["id"]]}]


def _check(plan: Plan, chain: Sequence[Node], plugins: PluginSet) -> None:
    for node in chain:
        constructed = construct(node, plugins)
        inner = constructed.inner
        if declared_tables(inner, node.input_schemas):
            tables = ", ".join(declared_tables(inner, node.input_schemas))
            raise SetupError(f"node {node.id!r} ({node.operator}) keeps state (tables: {tables}); {_STATELESS}")
        if inner.is_committing():
            raise SetupError(f"node {node.id!r} ({node.operator}) commits what it writes; {_STATELESS}")
    shuffled = next((edge for edge in plan.edges if edge.routing is Routing.SHUFFLE), None)
    if shuffled is not None:
        keys = ", ".join(shuffled.keys)
        raise SetupError(
            f"node {shuffled.target!r} needs rows of the same {keys} together, and a DataFrame does not have them so; "
            f"{_STATELESS}"
        )


@dataclass(frozen=True, slots=True)
class _Chain:
    """What tasks are told."""

    nodes: tuple[Node, ...]
    schema: pa.Schema


def _function(chain: _Chain) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def applied(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from arroyo_core.spark.application import run_chain

        return run_chain(chain, batches)

    return applied


def run_chain(chain: _Chain, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One partition, in a task of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    result = _Result()
    chained = _chained(chain, result, partition=0 if context is None else context.partitionId())
    chained.on_start()
    for batch in batches:
        if batch.num_rows:
            chained.process_batch(as_declared(batch, chain.schema))
            yield from result.take()
    chained.on_close(SignalMessage.END_OF_DATA)
    yield from result.take()


def _chained(chain: _Chain, result: _Result, *, partition: int) -> ChainedOperator:
    plugins = installed_plugins()
    opener = TableOpener("memory://applied", {})
    stopwatch = Stopwatch()
    slots = []
    for node in chain.nodes:
        operator = construct(node, plugins).operator
        assert operator is not None
        task = TaskInfo(job_id="applied", operator_id=node.id, operator_name=node.operator, task_index=0, parallelism=1)
        redact = NodeSecrets(node, plugins).redact
        ctx = RuntimeContext(
            task_info=task,
            table_manager=opener.open(operator, task, node.input_schemas).manager,
            clock=SystemClock(),
            input_schemas=node.input_schemas,
            output_schema=node.output_schema,
            token=CommitToken("", 0, 1),
            metrics=OperatorMetrics(),
            side_schemas=node.side_schemas,
            redact=redact,
        )
        slots.append(OperatorSlot(operator, ctx, Boundary(task, 1, ctx.metrics, stopwatch, redact)))
    return ChainedOperator(slots, [(None, result)])


class _Result:
    """What comes out of the chain, until it is taken."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def send(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def send_watermark(self, watermark: Watermark) -> None:
        return

    def take(self) -> list[pa.RecordBatch]:
        taken, self._batches = self._batches, []
        return taken


def _with_ends(plugins: PluginSet, schema: pa.Schema) -> PluginSet:
    registry = plugins.registry.with_udfs(())
    with registry.registering(Origin("arroyo-core", "")):
        registry.add(_ROWS, _RowsConstructor(schema))
        registry.add(_RESULT, _ResultConstructor())
    return replace(plugins, registry=registry)


class _RowsConstructor(OperatorConstructor[Empty]):
    config_type = Empty
    inputs = (0, 0)

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def with_config(self, config: Empty, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(_Rows(ArroyoSchema(self._schema)))


class _Rows(SourceOperator):
    def __init__(self, schema: ArroyoSchema) -> None:
        self._schema = schema

    def name(self) -> str:
        return _ROWS

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._schema

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        return SourceFinishType.FINAL


class _ResultConstructor(OperatorConstructor[Empty]):
    config_type = Empty
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: Empty, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_operator(_End())


class _End(ArrowOperator):
    def name(self) -> str:
        return _RESULT

    def is_sink(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        return
