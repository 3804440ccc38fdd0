"""std.watermark when the parallelism changes: several subtasks over one table."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pyarrow as pa
import pytest
from arroyo_testing import FakeClock

from arroyo_core.api import (
    ArrowCollector,
    ArroyoSchema,
    CheckpointBarrier,
    OperatorContext,
    TaskInfo,
    Watermark,
)
from arroyo_core.state import StorageProvider, TableManager, merge_operator_metadata

STREAM = ArroyoSchema(pa.schema({"at": pa.timestamp("us", tz="UTC")}), "at")


class Context(OperatorContext):
    def __init__(self, tables: TableManager) -> None:
        self.task_info = tables.task_info
        self.table_manager = tables
        self.clock = FakeClock()
        self.input_schemas: Sequence[ArroyoSchema] = [STREAM]
        self.output_schema = STREAM
        self.epoch = 1

    def watermark(self) -> Watermark | None:
        return None

    def last_present_watermark(self) -> int | None:
        return None

    def count(self, name: str, amount: int = 1) -> None:
        raise AssertionError(name)

    def warn(self, message: str) -> None:
        raise AssertionError(message)


class Collector(ArrowCollector):
    def __init__(self) -> None:
        self.watermarks: list[int | None] = []

    def collect(self, batch: pa.RecordBatch) -> None:
        return

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self.watermarks.append(watermark.event_time_us)


@pytest.fixture
def run_epoch(make):
    storage = StorageProvider(f"memory://{uuid4()}")
    checkpoint = None

    def run_epoch(*times_us: int | None) -> list[int | None]:
        """One epoch with a subtask for each time, which gets one row; the last watermark of each."""
        nonlocal checkpoint
        last, reports = [], []
        for task_index, time_us in enumerate(times_us):
            operator = make("std.watermark", max_lateness=0, period=0)
            task = TaskInfo(
                job_id="job",
                operator_id="node",
                operator_name="std.watermark",
                task_index=task_index,
                parallelism=len(times_us),
            )
            tables = TableManager.open(
                task_info=task, tables=operator.tables([STREAM]), storage=storage, checkpoint=checkpoint
            )
            ctx, collector = Context(tables), Collector()
            operator.on_start(ctx)
            if time_us is not None:
                batch = pa.RecordBatch.from_pydict({"at": [time_us]}, schema=STREAM.schema)
                operator.process_batch(batch, ctx, collector)
            operator.handle_checkpoint(CheckpointBarrier(epoch=1, min_epoch=1, timestamp_us=0), ctx, collector)
            last.append(collector.watermarks[-1] if collector.watermarks else None)
            reports.append(tables.checkpoint(1, 1, None))
        checkpoint = merge_operator_metadata(reports)
        return last

    return run_epoch


def test_each_subtask_goes_on_from_its_own_watermark(run_epoch):
    assert run_epoch(100, 200) == [100, 200]
    assert run_epoch(50, None) == [100, 200]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_at_another_parallelism_all_start_from_the_least(run_epoch, parallelism):
    run_epoch(100, 200)
    assert run_epoch(*[50] * parallelism) == [100] * parallelism
    assert run_epoch(*[150] * parallelism) == [150] * parallelism


def test_nothing_is_promised_for_a_subtask_that_had_seen_no_row(run_epoch):
    run_epoch(100, None)
    assert run_epoch(None) == [None]
    assert run_epoch(30) == [30]


def test_what_a_higher_parallelism_left_behind_is_not_taken_over_twice(run_epoch):
    run_epoch(10, 20, 30, 40)
    assert run_epoch(500, 600) == [500, 600]
    assert run_epoch(None, None, None, None) == [500] * 4
