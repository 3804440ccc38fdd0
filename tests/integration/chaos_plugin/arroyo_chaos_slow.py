"""An operator that takes its time, as a slow sink does, or one that computes much."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
)

PASSED = pa.field("passed", pa.timestamp("us", "UTC"), nullable=False)


class Slow(ArrowOperator):
    """Passes so many rows in a second, and adds when it did; it waits meanwhile, or takes the processor."""

    def __init__(self, rows_per_second: float, is_busy: bool) -> None:
        self._rows_per_second = rows_per_second
        self._is_busy = is_busy

    def name(self) -> str:
        return "chaos.slow"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(inputs[0].schema.append(PASSED))

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        due_s = batch.num_rows / self._rows_per_second
        if self._is_busy:
            until_s = time.thread_time() + due_s
            while time.thread_time() < until_s:
                pass
        else:
            time.sleep(due_s)
        now = pa.scalar(time.time_ns() // 1000, PASSED.type)
        collector.collect(batch.append_column(PASSED, pa.repeat(now, batch.num_rows)))


class SlowConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        given: dict[str, Any] = json_format.MessageToDict(config)
        return ConstructedOperator.from_operator(Slow(given["rows_per_second"], given.get("is_busy", False)))
