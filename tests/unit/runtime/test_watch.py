"""Epochs that get stuck: how tasks tell where they are, and what becomes of an epoch in which nothing moves."""

import logging
import threading
from dataclasses import replace

import msgspec
import pytest

from arroyo_core.api import SystemClock
from arroyo_core.errors import ExternalError
from arroyo_core.runtime import wave
from arroyo_core.runtime.controller import replay
from arroyo_core.runtime.events import EpochSeen, RunEpoch, read_events
from arroyo_core.runtime.heartbeats import Beat, Heart, Heartbeats, describe, fingerprint
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.lanes import ThreadLanes
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.request import TaskEnvironment
from arroyo_core.runtime.watch import EpochTimeoutError
from arroyo_core.state import get_storage_provider, paths
from arroyo_core.state.failures import StorageError

LINE = [
    {"id": "s", "operator": "test.rows", "config": {"count": 20}},
    {"id": "p", "operator": "test.passing", "inputs": ["s"]},
    {"id": "k", "operator": "test.passing", "inputs": ["p"], "config": {"keys": ["key"]}},
    {"id": "o", "operator": "test.sink", "inputs": ["k"]},
]


def beat(count=0, *, epoch=1, subtask=0, place="in operator 'p'"):
    return Beat(epoch=epoch, wave=0, subtask=subtask, attempt=7, count=count, rows=count, place=place)


class Store:
    """Storage that says what is done with it."""

    def __init__(self, *, is_away=False):
        self.is_away = is_away
        self.calls = []
        self.called = threading.Condition()

    def write(self, path, data, *, is_durable):
        self._note("write", msgspec.json.decode(data, type=Beat).count)
        if self.is_away:
            raise StorageError("away")

    def delete(self, path):
        self._note("delete", path)

    def _note(self, *call):
        with self.called:
            self.calls.append(call)
            self.called.notify_all()

    def wait_for(self, count):
        with self.called:
            self.called.wait_for(lambda: len(self.calls) >= count)


class Look:
    """Gives these counts one after the other, and the last one for ever."""

    def __init__(self, *counts):
        self.counts = list(counts)
        self.asked = threading.Semaphore(0)

    def __call__(self):
        self.asked.release()
        return beat(self.counts.pop(0) if len(self.counts) > 1 else self.counts[0])

    def wait_for(self, count):
        for _ in range(count):
            self.asked.acquire()


def test_a_task_tells_where_it_is_when_something_has_moved_and_takes_it_back_at_its_end():
    store, look = Store(), Look(5, 5, 6, 6, 6, 9)
    with Heart(look, store, "beat", beat_s=0.001):
        look.wait_for(10)
        store.wait_for(3)
    assert store.calls == [("write", 5), ("write", 6), ("write", 9), ("delete", "beat")]


def test_a_short_task_tells_nothing():
    store = Store()
    with Heart(Look(1), store, "beat", beat_s=3600):
        pass
    assert store.calls == []


def test_a_store_that_is_away_does_not_hurt_the_task():
    store, look = Store(is_away=True), Look(1)
    with Heart(look, store, "beat", beat_s=0.001):
        store.wait_for(2)
    assert set(store.calls) == {("write", 1)}


def put(storage, generation, item):
    path = paths.heartbeat("job", generation, item.wave, item.subtask)
    storage.write(path, msgspec.json.encode(item))
    return path


def test_the_driver_reads_the_beats_of_its_own_epoch_and_deletes_those_of_the_past(tmp_path):
    storage = get_storage_provider(tmp_path.as_uri())
    heartbeats = Heartbeats(storage, "job", 3)
    put(storage, 2, beat(subtask=0))
    newer = put(storage, 4, beat(subtask=0))
    put(storage, 3, beat(epoch=4, subtask=0))
    own = [put(storage, 3, beat(10 * subtask, epoch=5, subtask=subtask)) for subtask in (1, 2)]
    storage.write("job/heartbeats/3-0-9.json", b"cut")
    assert heartbeats.read(5) == [beat(10, epoch=5, subtask=1), beat(20, epoch=5, subtask=2)]
    kept = {file.path for file in storage.list("job")}
    assert kept == {newer, *own, "job/heartbeats/3-0-9.json"}
    heartbeats.clear()
    assert [file.path for file in storage.list("job")] == [newer]


