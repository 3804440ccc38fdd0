"""What live workers report of an epoch while it runs, and what the driver makes of it."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from arroyo_jobs.prometheus import JobMetrics
from arroyo_testing.live import live_executor
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.heartbeats import Beat
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.lanes import ThreadLanes
from arroyo_core.runtime.live import pulse
from arroyo_core.runtime.live.pulse import Pulse
from arroyo_core.runtime.running import RunningTasks
from arroyo_core.runtime.watch import EpochTimeoutError
from tests.waiting import wait_until

NODES = [
    {"id": "s", "operator": "test.rows", "config": {"count": 20, "then_wait": True}},
    {"id": "k", "operator": "test.passing", "inputs": ["s"], "config": {"keys": ["key"]}},
    {"id": "o", "operator": "test.sink", "inputs": ["k"]},
]


@pytest.fixture
def executor(lab, monkeypatch):
    monkeypatch.setattr(pulse, "PULSE_SECONDS", 0.01)
    executor = live_executor(lab.plugins)
    yield executor
    executor.close()


def live_job(lab, executor, nodes=NODES, *, timeout_ms=600_000, listener=None, **options):
    plan = lab.plan(nodes, parallelism=2, checkpoint={"interval": "1h"})
    plan = replace(plan, checkpoint=replace(plan.checkpoint, timeout_ms=timeout_ms))
    return Job(
        plan,
        executor,
        plugins=lab.plugins,
        storage_url=lab.folder,
        lanes=ThreadLanes(),
        listener=listener and listener(plan),
        **options,
    )


@contextmanager
def running(job):
    """Runs a job in a thread of its own, and stops it in the end."""
    thread = threading.Thread(target=job.run)
    thread.start()
    try:
        yield
    finally:
        job.stop.request()
        thread.join()


def counted(job):
    """The rows in and out of each node in the running epoch."""
    epoch = job.result.look()
    return {} if epoch is None else {name: (m.rows_received, m.rows_sent) for name, m in epoch.operators.items()}


def test_rows_are_visible_before_the_epoch_ends(lab, executor):
    """The source has given all its rows, and waits: the epoch would last an hour."""
    job = live_job(lab, executor, listener=JobMetrics)
    registry = CollectorRegistry()
    registry.register(job.listener)
    with running(job):
        wait_until(lambda: counted(job) == {"s": (0, 20), "k": (20, 20), "o": (20, 0)})
        epoch = job.result.look()
        assert (epoch.epoch, epoch.source_rows, epoch.is_final) == (1, 20, False)
        assert {subtask for _, subtask in epoch.subtasks} == {0, 1}
        assert (job.result.epochs, job.result.source_rows) == (0, 0)
        shown = generate_latest(registry).decode()
        assert 'arroyo_running_source_rows{job_id="lab"} 20.0' in shown
        assert 'arroyo_source_rows_total{job_id="lab"} 0.0' in shown
    assert job.result.source_rows == 20
    assert job.result.look() is None
    assert "arroyo_running" not in generate_latest(registry).decode()


def test_an_operator_that_is_stuck_is_named_and_leaves_no_heartbeats(lab, executor, caplog, tmp_path):
    is_over = threading.Event()
    lab.trace.add = lambda ctx, call: call.startswith("batch") and is_over.wait()
    # A source that waits is alive: this one ends.
    nodes = [{**NODES[0], "config": {"count": 20}}, *NODES[1:]]
    job = live_job(lab, executor, nodes, timeout_ms=2000, max_restarts=0)
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(EpochTimeoutError) as raised:
            job.run()
    finally:
        is_over.set()
    assert str(raised.value).startswith("epoch 1 made no progress for 2s (checkpoint.timeout): ")
    assert "workers have ended the epoch" in str(raised.value)
    assert "of wave 1 in operator 'k' (" in str(raised.value)
    assert "waiting for source 's'" not in str(raised.value)
    assert not list(tmp_path.glob("**/heartbeats"))


class Task:
    """Has counted as many rows as it was looked at."""

    def __init__(self):
        self.looks = 0

    def beat(self):
        self.looks += 1
        return Beat(epoch=3, wave=1, subtask=0, attempt=7, count=self.looks, rows=self.looks, place="in operator 'p'")

    def counted(self):
        return [chain_report(5)]


def chain_report(rows, *, chain=4):
    metrics = [rows]
    return pb.ChainReport(
        chain=chain, subtask=0, epoch=3, operators=[pb.OperatorReport(operator_id="p", metrics=metrics)]
    )


def test_a_task_tells_nothing_before_it_has_run_for_a_period_and_after_its_end():
    told, now = [], [0.0]
    worker = Pulse(lambda run, message: told.append(run), monotonic=lambda: now[0])
    try:
        with worker.watch(8, Task(), None):
            now[0] = 0.9
            worker.look(1.0)
            assert told == []
            with worker.watch(9, Task(), None):
                now[0] = 1.0
                worker.look(1.0)
                assert told == [8]
        now[0] = 9.0
        worker.look(1.0)
        assert told == [8]
    finally:
        worker.close()


def test_a_task_that_cannot_be_looked_at_now_does_not_end_the_pulse():
    told = []
    broken = Task()
    broken.counted = lambda: {}["missing"]
    worker = Pulse(lambda run, message: told.append(run))
    try:
        with worker.watch(1, broken, None), worker.watch(2, Task(), None):
            worker.look(0.0)
    finally:
        worker.close()
    assert told == [2]


def test_the_driver_keeps_the_newest_of_each_task_until_it_has_reported():
    tasks = RunningTasks()
    tasks.begin(1)
    for count in (1, 2):
        chains = [chain_report(count), chain_report(count, chain=5)]
        tasks.tell(1, pb.TaskProgress(epoch=3, wave=1, subtask=0, attempt=7, count=count, chains=chains))
    assert [beat.count for beat in tasks.beats(3)] == [2]
    assert [report.operators[0].metrics[0] for report in tasks.reports(3)] == [2, 2]
    assert (tasks.beats(2), tasks.reports(2)) == ([], [])
    tasks.report(1, chain_report(9))
    assert [beat.count for beat in tasks.beats(3)] == [2]
    assert sorted(report.operators[0].metrics[0] for report in tasks.reports(3)) == [2, 9]
    tasks.report(1, chain_report(9, chain=5))
    assert tasks.beats(3) == []
    tasks.end(1)
    assert tasks.reports(3) == []


def test_what_is_told_of_a_run_that_is_over_means_nothing():
    tasks = RunningTasks()
    tasks.begin(1)
    tasks.end(1)
    tasks.tell(1, pb.TaskProgress(epoch=3, wave=1, subtask=0, chains=[chain_report(1)]))
    tasks.report(1, chain_report(1))
    assert (tasks.beats(3), tasks.reports(3)) == ([], [])
