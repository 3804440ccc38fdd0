"""`SourceHarness`: runs a source epoch by epoch, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from arroyo_core.api import (
    ConstructedOperator,
    ControlMessage,
    SourceCollector,
    SourceFinishType,
    SourceOperator,
    StopRequest,
    Watermark,
)
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.chain import conform
from arroyo_core.runtime.context import Budget, RuntimeContext, RuntimeSourceContext
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.state import commit_data, get_storage_provider
from arroyo_testing.clock import FakeClock
from arroyo_testing.subtask import SubtaskState, factory, make_context

Makes = SourceOperator | ConstructedOperator | Callable[[], SourceOperator | ConstructedOperator]


@dataclass(frozen=True, slots=True)
class SourceRun:
    """What one epoch of all subtasks gave."""

    batches: Sequence[pa.RecordBatch]
    finish_types: Sequence[SourceFinishType]
    counters: dict[str, int]
    warnings: Sequence[str]
    schema: pa.Schema
    watermarks: Sequence[Watermark] = field(default_factory=tuple)

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema=self.schema)

    @property
    def is_final(self) -> bool:
        return all(finish_type is SourceFinishType.FINAL for finish_type in self.finish_types)


class SourceHarness:
    """Runs every subtask of a source in turn, once per call of `run`; the state goes from run to run.

    `make` makes a fresh source, for each subtask and each epoch; with `lives_on` only where one cannot go on, as in
    live workers.
    """

    def __init__(self, make: Makes, *, clock: FakeClock | None = None, lives_on: bool = False) -> None:
        self._make = factory(make)
        self._lives_on = lives_on
        #: The sources that go on, by subtask and parallelism.
        self._living: dict[tuple[int, int], _Started] = {}
        self.clock = clock or FakeClock()
        self._state = SubtaskState()

    def run(
        self,
        *,
        rows: int | None = None,
        parallelism: int = 1,
        interval_ms: int | None = None,
        stop: StopRequest | None = None,
        ends_at_wait: bool = False,
        is_lost: bool = False,
    ) -> SourceRun:
        """One epoch, in which each subtask is handed its barrier after `rows` rows or so much time; may rescale.

        With `stop` it is told to stop at once, and with `ends_at_wait` the barrier comes as soon as a subtask waits, so
        that no test does: move `clock` on between epochs instead. Of an epoch that `is_lost` no state is kept, as when
        the process dies.
        """
        budget = Budget(rows=rows, interval_ms=interval_ms)
        batches: list[pa.RecordBatch] = []
        watermarks: list[Watermark] = []
        finish_types, checkpoints = [], []
        warnings: list[str] = []
        counters: dict[str, int] = {}
        living, self._living = self._living, {}
        for task_index in range(parallelism):
            place = (task_index, parallelism)
            started = self._go_on(living.pop(place)) if place in living else self._start(*place)
            ctx = started.ctx
            ctx.limit(self._state.barrier(self.clock), budget, stop=stop)
            ctx.ends_at_wait = ends_at_wait
            finish_type = self._run_one(started, _ListCollector(ctx, batches, watermarks), is_lost=is_lost)
            if self._goes_on(started, finish_type, is_lost=is_lost):
                self._living[place] = started
            finish_types.append(finish_type)
            checkpoints.append(self._checkpoint(started.tables))
            schema = ctx.output_schema.schema
            for name, amount in ctx.metrics.counters.items():
                counters[name] = counters.get(name, 0) + amount
            warnings += ctx.metrics.warnings.values()
        for left in living.values():
            left.close()
        if not is_lost:
            self._state.save(checkpoints)
        return SourceRun(batches, finish_types, counters, warnings, schema, watermarks)

    def commit(self) -> OperatorMetrics:
        """The second phase of the epoch that was run last, as a driver does it; what it counted and warned of."""
        source: SourceOperator = self._make()
        ctx, _, boundary = make_context(
            RuntimeContext,
            operator=source,
            state=self._state,
            task_index=0,
            parallelism=1,
            clock=self.clock,
            inputs=(),
            token=self._state.last_token,
        )
        metadata = self._state.metadata
        staged = commit_data(metadata, get_storage_provider(self._state.url)) if metadata else {}
        with boundary:
            source.handle_commit(ctx.token.epoch, staged, ctx)
        return ctx.metrics

    def run_all(self, *, rows: int | None = None, parallelism: int = 1, max_epochs: int = 10_000) -> pa.Table:
        """Epoch after epoch until the source is final; all its rows."""
        tables = []
        for _ in range(max_epochs):
            done = self.run(rows=rows, parallelism=parallelism)
            tables.append(done.table)
            if done.is_final:
                return pa.concat_tables(tables)
        raise AssertionError(f"the source is not final after {max_epochs} epochs")

    def close(self) -> None:
        for started in self._living.values():
            started.close()
        self._state.close()

    def _start(self, task_index: int, parallelism: int) -> _Started:
        source: SourceOperator = self._make()
        ctx, tables, boundary = make_context(
            _HarnessContext,
            operator=source,
            state=self._state,
            task_index=task_index,
            parallelism=parallelism,
            clock=self.clock,
            inputs=(),
        )
        with boundary:
            source.on_start(ctx)
        return _Started(source, ctx, tables, boundary)

    def _go_on(self, started: _Started) -> _Started:
        self._state.go_on(started.ctx, started.tables)
        return started

    def _goes_on(self, started: _Started, finish_type: SourceFinishType, *, is_lost: bool) -> bool:
        is_open = finish_type is SourceFinishType.CHECKPOINTED and not is_lost
        return self._lives_on and is_open and started.source.lives_on()

    def _run_one(self, started: _Started, collector: SourceCollector, *, is_lost: bool) -> SourceFinishType:
        goes_on = False
        try:
            with started.boundary:
                finish_type = SourceFinishType(started.source.run(started.ctx, collector))
            goes_on = self._goes_on(started, finish_type, is_lost=is_lost)
            return finish_type
        finally:
            if not goes_on:
                started.close()

    def _checkpoint(self, tables: OperatorTables) -> bytes:
        return tables.checkpoint(self._state.barrier(self.clock))


@dataclass(frozen=True, slots=True)
class _Started:
    """A source that has been started, with what belongs to it."""

    source: SourceOperator
    ctx: _HarnessContext
    tables: OperatorTables
    boundary: Boundary

    def close(self) -> None:
        with self.boundary:
            self.source.on_close(self.ctx)


class _HarnessContext(RuntimeSourceContext):
    ends_at_wait = False

    def wait(self, seconds: float) -> ControlMessage | None:
        if not self.ends_at_wait:
            return super().wait(seconds)
        self._message = self.control() or self._barrier
        return self._message


class _ListCollector(SourceCollector):
    def __init__(self, ctx: RuntimeSourceContext, batches: list[pa.RecordBatch], watermarks: list[Watermark]) -> None:
        self._ctx = ctx
        self._batches = batches
        self._watermarks = watermarks

    def collect(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            batch = conform(batch, self._ctx.output_schema)
            self._ctx.spend(batch)
            self._batches.append(batch)

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self._ctx.receive(watermark)
        self._watermarks.append(watermark)
