"""Epochs in workers that live on: what they give, and what becomes of them when something fails."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from arroyo_testing.live import ThreadLauncher, live_executor

from arroyo_core.errors import OperatorError
from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.lanes import ThreadLanes
from arroyo_core.runtime.live import worker
from arroyo_core.runtime.live.crew import LiveWorkersError
from arroyo_core.runtime.live.executor import TRIES, LiveExecutor
from arroyo_core.runtime.live.wire import MessageKind

NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 60}},
    {"id": "sums", "operator": "test.totals", "inputs": ["rows"]},
    {"id": "out", "operator": "test.sink", "inputs": ["sums"]},
]
TOTALS = {key: sum(n for n in range(60) if n % 5 == key) for key in range(5)}
SETTINGS = {"parallelism": 2, "checkpoint": {"interval": "1h", "rows": 8}}


@pytest.fixture
def executor(lab):
    executor = live_executor(lab.plugins)
    yield executor
    executor.close()


def totals(lab):
    return {row["key"]: row["n"] for row in lab.trace.rows}


def test_the_same_workers_run_epoch_after_epoch(lab, executor):
    starts = count_starts(executor)
    result = lab.run(NODES, executor=executor, **SETTINGS)
    assert (totals(lab), len(lab.trace.rows), starts) == (TOTALS, 5, [2])
    assert result.epochs > 3


def test_workers_that_were_prepared_run_the_first_epoch(lab, executor):
    starts = count_starts(executor)
    job = lab.job(NODES, executor=executor, **SETTINGS)
    executor.prepare(job.plan)
    assert starts == [2]
    assert job.result.epochs == 0
    job.run()
    assert (totals(lab), len(lab.trace.rows), starts) == (TOTALS, 5, [2])


def test_no_frame_comes_to_a_worker_that_has_not_read_its_plan(lab, executor, monkeypatch):
    """The others have connected to it, and could begin."""
    has_come, read_plan, number_of = threading.Event(), worker.Layout, worker.run_number
    came_early = []

    def read_late(plan, index, workers):
        if index == 0:
            came_early.append(has_come.wait(1))
        return read_plan(plan, index, workers)

    def note(message):
        has_come.set()
        return number_of(message)

    monkeypatch.setattr(worker, "Layout", read_late)
    monkeypatch.setattr(worker, "run_number", note)
    lab.run(NODES, executor=executor, **SETTINGS)
    assert (totals(lab), came_early) == (TOTALS, [False])


def test_workers_of_another_plan_are_not_used(lab, executor):
    starts = count_starts(executor)
    executor.prepare(lab.plan(NODES, **{**SETTINGS, "parallelism": 3}))
    lab.run(NODES, executor=executor, **SETTINGS)
    assert (totals(lab), starts) == (TOTALS, [3, 2])


@pytest.mark.parametrize("is_there", [False, True], ids=["at once", "when one is there"])
def test_workers_that_were_prepared_for_nothing_end(lab, executor, is_there):
    job = lab.job(NODES, executor=executor, **SETTINGS)
    executor.prepare(job.plan)
    if is_there:
        executor._crew._expect(MessageKind.HELLO)
    stage = executor._crew._stage
    executor.close()
    assert not any(thread.is_alive() for thread in stage._threads)
    job.close()


def living(**config):
    """A pipeline with an operator that lives on between others that are made again."""
    node = {"id": "living", "operator": "test.passing", "inputs": ["rows"], "config": {"lives_on": True, **config}}
    return [NODES[0], node, {**NODES[1], "inputs": ["living"]}, NODES[2]]


@pytest.mark.parametrize("keys", [None, ["n"]], ids=["in the chain of its source", "behind a shuffle"])
def test_an_operator_that_lives_on_is_started_once_and_closed_at_the_end(lab, executor, keys):
    result = lab.run(living(**({"keys": keys} if keys else {})), executor=executor, **SETTINGS)
    assert totals(lab) == TOTALS
    calls = [call for call in lab.trace.of("living") if call.startswith(("start", "checkpoint", "close"))]
    assert calls[0] == "start"
    assert calls.count("start") == 1
    assert [call for call in calls if call.startswith("checkpoint")] == [
        f"checkpoint {epoch}" for epoch in range(1, result.epochs + 1)
    ]
    assert [call for call in calls if call.startswith("close")] == ["close end_of_data"]


def test_operators_that_live_on_are_closed_when_the_workers_end(lab, executor):
    job = lab.job(living(), executor=executor, **SETTINGS)
    lab.run_until(job, Committed, 2)
    job.close()
    executor.close()
    calls = lab.trace.of("living")
    assert (calls.count("start"), calls.count("close None"), calls[-1]) == (1, 1, "close None")


def test_operators_are_started_again_in_new_workers(lab, executor):
    job = lab.job(living(), executor=executor, **SETTINGS)
    lab.run_until(job, Committed, 2)
    next(iter(executor._crew._workers.values())).close()
    while not job.is_ended:
        job.step()
    assert totals(lab) == TOTALS
    assert lab.trace.of("living").count("start") == 2


@pytest.mark.parametrize("widths", [(1, 3, 2), (3, 1, 1), (2, 4, 3), (4, 2, 4)])
@pytest.mark.parametrize("rows", [None, 5])
def test_a_diamond_with_a_union_and_any_parallelisms_is_exact(lab, executor, widths, rows):
    source, left, joined = widths
    nodes = [
        {"id": "s", "operator": "test.rows", "parallelism": source, "config": {"count": 40, "batch": 4}},
        {"id": "l", "operator": "test.passing", "parallelism": left, "inputs": ["s"], "config": {"keys": ["key"]}},
        {"id": "r", "operator": "test.passing", "inputs": ["s"]},
        {"id": "deep", "operator": "test.passing", "inputs": ["r"], "config": {"keys": ["n"]}},
        {"id": "u", "operator": "test.passing", "parallelism": joined, "inputs": ["l", "deep", "s"]},
        {"id": "o", "operator": "test.sink", "inputs": ["u"]},
    ]
    checkpoint = {"interval": "1h"} | ({"rows": rows} if rows else {})
    lab.run(nodes, executor=executor, checkpoint=checkpoint)
    assert lab.trace.numbers() == Counter(dict.fromkeys(range(40), 3))


@pytest.mark.parametrize("place", ["before the shuffle", "behind the shuffle"])
def test_an_error_of_an_operator_names_it_and_ends_the_workers(lab, executor, place):
    keys = {} if place == "before the shuffle" else {"keys": ["key"]}
    failing = {"id": "bad", "operator": "test.passing", "inputs": ["rows"], "config": {"fail_at": 7, **keys}}
    nodes = [NODES[0], failing, {"id": "out", "operator": "test.sink", "inputs": ["bad"]}]
    with pytest.raises(OperatorError, match="seven is not allowed") as caught:
        lab.run(nodes, executor=executor, **SETTINGS)
    assert caught.value.operator_id == "bad"
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("arroyo-wave")]


def test_a_job_goes_on_with_new_workers_where_one_is_lost(lab, executor):
    starts = count_starts(executor)
    job = lab.job(NODES, executor=executor, **SETTINGS)
    lab.run_until(job, Committed, 2)
    worker = next(iter(executor._crew._workers.values()))
    worker.close()
    while not job.is_ended:
        job.step()
    assert (totals(lab), len(lab.trace.rows), starts, job.result.restarts) == (TOTALS, 5, [2, 2], 1)


def test_an_epoch_that_waits_is_cancelled(lab, executor):
    """The source waits for more, in the first epoch, until the job is told to stop at once."""
    waiting = threading.Event()
    lab.trace.on_wait = waiting.set
    nodes = [{**NODES[0], "config": {"count": 3, "then_wait": True}}, *NODES[1:]]
    plan = lab.plan(nodes, parallelism=2, checkpoint={"interval": "1h"})
    job = lab.job(nodes, executor=executor, lanes=ThreadLanes(), parallelism=2, checkpoint={"interval": "1h"})
    assert plan.width == 2
    raised: list[BaseException] = []

    def run() -> None:
        try:
            executor.run_epoch(job.plan, job.steps.request(first_epoch()))
        except LiveWorkersError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert waiting.wait(30)
    assert executor.progress() == "0 of 2 workers have ended the epoch"
    executor.cancel()
    thread.join(30)
    assert [str(error) for error in raised] == ["the epoch was cancelled"]
    job.close()


def test_workers_that_always_go_end_the_job_with_the_reason(lab):
    executor = LiveExecutor(Doomed(lab.plugins))
    with pytest.raises(RuntimeError, match="it kills its process"):
        lab.run(NODES, executor=executor, **SETTINGS)
    assert executor._launcher.starts == TRIES


class Doomed(ThreadLauncher):
    """Starts no worker at all."""

    def __init__(self, plugins):
        super().__init__(plugins)
        self.starts = 0

    def start(self, ticket, job_id):
        self.starts += 1
        return self

    def failure(self):
        return LiveWorkersError("a worker has died", cause=RuntimeError("it kills its process"))

    def end(self):
        return


def first_epoch():
    from arroyo_core.runtime.events import RunEpoch

    return RunEpoch(1, 3_600_000)


def count_starts(executor):
    """The numbers of workers that were started, in the end."""
    starts = []
    start = executor._launcher.start

    def counted(ticket, job_id):
        starts.append(ticket.workers)
        return start(ticket, job_id)

    executor._launcher.start = counted
    return starts