def test_a_status_names_some_tasks_and_what_they_do():
    text = describe("wave 0: 1 of 9 tasks have ended", [beat(1000, subtask=number) for number in range(8)])
    assert text.startswith(
        "wave 0: 1 of 9 tasks have ended; subtask 0 of wave 0 in operator 'p' (1,000 rows in and out); "
    )
    assert text.endswith("; and 3 more")
    assert describe("", []) == "its tasks are not known"


def test_any_change_is_progress():
    base = fingerprint("t", [beat(1), beat(2, subtask=1)])
    others = [
        fingerprint("u", [beat(1), beat(2, subtask=1)]),
        fingerprint("t", [beat(1)]),
        fingerprint("t", [beat(1), beat(3, subtask=1)]),
    ]
    assert base == fingerprint("t", [beat(1, place="elsewhere"), beat(2, subtask=1)])
    assert base not in others


@pytest.fixture
def look(lab, monkeypatch):
    """Runs a wave in this thread; `on_call` of an operator sees by `beat()` where the task says it is."""
    found = {}

    class Recorder:
        def __init__(self, look, storage, path, *, beat_s):
            found.update(beat=look, path=path, beat_s=beat_s)

        def __enter__(self):
            return

        def __exit__(self, *_):
            return

    monkeypatch.setattr(wave, "Heart", Recorder)

    def run(nodes, number, frames=(), *, is_concurrent=True, source_ms=60_000):
        job = lab.job(nodes, checkpoint={"timeout": "20s"})
        environment = TaskEnvironment(
            partition=0, attempt=5, plugins=lab.plugins, clock=SystemClock(), is_concurrent=is_concurrent
        )
        return list(wave.run_wave(job.plan, number, job.steps.request(RunEpoch(1, source_ms)), environment, frames))

    run.found = found
    return run


def test_a_task_says_which_operator_runs_and_counts_what_moves(lab, look):
    beats = []
    lab.trace.add = lambda ctx, call: beats.append(look.found["beat"]())
    frames = look(LINE, 0)
    assert look.found["path"] == "lab/heartbeats/0-0-0.json"
    assert look.found["beat_s"] == 2.0
    assert {item.place for item in beats} == {"in operator 'p'"}
    assert [item.count for item in beats] == sorted(item.count for item in beats)
    assert beats[-1].rows > beats[0].rows
    beats.clear()
    look(LINE, 1, frames)
    assert {item.place for item in beats} == {"in operator 'k'"}


def test_a_task_says_which_source_it_waits_for_and_a_source_that_asks_whether_to_end_is_alive(lab, look):
    waiting = []

    def on_wait():
        while (found := look.found["beat"]()).place != "waiting for source 's'":
            threading.Event().wait(0.001)
        waiting.append(found)

    lab.trace.on_wait = on_wait
    look([{**LINE[0], "config": {"count": 20, "then_wait": True}}, *LINE[1:]], 0, source_ms=100)
    last = look.found["beat"]()
    # Besides rows, its checkpoint is one step of the task; the rest is that the source asked.
    assert last.count - last.rows > waiting[0].count - waiting[0].rows + 1
    assert last.place == "writing its checkpoint"


def test_where_tasks_may_have_no_threads_they_have_no_heart(look):
    look(LINE, 0, is_concurrent=False)
    assert look.found == {}


class Stuck(LocalExecutor):
    """The first runs of an epoch never end, unless they are cancelled."""

    def __init__(self, plugins, *, times):
        super().__init__(plugins)
        self.times = times
        self.is_cancelled = threading.Event()
        self.is_stuck = False
        self.looks = 0

    def run_epoch(self, plan, request):
        if request.epoch == 2 and self.times:
            self.times -= 1
            self.is_stuck = True
            self.is_cancelled.wait()
            self.is_cancelled.clear()
            self.is_stuck = False
            raise ExternalError("the job was cancelled")
        return super().run_epoch(plan, request)

    def cancel(self):
        self.is_cancelled.set()

    def progress(self):
        self.looks += not self.is_stuck
        return f"wave 0: {self.looks} of 99 tasks have ended"


