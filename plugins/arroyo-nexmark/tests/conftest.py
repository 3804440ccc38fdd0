"""Runs sources in process: epochs with budgets, state that survives them, a clock that moves only when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.api import (
    ArroyoSchema,
    CheckpointBarrier,
    ControlMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    StopRequest,
    TaskInfo,
    Watermark,
)


@dataclass
class FakeClock:
    time_us: int = 1_700_000_000_000_000

    def now_us(self) -> int:
        return self.time_us


class FakeView:
    def __init__(self, rows: dict[Any, Any]) -> None:
        self._rows = rows
        self.inserted: dict[Any, Any] = {}

    def get_all(self) -> dict[Any, Any]:
        return {**self._rows, **self.inserted}

    def get(self, key: Any) -> Any:
        return self.get_all().get(key)

    def insert(self, key: Any, value: Any) -> None:
        self.inserted[key] = value


class FakeTables:
    def __init__(self, rows: dict[Any, Any]) -> None:
        self.view = FakeView(rows)

    def get_global_keyed_state(self, name: str, key_type: Any = None, value_type: Any = None) -> FakeView:
        assert name == "s"
        return self.view


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
    """Hands out the control message once `budget` rows were collected, or `budget_s` seconds passed."""

    def __init__(
        self,
        info: TaskInfo,
        tables: FakeTables,
        clock: FakeClock,
        collector: FakeCollector,
        *,
        budget: int | None,
        budget_s: float | None,
        message: ControlMessage,
    ) -> None:
        self.task_info = info
        self.table_manager = tables  # type: ignore[assignment]
        self.clock = clock
        self.input_schemas: Sequence[ArroyoSchema] = ()
        self.epoch = 1
        self._collector = collector
        self._budget = budget
        self._deadline_us = None if budget_s is None else clock.time_us + int(budget_s * 1e6)
        self._message = message

    def control(self) -> ControlMessage | None:
        rows = sum(batch.num_rows for batch in self._collector.batches)
        is_late = self._deadline_us is not None and self.clock.now_us() >= self._deadline_us
        return self._message if is_late or (self._budget is not None and rows >= self._budget) else None

    def wait(self, seconds: float) -> ControlMessage | None:
        assert 0 < seconds < 100
        self.clock.time_us += max(int(seconds * 1e6), 1)  # type: ignore[attr-defined]
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
class SourceRunner:
    """One source over epochs; `state` is what all subtasks have checkpointed."""

    make: Callable[[], SourceOperator]
    state: dict[Any, Any] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)

    def run_subtask(
        self,
        task_index: int = 0,
        parallelism: int = 1,
        *,
        budget: int | None = None,
        budget_s: float | None = None,
        message: ControlMessage | None = None,
    ) -> tuple[list[pa.RecordBatch], SourceFinishType, dict[Any, Any]]:
        """One epoch of one subtask: its batches, how it ended, and what it wrote to state."""
        source = self.make()
        collector = FakeCollector(source.output_schema([]).schema)
        tables = FakeTables(self.state)
        context = FakeContext(
            TaskInfo(
                job_id="job",
                operator_id="source",
                operator_name=source.name(),
                task_index=task_index,
                parallelism=parallelism,
            ),
            tables,
            self.clock,
            collector,
            budget=budget,
            budget_s=budget_s,
            message=message or CheckpointBarrier(epoch=1, min_epoch=1, timestamp_us=0),
        )
        source.on_start(context)
        finish = source.run(context, collector)
        source.on_close(context)
        return collector.batches, finish, tables.view.inserted

    def run_epoch(self, parallelism: int = 1, *, budget: int | None = None) -> tuple[pa.Table, bool]:
        """One epoch of all subtasks: their rows, and whether all of them were final."""
        batches: list[pa.RecordBatch] = []
        finals: list[bool] = []
        written: dict[Any, Any] = {}
        for task_index in range(parallelism):
            made, finish, inserted = self.run_subtask(task_index, parallelism, budget=budget)
            assert not set(inserted) & set(written), "two subtasks wrote the same key"
            batches += made
            finals.append(finish is SourceFinishType.FINAL)
            written |= inserted
        self.state |= written
        return pa.Table.from_batches(batches, schema=self.make().output_schema([]).schema), all(finals)


@pytest.fixture(scope="session")
def runner() -> type[SourceRunner]:
    """A class, not an instance: each test makes its own."""
    return SourceRunner


@pytest.fixture
def stop_request() -> StopRequest:
    return StopRequest(is_graceful=True)
