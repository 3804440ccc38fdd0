"""The pipeline under test: two sources, a shuffle, windows in state, and a sink that is exact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from arroyo_testing.inline_pool import InlinePool
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Origin,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.lanes import Lanes
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_core.state import global_table_config, timestamp_table_config

TIME = pa.timestamp("us", "UTC")
ROWS = ArroyoSchema(pa.schema({"n": pa.int64(), "key": pa.int64(), "at": TIME}), "at")
WINDOWS = ArroyoSchema(
    pa.schema({"key": pa.int64(), "at": TIME, "rows": pa.int64(), "total": pa.int64()}), "at", ("key",)
)
WINDOW_US = 10
JOB = "exact"
#: Rows of each source; with `EPOCH_ROWS` that makes five epochs, with a cleanup and compaction.
SOURCE_ROWS = 40
EPOCH_ROWS = 16
KEYS = 5


@dataclass(frozen=True, slots=True)
class StandingClock:
    """The same time for ever: state that holds a time is equal in all runs."""

    time_us: int = 1_000_000

    def now_us(self) -> int:
        return self.time_us


class Numbers(SourceOperator):
    """Gives 0..count-1 as rows with a key and an event time, dealt over two lanes whatever the parallelism."""

    def __init__(self, count: int, is_partitioned: bool = False) -> None:
        self._count = count
        self._is_partitioned = is_partitioned

    def name(self) -> str:
        return "lab.numbers"

    def lives_on(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ROWS

    def tables(self):
        return global_table_config("next", "the next number of each lane", is_partitioned=self._is_partitioned)

    def on_start(self, ctx) -> None:
        self._view = keyed_state(ctx, "next", self._is_partitioned)

    def run(self, ctx, collector):
        info = ctx.task_info
        for lane in range(info.task_index, 2, info.parallelism):
            first = self._view.get(lane)
            for start in range(lane if first is None else first, self._count, 8):
                if (message := ctx.control()) is not None:
                    return message.finish_type
                part = list(range(start, min(start + 8, self._count), 2))
                collector.collect(pa.record_batch([part, [n % KEYS for n in part], part], schema=ROWS.schema))
                collector.broadcast_watermark(Watermark.event_time(part[-1]))
                self._view.insert(lane, start + 8)
        return SourceFinishType.FINAL


class Marks(ArrowOperator):
    """Passes rows on, and after them the greatest of their event times as the watermark."""

    def name(self) -> str:
        return "lab.marks"

    def lives_on(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def process_batch(self, batch, ctx, collector) -> None:
        collector.collect(batch)
        collector.broadcast_watermark(Watermark.event_time(pc.max(batch.column("at").cast(pa.int64())).as_py()))


def keyed_state(ctx, name: str, is_partitioned: bool):
    """A table whose keys are numbers of lanes or subtasks."""
    tables, parallelism = ctx.table_manager, ctx.task_info.parallelism
    if is_partitioned:
        return tables.get_partitioned_keyed_state(name, lambda number: number % parallelism)
    return tables.get_global_keyed_state(name)


class Windows(ArrowOperator):
    """Counts and adds up rows by key and tumbling window; a window is emitted when the watermark has passed it."""

    def __init__(self, is_partitioned: bool = False) -> None:
        self._is_partitioned = is_partitioned

    def name(self) -> str:
        return "lab.windows"

    def lives_on(self) -> bool:
        return True

    def input_count(self):
        return (2, 2)

    def routing_keys(self, inputs):
        return [("key",)] * len(inputs)

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return WINDOWS

    def tables(self, inputs):
        retention = timedelta(seconds=1)
        return {
            **global_table_config("seen", "rows seen, by subtask", is_partitioned=self._is_partitioned),
            "open": timestamp_table_config("open", "windows not emitted yet", retention, False, WINDOWS),
        }

    def on_start(self, ctx) -> None:
        self._open = ctx.table_manager.get_expiring_time_key_table("open", ctx.watermark())
        self._seen = keyed_state(ctx, "seen", self._is_partitioned)

    def process_batch(self, batch, ctx, collector) -> None:
        times = batch.column("at").cast(pa.int64())
        starts = pc.multiply(pc.divide(times, WINDOW_US), WINDOW_US).cast(TIME)
        self._open.insert_batch(
            pa.record_batch(
                [batch.column("key"), starts, pa.array([1] * batch.num_rows), batch.column("n")], schema=WINDOWS.schema
            )
        )
        index = ctx.task_info.task_index
        self._seen.insert(index, (self._seen.get(index) or 0) + batch.num_rows)

    def handle_watermark_int(self, watermark, ctx, collector):
        if watermark.event_time_us is None:
            return watermark
        until = watermark.event_time_us
        # The window that the watermark is in stays open.
        before = END_OF_TIME_US if until >= END_OF_TIME_US else until // WINDOW_US * WINDOW_US
        batches = [batch for _, found in self._open.expire_before(before) for batch in found]
        if batches:
            summed = pa.Table.from_batches(batches).group_by(["key", "at"], use_threads=False)
            table = summed.aggregate([("rows", "sum"), ("total", "sum")])
            closed = table.rename_columns(WINDOWS.schema.names).combine_chunks()
            collector.collect(closed.cast(WINDOWS.schema).to_batches()[0])
        return watermark


class _Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def with_config(self, config, registry):
        given = json_format.MessageToDict(config)
        is_partitioned = bool(given.get("is_partitioned"))
        if self._kind is Numbers:
            return ConstructedOperator.from_source(Numbers(int(given["count"]), is_partitioned))
        return ConstructedOperator.from_operator(Windows(is_partitioned) if self._kind is Windows else self._kind())


def make_plugins() -> PluginSet:
    """What is installed, and the operators of this module."""
    registry = installed_plugins().registry
    if "lab.numbers" not in registry.constructors:
        with registry.registering(Origin("laboratory", "1")):
            registry.add("lab.numbers", _Constructor(Numbers))
            registry.add("lab.marks", _Constructor(Marks))
            registry.add("lab.windows", _Constructor(Windows))
    return PluginSet(registry, [])


def input_files() -> dict[str, bytes]:
    """Two files for the second source, with a line in each that is not a row."""
    files = {}
    for number in range(2):
        rows = range(number, SOURCE_ROWS, 2)
        lines = [json.dumps({"n": 1000 + n, "key": n % KEYS, "at": n}) for n in rows]
        lines.insert(9, f'{{"n": "bad {number}"')
        files[f"rows-{number}.json"] = "\n".join(lines).encode() + b"\n"
    return files


def plan_job(
    plugins: PluginSet,
    url: str,
    *,
    source: str | None = None,
    is_partitioned: bool = False,
    sink: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of the pipeline on a store: `out`, `bad` and `state` are below `url`, and `in` too but for `source`.

    With `is_partitioned` no subtask writes what others see; `sink` are more settings of the sink.
    """
    tables = {"is_partitioned": is_partitioned}
    document = {
        "name": JOB,
        "parallelism": 2,
        "checkpoint": {"url": f"{url}/state", "interval": "1h", "rows": EPOCH_ROWS, "keep": 2},
        "nodes": [
            {"id": "numbers", "operator": "lab.numbers", "config": {"count": SOURCE_ROWS, **tables}},
            {
                "id": "files",
                "operator": "filesystem.source",
                "config": {
                    "path": source or f"{url}/in",
                    "format": "json",
                    "schema": {"n": "int64", "key": "int64", "at": "timestamp"},
                    "event_time_field": "at",
                    "batch_rows": 4,
                    "bad_data": "dead_letter",
                    "dead_letter": f"{url}/bad",
                },
            },
            {"id": "marked", "operator": "lab.marks", "inputs": ["files"]},
            {"id": "windows", "operator": "lab.windows", "inputs": ["numbers", "marked"], "config": tables},
            {
                "id": "out",
                "operator": "filesystem.sink",
                "inputs": ["windows"],
                "config": {"path": f"{url}/out", "format": "parquet", **(sink or {})},
            },
        ],
    }
    return plan_text(json.dumps(document), file="exact.yaml", plugins=plugins, environment={})


def run_job(
    plan: Plan, plugins: PluginSet, *, lanes: Lanes | None = None, executor: EpochExecutor | None = None
) -> JobResult:
    """Run the job to its end in this process, from wherever its storage says that it stands."""
    clock = StandingClock()
    assert plan.checkpoint.url is not None
    executor = executor or LocalExecutor(plugins, clock, pool=InlinePool())
    # Two drivers of a race have names of their own for the one disk, and so for the folder where files wait.
    start = StartOptions(allow_changes=frozenset({"out"}))
    url = plan.checkpoint.url
    return Job(plan, executor, plugins=plugins, storage_url=url, clock=clock, lanes=lanes, start=start).run()