def stuck_job(lab, times, *, max_restarts=3):
    plan = lab.plan(LINE, checkpoint={"rows": 4, "interval": "1h"})
    plan = replace(plan, checkpoint=replace(plan.checkpoint, timeout_ms=50))
    return Job(
        plan,
        Stuck(lab.plugins, times=times),
        plugins=lab.plugins,
        storage_url=lab.folder,
        lanes=ThreadLanes(),
        max_restarts=max_restarts,
    )


def test_an_epoch_that_is_stuck_is_cancelled_and_run_again(lab, tmp_path, caplog):
    job = stuck_job(lab, 1)
    with caplog.at_level(logging.WARNING):
        result = job.run()
    assert result.is_finished
    assert result.restarts == 1
    assert lab.trace.numbers() == dict.fromkeys(range(20), 1)
    # On a busy machine a publication may take longer than that timeout, and is warned of, too.
    told = (record.getMessage() for record in caplog.records)
    said = [message for message in told if "has not ended for" not in message]
    assert said[0].startswith("epoch 2 made no progress for 50ms (checkpoint.timeout): wave 0: ")
    assert said[0].endswith("it is cancelled")
    assert "the job goes on from its last checkpoint" in said[1]
    # What was seen is in the log, and leads to the same decisions.
    files = sorted(tmp_path.glob("lab/checkpoints/*/events-*.jsonl"), key=lambda path: int(path.parent.name))
    events = list(read_events(line for path in files for line in path.read_text().splitlines()))
    assert any(isinstance(event, EpochSeen) for event, _ in events)
    assert any("no progress" in str(instruction) for instruction in replay(job.policy, events))


def test_an_epoch_that_is_always_stuck_ends_the_job_with_the_reason(lab):
    with pytest.raises(EpochTimeoutError, match="epoch 2 made no progress for 50ms"):
        stuck_job(lab, 9, max_restarts=1).run()


COMMIT = "the commit of epoch 1 by 'o' has not ended for "


def watched_job(lab, nodes, executor, *, max_restarts=0):
    plan = lab.plan(nodes, checkpoint={"interval": "1h"})
    plan = replace(plan, checkpoint=replace(plan.checkpoint, timeout_ms=200))
    return Job(
        plan, executor, plugins=lab.plugins, storage_url=lab.folder, lanes=ThreadLanes(), max_restarts=max_restarts
    )


def test_an_epoch_in_this_process_that_moves_is_not_stuck(lab):
    """An operator takes longer than the timeout, and gets on all the time."""
    executor, seen = LocalExecutor(lab.plugins), []
    job = watched_job(lab, LINE, executor)

    def on_call(ctx, call):
        if ctx.task_info.operator_id != "p" or len(set(seen)) > 30:
            return
        # As slow as many looks, with a step between any two of them.
        for _ in range(40):
            threading.Event().wait(0.01)
            ctx.metrics.rows_received += 1
            seen.append(executor.progress())

    lab.trace.add = on_call
    assert job.run().is_finished
    assert len(set(seen)) > 30
    assert "in operator 'p'" in seen[0]
    assert executor.progress() == ""


def test_a_commit_that_hangs_is_said_again_and_again(lab):
    nodes = [*LINE[:-1], {**LINE[-1], "operator": "test.last"}]
    job = watched_job(lab, nodes, LocalExecutor(lab.plugins), max_restarts=100)
    is_hung, said, warnings = threading.Event(), threading.Semaphore(0), []

    def run():
        try:
            job.run()
        finally:
            # On a busy machine an epoch may get stuck before: that must not leave the test waiting.
            said.release(2)

    class Listening(logging.Handler):
        def emit(self, record):
            if record.getMessage().startswith(COMMIT):
                warnings.append(record.getMessage())
                said.release()

    handler = Listening()
    logging.getLogger("arroyo_core.runtime.watch").addHandler(handler)
    lab.trace.on_commit = lambda token: is_hung.wait()
    try:
        thread = threading.Thread(target=run)
        thread.start()
        said.acquire()
        said.acquire()
        is_hung.set()
        thread.join()
    finally:
        logging.getLogger("arroyo_core.runtime.watch").removeHandler(handler)
    assert job.result.is_finished
    assert len(warnings) >= 2
