"""`JobHandle`: a job that runs in a thread of this process, for programs and notebooks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import TracebackType
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ArroyoError, SetupError
from arroyo_core.pipeline.mistakes import nearest
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.display import progress_html, rows_html
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.job import JobListener
from arroyo_core.runtime.job_threads import start_job_thread
from arroyo_core.runtime.latest import decode_latest, sinks_of
from arroyo_core.runtime.metric import json_values
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal


class JobState(StrEnum):
    """Where a job is."""

    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job has come. All but `running` is about committed epochs."""

    job_id: str
    state: JobState
    #: The last committed epoch; 0 before the first.
    epoch: int = 0
    #: Committed since the job was started here.
    epochs: int = 0
    #: Rows of the sources in these.
    source_rows: int = 0
    #: Rows of the sources in a second: of the last epoch, and since the start.
    rows_per_s: float = 0.0
    mean_rows_per_s: float = 0.0
    #: How far event time has come at the sinks; None before the first watermark, and at the end of the data.
    watermark: datetime | None = None
    #: How far that was behind the clock when this was asked.
    lag_s: float | None = None
    #: Rows that sources know of and have not read.
    backlog: int = 0
    restarts: int = 0
    parallelism: int = 0
    #: Spark's own pages; empty where nobody knows any.
    spark_ui: str = ""
    #: Since it has its state and Spark; before that, since it was started.
    duration_s: float = 0.0
    #: By node, in the order of the plan: what it did since the start.
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The epoch that runs, as far as it has come; None where nobody tells.
    running: Mapping[str, Any] | None = None
    #: Why the job failed, or went back to its last checkpoint most lately.
    error: str = ""

    def _repr_html_(self) -> str:
        return progress_html(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRows:
    """The last rows that a node gave in committed epochs; of a sink, those that it was given.

    Rows of one subtask are in their order. Subtasks stand one behind the other, and epochs in theirs.
    """

    node: str
    #: The last epoch that has any of them.
    epoch: int
    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_pylist(self) -> list[dict[str, Any]]:
        return list(self.table.to_pylist())

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def _repr_html_(self) -> str:
        return rows_html(self)


class JobHandle:
    """A job that was started. Its methods may be called from any thread, also after its end.

    The thread of the job ends with the program: what is not committed by then is done again by the next start. As a
    context manager it stops the job at a checkpoint, and waits for that.
    """

    def __init__(
        self,
        plan: Plan,
        run: Callable[[JobListener, StopSignal], JobResult],
        *,
        draw: Callable[[JobProgress], str] = lambda _: "",
    ) -> None:
        """Starts at once. `plan.latest` says of which nodes `latest` can tell; `draw` makes HTML for notebooks."""
        self._plan = plan
        self._draw = draw
        self._stop = StopSignal()
        self._watcher = _Watcher(plan)
        self._ended = threading.Event()
        self._result: JobResult | None = None
        self._error: BaseException | None = None
        self._began_s = time.monotonic()
        start_job_thread(self._run, run, name=f"arroyo-{plan.job_id}")

    @property
    def job_id(self) -> str:
        return self._plan.job_id

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, in whatever way."""
        return not self._ended.is_set()

    @property
    def progress(self) -> JobProgress:
        """How far it has come, now."""
        return self._watcher.progress(self._state(), self._error, since_s=self._began_s)

    def stop(self, mode: StopMode = StopMode.CHECKPOINT) -> None:
        """Ask it to end, and return at once; `await_end` waits. A second, more urgent request counts."""
        self._stop.request(mode)

    def await_end(self, timeout: float | None = None) -> JobResult:
        """Wait until the job has ended, by itself or by `stop`. Raises what it failed with.

        Raises `TimeoutError` after `timeout` seconds; the job goes on then.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"job {self.job_id!r} has not ended after {timeout:g} s, and goes on")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def latest(self, n: int = 10, node: str | None = None) -> NodeRows:
        """The last rows of a node, by default of the only sink: at most `n`, of committed epochs only.

        Raises `SetupError` for a node whose rows are not kept: `Pipeline.start(preview=[...])` says which are.
        """
        kept = list(self._plan.latest)
        if node is None:
            sinks = [name for name in sinks_of(self._plan) if name in kept] or kept
            if len(sinks) != 1:
                raise SetupError(f"say which node: latest(n, node); rows are kept of {', '.join(kept) or 'none'}")
            node = sinks[0]
        if node not in kept:
            near = nearest(node, kept)
            what = f"rows of {node!r} are not kept" if node in self._plan.nodes else f"there is no node {node!r}"
            hint = f" (did you mean {near!r}?)" if near else f" (kept: {', '.join(kept) or 'none'})"
            raise SetupError(f"{what}{hint}: Pipeline.start(preview=[...]) says of which nodes they are")
        return self._watcher.latest(node, n)

    def __enter__(self) -> JobHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.stop()
        try:
            self.await_end()
        except Exception:
            # What went wrong inside of the block counts, and comes first.
            if error is None:
                raise

    def __repr__(self) -> str:
        progress = self.progress
        return f"<job {self.job_id}: {progress.state}, epoch {progress.epoch}, {progress.source_rows:,} rows>"

    def _repr_html_(self) -> str:
        progress = self.progress
        return self._draw(progress) + progress_html(progress)

    def _run(self, run: Callable[[JobListener, StopSignal], JobResult]) -> None:
        try:
            self._result = run(self._watcher, self._stop)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def _state(self) -> JobState:
        if not self._ended.is_set():
            return JobState.RUNNING if self._watcher.has_started else JobState.STARTING
        if self._error is not None or self._result is None:
            return JobState.FAILED
        return JobState.FINISHED if self._result.is_finished else JobState.STOPPED


