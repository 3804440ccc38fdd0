"""Jobs that run in a thread: progress, stops, ends, and the last rows of nodes."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_core import JobHandle, Pipeline, RescaleSignal, SetupError, StopMode, Stream, UdfError
from arroyo_core.errors import OperatorError
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.latest import MAX_BYTES, LatestRows, decode_latest
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import EpochResult, JobResult

from ...waiting import wait_until


def counted(rows: int = 1000, *, rate: float | None = None, **settings: object) -> Pipeline:
    source = Stream.source("impulse.source", count=rows, id="numbers", **({"rate": rate} if rate else {}))
    end = source.filter("counter % 2 = 0", id="even").blackhole(id="out")
    return Pipeline.build(end, **{"name": "job", **settings})  # type: ignore[arg-type]


def endless(**settings: object) -> Pipeline:
    checkpoint = {"interval": "50ms", **settings}
    return Pipeline.build(
        Stream.source("impulse.source", rate=2000, id="numbers").blackhole(id="out"), name="job", checkpoint=checkpoint
    )


def start(pipeline: Pipeline, **options: object) -> JobHandle:
    return pipeline.start(executor=LocalExecutor(pipeline.plugins), **options)  # type: ignore[arg-type]


class Gate(SilentListener):
    """Lets whoever waits know when an epoch is committed."""

    def __init__(self) -> None:
        self.committed = threading.Event()

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.committed.set()


def test_a_started_job_comes_to_the_same_end_as_one_that_is_run() -> None:
    pipeline = counted()
    run = pipeline.run(executor=LocalExecutor(pipeline.plugins))
    job = start(pipeline)
    result = job.await_end(60)
    assert (result.source_rows, result.epochs, result.is_finished) == (run.source_rows, run.epochs, True)
    assert not job.is_running
    assert job.await_end(0) is result


def test_progress_tells_how_far_the_job_has_come() -> None:
    job = start(counted())
    assert job.progress.state in ("starting", "running", "finished")
    job.await_end(60)
    progress = job.progress
    assert (progress.state, progress.epoch, progress.source_rows) == ("finished", 1, 1000)
    assert progress.operators["even"]["rows_out"] == 500
    assert progress.mean_rows_per_s > 0
    assert progress.parallelism == 1
    assert "finished, epoch 1, 1,000 rows" in repr(job)


def test_watermark_and_lag_are_those_of_the_last_epoch() -> None:
    gate = Gate()
    source = Stream.source("impulse.source", rate=2000)
    pipeline = Pipeline.build(
        source.watermark("timestamp", "1s").blackhole(), name="job", checkpoint={"interval": "50ms"}
    )
    with start(pipeline, listener=gate) as job:
        assert gate.committed.wait(60)
        progress = job.progress
        assert progress.watermark is not None
        assert progress.lag_s is not None
        assert 0 < progress.lag_s < 60


def test_a_job_is_stopped_at_a_checkpoint() -> None:
    gate = Gate()
    job = start(endless(), listener=gate)
    assert gate.committed.wait(60)
    with pytest.raises(TimeoutError, match="has not ended after 0 s, and goes on"):
        job.await_end(0)
    job.stop()
    assert not job.await_end(60).is_finished
    assert job.progress.state == "stopped"


def test_a_stopped_job_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    gate = Gate()
    with start(endless(url=str(tmp_path)), listener=gate) as job:
        assert gate.committed.wait(60)
    reached = job.progress.epoch
    again = start(endless(url=str(tmp_path)))
    again.stop()
    assert again.await_end(60).resumed_from == reached


def test_leaving_the_block_stops_the_job_and_raises_what_it_failed_with() -> None:
    gate = Gate()
    with start(endless(), listener=gate) as job:
        assert gate.committed.wait(60)
    assert not job.is_running
    with pytest.raises(KeyError, match="mine"), start(endless()) as job:
        raise KeyError("mine")
    assert not job.is_running


def test_what_a_job_failed_with_is_raised_where_it_is_waited_for() -> None:
    def broken(counter: int) -> int:
        raise ValueError("no such number")

    source = Stream.source("impulse.source", count=10)
    pipeline = Pipeline.udf(broken).build(
        source.project({"n": "broken(CAST(counter AS BIGINT))"}).blackhole(), name="job"
    )
    job = start(pipeline)
    with pytest.raises((OperatorError, UdfError), match="no such number"):
        job.await_end(60)
    assert job.progress.state == "failed"
    assert "no such number" in job.progress.error


def test_an_immediate_stop_ends_the_job_without_the_epoch_that_runs() -> None:
    # In this process an epoch cannot be interrupted: what it comes to is ignored.
    job = start(endless(interval="1s"))
    wait_until(lambda: job.progress.state == "running")
    job.stop(StopMode.IMMEDIATE)
    result = job.await_end(60)
    assert (result.is_finished, result.source_rows) == (False, job.progress.source_rows)


def test_latest_rows_are_those_that_the_sink_was_given() -> None:
    job = start(counted())
    job.await_end(60)
    found = job.latest(3)
    assert (found.node, found.epoch, len(found)) == ("out", 1, 3)
    assert [row["counter"] for row in found.to_pylist()] == [994, 996, 998]
    assert list(found.to_pandas()["counter"]) == [994, 996, 998]


def test_latest_rows_of_any_node_are_kept_on_request() -> None:
    job = start(counted(), preview=["numbers", "even"], preview_rows=5)
    job.await_end(60)
    assert [row["counter"] for row in job.latest(2, "numbers").to_pylist()] == [998, 999]
    assert len(job.latest(100, "even")) == 5
    with pytest.raises(SetupError, match="say which node"):
        job.latest(1)
    with pytest.raises(SetupError, match="rows of 'out' are not kept"):
        job.latest(1, "out")
    with pytest.raises(SetupError, match=r"there is no node 'evn' .did you mean 'even'"):
        job.latest(1, "evn")


def test_latest_rows_go_on_over_epochs_and_are_of_committed_ones_only() -> None:
    pipeline = counted(checkpoint={"rows": 100})
    seen: list[int] = []

    class Look(SilentListener):
        def on_epoch(self, result: EpochResult, job: JobResult) -> None:
            seen.append(max(row["counter"] for row in handle.latest(1).to_pylist()))

    held = threading.Event()

    class Held(LocalExecutor):
        def run_epoch(self, plan, request):  # type: ignore[no-untyped-def]
            held.wait(60)
            return super().run_epoch(plan, request)

    handle = pipeline.start(executor=Held(pipeline.plugins), listener=Look(), preview_rows=60)
    assert len(handle.latest()) == 0
    assert handle.latest().table.schema.names == ["counter", "subtask_index", "timestamp"]
    held.set()
    handle.await_end(60)
    assert seen == sorted(seen)
    assert len(seen) == 10
    assert len(handle.latest(100)) == 60


def test_a_preview_of_a_node_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SetupError, match="no node 'evn'; did you mean 'even'"):
        start(counted(), preview=["evn"])
    with pytest.raises(SetupError, match="between 1 and 10000, not 0"):
        start(counted(), preview_rows=0)


def test_latest_rows_are_kept_when_the_job_is_rescaled() -> None:
    gate, rescale = Gate(), RescaleSignal()
    job = start(endless(), listener=gate, rescale=rescale)
    assert gate.committed.wait(60)
    rescale.request(2)
    wait_until(lambda: job.progress.parallelism == 2)
    # An epoch that was late has more rows of one subtask than are kept.
    wait_until(lambda: {row["subtask_index"] for row in job.latest(1000).to_pylist()} == {0, 1})
    job.stop()
    job.await_end(60)


def test_the_last_rows_of_a_subtask_are_few_and_small() -> None:
    latest = LatestRows(3, is_sink=False)
    assert latest.encode() == b""
    for start_at in range(0, 100, 10):
        latest.add(pa.record_batch({"n": list(range(start_at, start_at + 10))}))
    table = decode_latest([latest.encode(), b""])
    assert table is not None
    assert table["n"].to_pylist() == [97, 98, 99]
    large = LatestRows(100, is_sink=False)
    large.add(pa.record_batch({"text": ["x" * (MAX_BYTES // 20)] * 100}))
    assert len(large.encode()) <= MAX_BYTES
    table = decode_latest([large.encode()])
    assert table is not None
    assert 1 <= table.num_rows < 100
    huge = LatestRows(2, is_sink=False)
    huge.add(pa.record_batch({"text": ["x" * (2 * MAX_BYTES)]}))
    assert huge.encode() == b""
