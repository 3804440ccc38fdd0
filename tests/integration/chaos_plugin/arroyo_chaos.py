"""Operators that fail on purpose, once or for ever, and one that shows if it mattered; found like any plugin."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_chaos_latest import LatestConstructor
from arroyo_chaos_slow import SlowConstructor
from arroyo_chaos_tally import TallyConstructor
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.plugin import hookimpl


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_executor() -> None:
    """The JVM that started the daemon that forked this worker."""
    daemon = os.getppid()
    fields = Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()
    os.kill(int(fields[1]), signal.SIGKILL)
    kill_worker()


def fail() -> None:
    raise ValueError("this row is cursed")


def outage() -> None:
    raise ConnectionError("the service is away")


DEEDS: dict[str, Callable[[], None]] = {
    "kill_worker": kill_worker,
    "kill_executor": kill_executor,
    "fail": fail,
    "outage": outage,
}


class Chaos(ArrowOperator):
    """Passes rows on; at its `at`-th batch does the deed, up to `times` times over all processes.

    Where there is a `trigger`, not before there is a file of that name.
    """

    def __init__(self, deed: str, marker: str, at: int, times: int, trigger: str) -> None:
        self._deed = DEEDS[deed]
        self._marker = marker
        self._at = at
        self._times = times
        self._trigger = trigger
        self._batches = 0

    def name(self) -> str:
        return "chaos.strike"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._batches += 1
        collector.collect(batch)
        if self._batches == self._at and self._may_strike():
            self._deed()

    def _may_strike(self) -> bool:
        if self._trigger and not Path(self._trigger).exists():
            return False
        for number in range(self._times):
            try:
                os.close(os.open(f"{self._marker}-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return True
        return False


class Stuck(SourceOperator):
    """Gives one row, writes its process id to a file, and never comes back, whatever it is asked."""

    def __init__(self, file: str) -> None:
        self._file = file

    def name(self) -> str:
        return "chaos.stuck"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(pa.schema({"n": pa.int64()}))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        with Path(self._file).open("a") as file:
            file.write(f"{os.getpid()}\n")
        collector.collect(pa.record_batch({"n": [ctx.task_info.task_index]}))
        threading.Event().wait()
        return SourceFinishType.FINAL


class StuckConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(Stuck(config["file"]))


class ChaosConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        given: dict[str, Any] = json_format.MessageToDict(config)
        at, times = (int(given.get(key, 1)) for key in ("at", "times"))
        chaos = Chaos(given["deed"], given["marker"], at, times, given.get("trigger", ""))
        return ConstructedOperator.from_operator(chaos)


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("chaos.strike", ChaosConstructor())
    registry.add("chaos.slow", SlowConstructor())
    registry.add("chaos.stuck", StuckConstructor())
    registry.add("chaos.tally", TallyConstructor())
    registry.add("chaos.latest", LatestConstructor())
