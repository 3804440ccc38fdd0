"""Runs one subtask of a source for one epoch whose clock moves only when the source waits.

Whole epochs with state are the business of `arroyo_testing.SourceHarness`; waiting there takes real time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing import FakeClock

from arroyo_core.api import (
    ArroyoSchema,
    CheckpointBarrier,
    ControlMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    TaskInfo,
    Watermark,
)


class FakeTables:
    """A table manager with one table, which is its own view and starts empty."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[int], int], key_type: Any = None, value_type: Any = None
    ) -> FakeTables:
        assert name == "s"
        return self

    def get_restored(self) -> dict[int, int]:
        return dict(self.rows)

    def insert(self, key: int, value: int) -> None:
        self.rows[key] = value


@dataclass
class FakeCollector(SourceCollector):
    schema: pa.Schema
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def collect(self, batch: pa.RecordBatch) -> None:
        assert batch.schema.equals(self.schema)
        batch.validate(full=True)
        self.batches.append(batch)

    def broadcast_watermark(self, watermark: Watermark) -> None:
        raise AssertionError("these sources send no watermarks")


class FakeContext(SourceContext):
    """Hands out the control message once `rows` rows were collected, or `seconds` passed on the clock."""

    def __init__(
        self,
        info: TaskInfo,
        clock: FakeClock,
        collector: FakeCollector,
        *,
        schema: ArroyoSchema,
        rows: int | None,
        seconds: float | None,
        message: ControlMessage,
    ) -> None:
        self.task_info = info
        self.table_manager = FakeTables()  # type: ignore[assignment]
        self.clock = clock
        self.input_schemas: Sequence[ArroyoSchema] = ()
        self.output_schema = schema
        self.epoch = 1
        self._fake_clock = clock
        self._collector = collector
        self._rows = rows
        self._deadline_us = None if seconds is None else clock.now_us() + int(seconds * 1e6)
        self._message = message

    def control(self) -> ControlMessage | None:
        rows = sum(batch.num_rows for batch in self._collector.batches)
        is_late = self._deadline_us is not None and self.clock.now_us() >= self._deadline_us
        return self._message if is_late or (self._rows is not None and rows >= self._rows) else None

    def wait(self, seconds: float) -> ControlMessage | None:
        assert seconds > 0
        left = math.inf if self._deadline_us is None else (self._deadline_us - self.clock.now_us()) / 1e6
        self._fake_clock.advance(max(min(seconds, left), 1e-6))
        return self.control()

    def watermark(self) -> Watermark | None:
        return None

    def last_present_watermark(self) -> int | None:
        return None

    def count(self, name: str, amount: int = 1) -> None:
        raise AssertionError(f"unexpected counter {name}")

    def warn(self, message: str) -> None:
        raise AssertionError(f"unexpected warning: {message}")


@dataclass
class SubtaskRun:
    batches: list[pa.RecordBatch]
    finish_type: SourceFinishType
    state: dict[int, int]
    clock: FakeClock

    @property
    def row_count(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


def _run_subtask(
    source: SourceOperator,
    task_index: int = 0,
    parallelism: int = 1,
    *,
    rows: int | None = None,
    seconds: float | None = None,
    message: ControlMessage | None = None,
) -> SubtaskRun:
    schema = source.output_schema([])
    collector, clock = FakeCollector(schema.schema), FakeClock()
    info = TaskInfo(
        job_id="job",
        operator_id="source",
        operator_name=source.name(),
        task_index=task_index,
        parallelism=parallelism,
    )
    barrier = CheckpointBarrier(epoch=1, min_epoch=1, timestamp_us=0)
    ctx = FakeContext(info, clock, collector, schema=schema, rows=rows, seconds=seconds, message=message or barrier)
    source.on_start(ctx)
    finish_type = source.run(ctx, collector)
    source.on_close(ctx)
    return SubtaskRun(collector.batches, finish_type, ctx.table_manager.rows, clock)  # type: ignore[attr-defined]


@pytest.fixture
def run_subtask() -> Callable[..., SubtaskRun]:
    return _run_subtask
