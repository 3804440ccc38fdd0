"""The two operators of a test: a source that follows a script, and a sink that shows what it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from google.protobuf.wrappers_pb2 import BytesValue

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Origin,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.state import get_storage_provider, global_table_config
from arroyo_testing.clock import FakeClock

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig

SCRIPT = "test.script"
CAPTURE = "test.capture"
#: The counter in which a source tells how far it has come.
POSITION = "test_position"

_POSITION_TABLE = "position"
_ROWS_TABLE = "rows"


class ScriptItem(msgspec.Struct, frozen=True, array_like=True):
    """What a source does at one step: exactly one of these."""

    #: Counted from 1.
    step: int
    #: A batch, as an Arrow IPC stream.
    rows: bytes | None = None
    watermark_us: int | None = None
    #: What the clock shows from now on.
    time_us: int | None = None
    is_idle: bool = False
    is_end: bool = False


class Script(msgspec.Struct, frozen=True, array_like=True):
    """All that one source does, and the steps after which an epoch ends; the last of them is the end of its data."""

    items: list[ScriptItem]
    cuts: list[int]
    schema: bytes
    timestamp_column: str | None = None
    key_columns: list[str] | None = None

    @classmethod
    def of(cls, items: Sequence[ScriptItem], cuts: Sequence[int], schema: ArroyoSchema) -> Script:
        keys = None if schema.key_columns is None else list(schema.key_columns)
        ipc_schema = schema.schema.serialize().to_pybytes()
        return cls(list(items), list(cuts), ipc_schema, schema.timestamp_column, keys)

    def output_schema(self) -> ArroyoSchema:
        keys = None if self.key_columns is None else tuple(self.key_columns)
        return ArroyoSchema(pa.ipc.read_schema(pa.py_buffer(self.schema)), self.timestamp_column, keys)


class ScriptSource(SourceOperator):
    """Follows its script in subtask 0, one cut an epoch; the others are idle, and hold nobody up."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def name(self) -> str:
        return SCRIPT

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._script.output_schema()

    def tables(self) -> dict[str, TableConfig]:
        return global_table_config(_POSITION_TABLE, "the step after which the script goes on")

    def on_start(self, ctx: SourceContext) -> None:
        self._view = ctx.table_manager.get_global_keyed_state(_POSITION_TABLE, key_type=int, value_type=int)

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        message = ctx.control()
        if message is not None:
            return message.finish_type
        script = self._script
        position: int = self._view.get(0) or 0
        cut = next((each for each in script.cuts if each > position), script.cuts[-1])
        if ctx.task_info.task_index > 0:
            collector.broadcast_watermark(Watermark.idle())
        else:
            self._play(position, cut, collector)
            self._view.insert(0, cut)
            ctx.count(POSITION, cut)
        for item in script.items:
            if item.time_us is not None and position < item.step <= cut and isinstance(ctx.clock, FakeClock):
                ctx.clock.move_to(item.time_us)
        return SourceFinishType.FINAL if self._has_ended(cut) else SourceFinishType.CHECKPOINTED

    def _play(self, position: int, cut: int, collector: SourceCollector) -> None:
        if self._has_ended(position):
            return
        for item in self._script.items:
            if position < item.step <= cut and not item.is_end:
                self._do(item, collector)

    def _do(self, item: ScriptItem, collector: SourceCollector) -> None:
        if item.rows is not None:
            for batch in pa.ipc.open_stream(item.rows):
                collector.collect(batch)
        elif item.is_idle:
            collector.broadcast_watermark(Watermark.idle())
        elif item.watermark_us is not None:
            collector.broadcast_watermark(Watermark.event_time(item.watermark_us))

    def _has_ended(self, position: int) -> bool:
        return position >= self._script.cuts[-1] or any(
            item.is_end and item.step <= position for item in self._script.items
        )


class CaptureConfig(msgspec.Struct, frozen=True, array_like=True):
    """Where rows go: `{url}/{name}/{epoch}-{subtask}.arrow`."""

    url: str
    name: str


class CaptureSink(ArrowOperator):
    """Keeps the rows of each epoch in a file of its own, which is there when the epoch is committed."""

    def __init__(self, config: CaptureConfig) -> None:
        self._config = config

    def name(self) -> str:
        return CAPTURE

    def input_count(self) -> tuple[int, int | None]:
        return (1, None)

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(_ROWS_TABLE, "rows to be shown", uses_two_phase_commit=True)

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._batches: list[pa.RecordBatch] = []

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._batches.append(batch)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._batches:
            ctx.table_manager.insert_committing_data(_ROWS_TABLE, encode_batches(self._batches))

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        storage = get_storage_provider(self._config.url)
        for subtask, data in sorted(commit_data.get(_ROWS_TABLE, {}).items()):
            storage.write(f"{self._config.name}/{epoch}-{subtask}.arrow", data)


def read_captured(url: str, name: str) -> dict[tuple[int, int], pa.Table]:
    """What a sink was given, by epoch and subtask, in their order."""
    storage = get_storage_provider(url)
    found = {}
    for file in storage.list(name):
        epoch, subtask = file.path.rpartition("/")[2].removesuffix(".arrow").split("-")
        found[int(epoch), int(subtask)] = pa.ipc.open_stream(storage.read(file.path)).read_all()
    return dict(sorted(found.items()))


def encode_batches(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Batches of one schema as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


class _ScriptConstructor(OperatorConstructor[BytesValue]):
    config_type = BytesValue

    def with_config(self, config: BytesValue, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(ScriptSource(msgspec.msgpack.decode(config.value, type=Script)))


class _CaptureConstructor(OperatorConstructor[BytesValue]):
    config_type = BytesValue

    def with_config(self, config: BytesValue, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_operator(CaptureSink(msgspec.msgpack.decode(config.value, type=CaptureConfig)))


def encode_config(config: Script | CaptureConfig) -> bytes:
    """The config of one of the operators here, as a plan holds it."""
    return BytesValue(value=msgspec.msgpack.encode(config)).SerializeToString()


@cache
def case_origin() -> Origin:
    return Origin("arroyo-core", version("arroyo-core"))


@cache
def case_plugins() -> PluginSet:
    """The plugins of this process with the operators of tests; what pickles names it, so that tasks have them too."""
    return with_case_operators(installed_plugins())


def with_case_operators(plugins: PluginSet) -> PluginSet:
    """The plugins with the operators of tests; those that are given stay as they are."""
    registry = plugins.registry.with_udfs(())
    with registry.registering(case_origin()):
        registry.add(SCRIPT, _ScriptConstructor())
        registry.add(CAPTURE, _CaptureConstructor())
    return replace(plugins, registry=registry)