class _Watcher:
    """What the job tells its handle, in the thread of the job; asked from others."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._job: JobResult | None = None
        #: When Spark was there and the state was found; what the job takes is reckoned from then on.
        self._started_s = 0.0
        self._last: EpochResult | None = None
        self._rows: dict[str, NodeRows] = {}

    @property
    def has_started(self) -> bool:
        return self._job is not None

    def on_start(self, job: JobResult) -> None:
        with self._lock:
            self._job = job
            self._started_s = time.monotonic()

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        found = {name: table for name, data in result.latest.items() if (table := decode_latest(data)) is not None}
        with self._lock:
            self._last = result
            for name, table in found.items():
                before = self._rows.get(name)
                rows = pa.concat_tables([before.table, table]) if before is not None else table
                limit = self._plan.latest[name]
                last = rows.slice(max(0, rows.num_rows - limit)).combine_chunks()
                self._rows[name] = NodeRows(node=name, epoch=result.epoch, table=last)

    def latest(self, node: str, n: int) -> NodeRows:
        with self._lock:
            found = self._rows.get(node)
        if found is None:
            own = self._plan.nodes[node]
            schema = (own.output_schema if self._plan.outputs_of(node) else own.input_schemas[0]).schema
            return NodeRows(node=node, epoch=0, table=schema.empty_table())
        rows = found.table
        return NodeRows(node=node, epoch=found.epoch, table=rows.slice(max(0, rows.num_rows - max(0, n))))

    def progress(self, state: JobState, error: BaseException | None, *, since_s: float) -> JobProgress:
        with self._lock:
            job, last = self._job, self._last
            if job is None:
                return JobProgress(
                    job_id=self._plan.job_id, state=state, duration_s=time.monotonic() - since_s, error=_words(error)
                )
            is_over = state not in (JobState.STARTING, JobState.RUNNING)
            running = None if is_over else job.look()
            duration_s = job.duration_s if is_over and job.epochs else time.monotonic() - self._started_s
            watermark_us = last.watermark_us if last is not None else None
            return JobProgress(
                job_id=job.job_id,
                state=state,
                epoch=last.epoch if last is not None else job.resumed_from,
                epochs=job.epochs,
                source_rows=job.source_rows,
                rows_per_s=last.source_rows / last.duration_s if last is not None and last.duration_s else 0.0,
                mean_rows_per_s=job.source_rows / duration_s if duration_s else 0.0,
                watermark=_time(watermark_us),
                lag_s=None if watermark_us is None else time.time() - watermark_us / 1e6,
                backlog=last.backlog if last is not None else 0,
                restarts=job.restarts,
                parallelism=job.parallelism,
                spark_ui=job.spark_ui,
                duration_s=duration_s,
                operators={name: json_values(each) for name, each in dict(job.operators).items()},
                running=running.summary() if running is not None else None,
                error=_words(error) or job.last_error,
            )


def _time(us: int | None) -> datetime | None:
    """None also for a time that Python cannot tell."""
    try:
        return None if us is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    except OverflowError:
        return None


def _words(error: BaseException | None) -> str:
    if error is None:
        return ""
    return str(error) if isinstance(error, ArroyoError) else f"{type(error).__name__}: {error}"
