"""Streams in parts, a source that gives one part in each epoch, a sink, and jobs that are edited between two parts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml
from arroyo_testing.lanes import InlineLanes, Killed, MortalLanes
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.api.updating import UPDATING_META, retract_mask
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import global_table_config

Row = dict[str, Any]
TIME = pa.timestamp("us", tz="UTC")
PARTS = 3
#: The output of a pipeline that has one.
OUT = "out"


def make_orders() -> list[Row]:
    """Three parts that overlap in time.

    Key 3 pauses in part 2, key 8 has none of it, key 9 has part 1 only, and key 7 begins in part 2.
    """
    times = [
        *((1, 2 * i, i % 4) for i in range(30)),
        *((1, t, 9) for t in (1, 3)),
        (1, 5, 8),
        *((2, 40 + 2 * i, i % 3 if i < 10 else i % 4) for i in range(30)),
        (2, 61, 7),
        *((3, 80 + 2 * i, i % 4) for i in range(30)),
        (3, 101, 8),
    ]
    return [
        {"part": part, "t": t, "k": k, "n": n, "v": n * 37 % 101, "w": n, "x": 1000 + n, "s": f"s{n}"}
        for n, (part, t, k) in enumerate(times, start=1)
    ]


def make_prices() -> list[Row]:
    """As many parts. Key 9, which has orders in part 1, has a price in part 2."""
    times = [(part, 1 + 40 * (part - 1) + 3 * j, j % 4) for part in (1, 2, 3) for j in range(20)]
    times.insert(25, (2, 45, 9))
    return [
        {"part": part, "t": t, "k": k, "m": m, "p": m * 17 % 97, "y": 500 + m}
        for m, (part, t, k) in enumerate(times, start=1)
    ]


TABLES = {"orders": make_orders(), "prices": make_prices()}


class Parts(SourceOperator):
    """One part of a table in each epoch, in the columns that it is told; all of it by the first subtask."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._rows = TABLES[config["table"]]
        columns = [column.split() for column in config["columns"]]
        self._schema = pa.schema([*((name, pa.type_for_alias(kind)) for name, kind in columns), ("at", TIME)])

    def name(self) -> str:
        return "edits.parts"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(self._schema, "at")

    def tables(self) -> dict[str, Any]:
        return global_table_config("read", "how many parts were read")

    def on_start(self, ctx: Any) -> None:
        self._view = ctx.table_manager.get_global_keyed_state("read")

    def run(self, ctx: Any, collector: Any) -> SourceFinishType:
        if ctx.task_info.task_index:
            return SourceFinishType.FINAL
        part = (self._view.get("parts") or 0) + 1
        rows = [{**row, "at": datetime.fromtimestamp(row["t"], UTC)} for row in self._rows if row["part"] == part]
        columns = [_column([row[field.name] for row in rows], field.type) for field in self._schema]
        collector.collect(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._view.insert("parts", part)
        if part == PARTS:
            return SourceFinishType.FINAL
        while (message := ctx.wait(60)) is None:
            pass
        return message.finish_type


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([str(value) for value in values] if pa.types.is_string(kind) else values, kind)


@dataclass
class Output:
    """What was committed, row by row, with whether it was taken back."""

    rows: list[tuple[Row, bool]] = field(default_factory=list)

    def keep_columns(self, names: Sequence[str], former: Mapping[str, str]) -> None:
        """A pipeline goes on whose output has these columns: whoever reads it has no others of earlier rows either.

        `former` are names that columns had before.
        """
        named = {name: former.get(name, name) for name in names}
        self.rows = [
            ({name: row[old] for name, old in named.items() if old in row}, is_retract) for row, is_retract in self.rows
        ]

    def net(self, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """How often each row is there; a column that a row does not have is null."""
        found: Counter[tuple[Any, ...]] = Counter()
        for row, is_retract in self.rows:
            found[tuple(comparable(row.get(name)) for name in columns)] += -1 if is_retract else 1
        return Counter({row: count for row, count in found.items() if count})


def comparable(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.timestamp())
    return round(value, 4) if isinstance(value, float) else value


class Sink(ArrowOperator):
    """Commits rows to an `Output`."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def name(self) -> str:
        return "edits.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, Any]:
        return global_table_config("rows", "", uses_two_phase_commit=True)

    def on_start(self, ctx: Any) -> None:
        self._staged: list[pa.RecordBatch] = []

    def process_batch(self, batch: pa.RecordBatch, ctx: Any, collector: Any) -> None:
        self._staged.append(batch)

    def handle_checkpoint(self, barrier: Any, ctx: Any, collector: Any) -> None:
        if self._staged:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self._staged[0].schema) as writer:
                for batch in self._staged:
                    writer.write_batch(batch)
            ctx.table_manager.insert_committing_data("rows", sink.getvalue().to_pybytes())
        self._staged = []

    def handle_commit(self, epoch: int, data: Any, ctx: Any) -> None:
        for staged in (part for table in data.values() for part in table.values()):
            for batch in pa.ipc.open_stream(staged):
                rows = batch.drop_columns([name for name in batch.schema.names if name == UPDATING_META])
                self._output.rows += zip(rows.to_pylist(), retract_mask(batch).tolist(), strict=True)


def _config_type(message_name: str, /, **fields: bool) -> type[Message]:
    """A message of texts; the value says whether a field has several."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"edits/{message_name}.proto", package="edits", syntax="proto3")
    message = file.message_type.add(name=message_name)
    for number, (field_name, is_repeated) in enumerate(fields.items(), start=1):
        label = kind.LABEL_REPEATED if is_repeated else kind.LABEL_OPTIONAL
        message.field.add(name=field_name, number=number, type=kind.TYPE_STRING, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"edits.{message_name}"))


class _Source(OperatorConstructor[Message]):
    config_type = _config_type("Source", table=False, columns=True)

    def with_config(self, config: Message, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(Parts(json_format.MessageToDict(config)))


class _Sink(OperatorConstructor[Message]):
    """`name` in the config is that of the output; where there is one only, it may be left out."""

    config_type = _config_type("Sink", name=False)

    def __init__(self, outputs: Mapping[str, Output]) -> None:
        self._outputs = outputs

    def with_config(self, config: Message, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_operator(Sink(self._outputs[output_name(config)]))


def output_name(config: Message) -> str:
    return str(json_format.MessageToDict(config).get("name", OUT))


def with_streams(outputs: Mapping[str, Output]) -> PluginSet:
    """The installed plugins, and the source and the sink of here."""
    plugins = installed_plugins()
    registry = Registry()
    for name, constructor in plugins.registry.constructors.items():
        with registry.registering(plugins.registry.origin(name)):
            registry.add(name, constructor)
    with registry.registering(Origin("arroyo-edits", "1.0")):
        for name in ("edits.parts", "edits.source"):
            registry.add(name, _Source())
        registry.add("edits.sink", _Sink(outputs))
    return dataclasses.replace(plugins, registry=registry)


class EditedJob:
    """A job whose pipeline is another one in each of its lives; these read one part each, and the last all the rest."""

    def __init__(self, folder: Path, former: Mapping[str, str], *, outputs: Sequence[str] = (OUT,)) -> None:
        self.outputs = {name: Output() for name in outputs}
        self._former = former
        self.plugins = with_streams(self.outputs)
        self._folder = folder

    @property
    def output(self) -> Output:
        return self.outputs[OUT]

    def plan(self, nodes: Any, *, parallelism: int = 2) -> Any:
        pipeline = {
            "name": "edited",
            "parallelism": parallelism,
            "checkpoint": {"url": str(self._folder), "interval": "1ms"},
            "nodes": list(nodes),
        }
        return plan_text(yaml.safe_dump(pipeline), plugins=self.plugins, environment={})

    def run(self, lives: Sequence[Any], *, options: StartOptions | None = None) -> JobResult:
        """The lives one after the other, at changing parallelism; `options` are for the last."""
        for number, nodes in enumerate(lives[:-1]):
            try:
                self._job(nodes, MortalLanes(Committed), parallelism=2 + number).run()
            except Killed:
                continue
            raise AssertionError("all parts were read too early")
        return self._job(lives[-1], InlineLanes(), parallelism=3, options=options).run()

    def _job(self, nodes: Any, lanes: InlineLanes, *, parallelism: int, options: Any = None) -> Job:
        plan = self.plan(nodes, parallelism=parallelism)
        for end in plan.nodes.values():
            if end.operator == "edits.sink":
                name = output_name(_Sink.config_type.FromString(end.config))
                self.outputs[name].keep_columns(end.input_schemas[0].names, self._former)
        return Job(
            plan,
            LocalExecutor(self.plugins),
            plugins=self.plugins,
            storage_url=str(self._folder),
            lanes=lanes,
            start=options,
        )


def answer(query: str) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    """The columns and the rows that DuckDB gives for the streams; `part` says what came before an edit."""
    with duckdb.connect() as connection:
        for name, rows in TABLES.items():
            connection.register(name, pa.Table.from_pylist(rows))
        found = connection.sql(query)
        rows = found.fetchall()
        assert rows, "a query without any answer proves nothing"
        return list(found.columns), Counter(tuple(comparable(value) for value in row) for row in rows)
