"""What a source hands over, and how its thread ends."""

import threading

import pyarrow as pa
import pytest

from arroyo_core.api import SystemClock
from arroyo_core.errors import OperatorError
from arroyo_core.runtime import sources
from arroyo_core.runtime.events import RunEpoch
from arroyo_core.runtime.request import TaskEnvironment
from arroyo_core.runtime.wave import run_wave

LINE = [
    {"id": "s", "operator": "test.rows", "config": {"count": 100, "batch": 50}},
    {"id": "p", "operator": "test.passing", "inputs": ["s"]},
    {"id": "o", "operator": "test.sink", "inputs": ["p"]},
]


def test_a_large_batch_reaches_the_operators_in_parts(lab, monkeypatch):
    row_bytes = pa.record_batch([[1], [1], [1]], names=["n", "key", "at"]).nbytes
    monkeypatch.setattr(sources, "SOURCE_BATCH_BYTES", 10 * row_bytes)
    result = lab.run(LINE)
    assert lab.trace.of("p").count("batch 0/1") == 10
    assert lab.trace.numbers() == dict.fromkeys(range(100), 1)
    assert result.operators["s"].batches_sent == 10
    assert result.operators["s"].bytes_sent == 100 * row_bytes


WAITING = {**LINE[0], "config": {"count": 100, "batch": 50, "then_wait": True}}


@pytest.fixture
def blocked(lab, monkeypatch):
    """A source that waits behind its rows now waits for this event, whatever it is asked; operators wait for that."""
    reached, released = threading.Event(), threading.Event()

    def block():
        reached.set()
        released.wait()

    lab.trace.on_wait = block
    lab.trace.add = lambda ctx, call: reached.wait() if call.startswith("batch") else None
    monkeypatch.setattr(sources, "GRACE_S", 0.05)
    yield released
    released.set()
    for thread in list(sources._left_behind):
        thread.join()


def test_a_failing_operator_is_reported_while_its_source_is_blocked(lab, blocked):
    with pytest.raises(OperatorError, match=r"operator 'p'.*seven is not allowed"):
        lab.run([WAITING, {**LINE[1], "config": {"fail_at": 7}}, LINE[2]])
    assert sources.has_left_behind()
    blocked.set()
    for thread in list(sources._left_behind):
        thread.join()
    assert not sources.has_left_behind()


def test_a_failing_source_is_reported_while_another_one_is_blocked(lab, blocked):
    broken = {"id": "broken", "operator": "test.rows", "config": {"fail": "raise"}}
    with pytest.raises(OperatorError, match="the source is broken"):
        lab.run([WAITING, broken, {"id": "o", "operator": "test.sink", "inputs": ["s", "broken"]}])


def test_a_task_that_fails_leaves_the_input_of_its_sources_unread(lab, blocked):
    """So that Spark does not give the process to another task."""
    job = lab.job([WAITING, {**LINE[1], "config": {"fail_at": 7}}, LINE[2]])
    environment = TaskEnvironment(partition=0, attempt=1, plugins=lab.plugins, clock=SystemClock())
    unread = iter([object()])
    list(run_wave(job.plan, 0, job.steps.request(RunEpoch(1, 60_000)), environment, unread))
    assert len(list(unread)) == 1


def test_a_source_that_ends_when_it_is_asked_to_is_not_left_behind(lab):
    with pytest.raises(OperatorError, match="seven is not allowed"):
        lab.run([WAITING, {**LINE[1], "config": {"fail_at": 7}}, LINE[2]])
    assert not sources.has_left_behind()
