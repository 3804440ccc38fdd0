"""Epochs that begin in live workers before the driver asks for them: what they wait for, and what they do not."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from arroyo_testing.live import live_executor

from arroyo_core.errors import OperatorError
from arroyo_core.runtime.events import Committed, StopMode

ALL = Counter(range(60))
SETTINGS = {"parallelism": 2, "checkpoint": {"interval": "1h", "rows": 8}}


@pytest.fixture
def executor(lab):
    executor = live_executor(lab.plugins)
    yield executor
    executor.close()


def pipeline(middle=None, **source):
    """A source alone in its wave, and behind a shuffle an operator and a sink; all of them live on."""
    keyed = {"id": "keyed", "operator": "test.passing", "config": {"lives_on": True, "keys": ["key"]}}
    return [
        {"id": "rows", "operator": "test.rows", "parallelism": 1, "config": {"count": 60, "lives_on": True, **source}},
        {"id": "head", "operator": "test.passing", "inputs": ["rows"], "parallelism": 1, "config": {"lives_on": True}},
        {**(middle or keyed), "id": "keyed", "inputs": ["head"]},
        {"id": "out", "operator": "test.sink", "inputs": ["keyed"], "config": {"lives_on": True}},
    ]


def test_a_wave_goes_on_with_the_next_epoch_while_those_behind_it_are_at_the_last_one(lab, executor):
    """The second wave ends its first epoch only when the first wave has rows of the second one."""
    is_ahead = threading.Event()
    waited: list[bool] = []

    def watch(operator_id, subtask, call):
        if operator_id == "head" and call.startswith("batch") and "checkpoint 1" in lab.trace.of("head"):
            is_ahead.set()
        if operator_id == "keyed" and call == "checkpoint 1":
            waited.append(is_ahead.wait(30))

    lab.trace.on_call = watch
    result = lab.run(pipeline(), executor=executor, **SETTINGS)
    assert waited == [True, True]
    assert lab.trace.numbers() == ALL
    assert result.epochs > 3


def test_an_epoch_ends_only_after_the_last_one_was_accepted(lab, executor):
    """A wave that is ahead sends its barrier when the driver asks for the epoch, and not before."""
    job = lab.job(pipeline(), executor=executor, **SETTINGS)
    lab.run_until(job, Committed, 1)
    # With lanes that run one after the other the driver has asked for the second epoch, and not for the third.
    assert [call for call in lab.trace.of("head") if call.startswith("checkpoint")][2:] == []


def test_operators_are_started_once_however_far_they_are_ahead(lab, executor):
    result = lab.run(pipeline(), executor=executor, **SETTINGS)
    calls = [call for call in lab.trace.of("head") if call.startswith(("start", "checkpoint", "close"))]
    expected = ["start", *(f"checkpoint {epoch}" for epoch in range(1, result.epochs)), "close end_of_data"]
    assert calls == [*expected, f"checkpoint {result.epochs}"]


@pytest.mark.parametrize("mode", [StopMode.GRACEFUL, StopMode.CHECKPOINT])
@pytest.mark.parametrize("then_wait", [False, True])
def test_a_job_that_stops_while_an_epoch_has_begun_goes_on_where_it_was(lab, executor, mode, then_wait):
    nodes = pipeline(then_wait=then_wait)
    job = lab.job(nodes, executor=executor, **SETTINGS)
    lab.run_until(job, Committed, 2)
    job.stop.request(mode)
    while not job.is_ended:
        job.step()
    executor.close()
    stopped = lab.trace.numbers()
    assert stopped < ALL
    ends = [call for call in lab.trace.of("head") if call.startswith("close")]
    assert ends == ["close stop" if mode is StopMode.GRACEFUL else "close None"]
    lab.run(pipeline(), executor=executor, **SETTINGS)
    assert lab.trace.numbers() == ALL


def test_an_error_of_an_epoch_that_has_begun_comes_after_the_last_one_is_committed(lab, executor):
    failing = {"operator": "test.passing", "config": {"lives_on": True, "keys": ["key"], "fail_at": 12}}
    with pytest.raises(OperatorError, match="seven is not allowed"):
        lab.run(pipeline(failing), executor=executor, **SETTINGS)
    assert [epoch for epoch, _ in lab.trace.committed] == [1]


@pytest.mark.parametrize("noted", [3, 33])
def test_an_epoch_that_began_without_what_another_subtask_wrote_is_run_again(lab, executor, noted):
    """A view of a table that all subtasks see shows in each epoch all that was written before it."""
    noting = {"operator": "test.noting", "config": {"lives_on": True, "keys": ["key"], "noted": noted}}
    result = lab.run(pipeline(noting), executor=executor, **SETTINGS)
    assert lab.trace.numbers() == ALL
    seen = [call for name, _, call in lab.trace.calls if name == "keyed" and call.startswith("sees")]
    written = min(int(call.rpartition(" ")[2]) for call in seen if f"{noted}:" in call)
    for epoch in range(written + 1, result.epochs + 1):
        last = [call for call in seen if call.endswith(f" in {epoch}")][-2:]
        assert last == [f"sees {{{noted}: {written}}} in {epoch}"] * 2


def test_where_all_subtasks_write_for_each_other_no_epoch_begins_early(lab, executor):
    nodes = [{**pipeline()[0], "parallelism": 2}, *pipeline()[1:]]
    result = lab.run(nodes, executor=executor, **SETTINGS)
    assert (lab.trace.numbers(), result.restarts) == (ALL, 0)
