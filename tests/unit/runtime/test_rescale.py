"""A job that goes on with another parallelism: who asks, what is refused, and that all rows count once."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import count, groupby

import msgspec
import pytest
from arroyo_testing.lanes import InlineLanes
from arroyo_testing.live import live_executor

from arroyo_core.errors import ConfigError, SetupError
from arroyo_core.runtime import lives as lives_module
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.job import Job, SilentListener
from arroyo_core.runtime.lives import JobLives
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.rescale import RescaleFile, RescaleSignal, Wish, with_former_nodes
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.status import Ending, read_status
from arroyo_core.runtime.stop import StopFile, StopSignal
from arroyo_core.state import get_storage_provider

# The sums are added up before the shuffle, by nodes that are there only where there is one.
NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 96, "batch": 2}},
    {"id": "sums", "operator": "test.sums", "inputs": ["rows"]},
    {"id": "out", "operator": "test.sink", "inputs": ["sums"]},
    {"id": "all", "operator": "test.passing", "inputs": ["rows"], "parallelism": 2, "config": {"keys": ["n"]}},
    {"id": "kept", "operator": "test.sink", "inputs": ["all"]},
]
SUMS = {key: sum(n for n in range(96) if n % 5 == key) for key in range(5)}


@pytest.fixture(params=["live", "one after the other"])
def executor(request, lab):
    executor = live_executor(lab.plugins) if request.param == "live" else LocalExecutor(lab.plugins)
    yield executor
    executor.close()


def plan(lab, parallelism, nodes=NODES):
    return lab.plan(nodes, parallelism=parallelism, checkpoint={"interval": "1h", "rows": 12})


def lives(lab, executor, **options):
    return JobLives(
        executor=executor,
        plugins=lab.plugins,
        storage_url=lab.folder,
        has_status=True,
        replan=lambda parallelism: plan(lab, parallelism),
        **options,
    )


class Asks(SilentListener):
    """Asks for a parallelism when an epoch is committed, by its number."""

    def __init__(self, wishes, ask):
        self.wishes = wishes
        self.ask = ask
        self.starts = 0
        self.seen = []

    def on_start(self, job):
        self.starts += 1

    def on_epoch(self, result, job):
        self.seen.append((result.epoch, job.parallelism))
        if result.epoch in self.wishes:
            self.ask(self.wishes[result.epoch])


def rows_of(lab):
    """What came out: the sums, and how often each number did."""
    sums = {row["key"]: row["sum"] for row in lab.trace.rows if "sum" in row}
    return sums, Counter(row["n"] for row in lab.trace.rows if "n" in row)


def test_rows_flow_through_one_parallelism_after_the_other_and_count_once(lab, executor, caplog):
    signal = RescaleSignal()
    listener = Asks({2: 3, 5: 2}, signal.request)
    with caplog.at_level(logging.WARNING):
        result = lives(lab, executor, listener=listener, rescale=signal).run(plan(lab, 1), StartOptions())
    assert rows_of(lab) == (SUMS, Counter(range(96)))
    assert (result.is_finished, result.source_rows, result.restarts, result.resumed_from) == (True, 96, 0, 0)
    assert (result.generation, result.parallelism, listener.starts) == (3, 2, 1)
    assert result.operators["out"].rows_received == 5
    assert [epoch for epoch, _ in listener.seen] == list(range(1, result.epochs + 1))
    widths = [width for _, width in listener.seen]
    # One node has a parallelism of its own, 2, which stays.
    assert [width for width, _ in groupby(widths)] == [2, 3, 2]
    assert "lab goes on with 3 subtasks beside each other after epoch" in caplog.text
    assert "sums:partial" in result.plan.nodes


def test_nodes_with_a_parallelism_of_their_own_keep_it(lab):
    assert {name: node.parallelism for name, node in plan(lab, 3).nodes.items()} == {
        "rows": 3,
        "sums:partial": 3,
        "sums": 3,
        "out": 3,
        "all": 2,
        "kept": 3,
    }
    assert set(with_former_nodes(plan(lab, 1), plan(lab, 3)).nodes) == set(plan(lab, 3).nodes)


def test_a_file_asks_a_running_job(lab, tmp_path):
    nodes = [{**NODES[0], "config": {"count": 96, "batch": 2, "then_wait": True}}, *NODES[1:]]
    executor, stop = live_executor(lab.plugins), StopSignal()

    def on_wait():
        if not (tmp_path / "lab/generations/2.claim").exists():
            RescaleFile.at(lab.folder, "lab", 1).write(3)
        else:
            stop.request()

    lab.trace.on_wait = on_wait
    job = lives(lab, executor, stop=stop)
    object.__setattr__(job, "replan", lambda parallelism: plan(lab, parallelism, nodes))
    try:
        result = job.run(plan(lab, 1, nodes), StartOptions())
    finally:
        executor.close()
    assert (result.generation, result.parallelism, result.is_finished) == (2, 3, False)
    assert rows_of(lab)[1] == Counter(range(96))
    status = read_status(get_storage_provider(lab.folder), "lab", 2)
    assert (status.ending, status.metrics["parallelism"]) == (Ending.STOPPED, 3)


def refuse(plan):
    raise SetupError("Spark runs 2 tasks at once, and the pipeline has 9 subtasks beside each other")


def test_what_cannot_be_is_refused_in_one_sentence_and_the_job_goes_on(lab, executor, caplog):
    signal = RescaleSignal()
    listener = Asks({2: 9}, signal.request)
    job = lives(lab, executor, listener=listener, rescale=signal, check=refuse)
    with caplog.at_level(logging.WARNING):
        result = job.run(plan(lab, 1), StartOptions())
    assert (result.is_finished, result.generation) == (True, 1)
    assert rows_of(lab) == (SUMS, Counter(range(96)))
    assert caplog.messages == [
        "parallelism 9 is refused, the job goes on as before: Spark runs 2 tasks at once, and the pipeline has 9 "
        "subtasks beside each other"
    ]


def test_what_changes_nothing_is_said_and_not_done(lab, executor, caplog):
    signal = RescaleSignal()
    listener = Asks({2: 1}, signal.request)
    with caplog.at_level(logging.WARNING):
        result = lives(lab, executor, listener=listener, rescale=signal).run(plan(lab, 1), StartOptions())
    assert (result.is_finished, result.generation) == (True, 1)
    assert caplog.messages == ["parallelism 1 changes nothing: the job goes on as before"]


def test_a_stop_and_a_wish_for_the_generation_before_are_heard_by_the_one_after(lab, monkeypatch):
    """Whoever asks while the generations change asks the former one."""
    jobs = []

    def between(plan):
        if len(jobs) == 1:
            RescaleFile.at(lab.folder, "lab", 1).write(2)
        if len(jobs) == 2:
            StopFile.at(lab.folder, "lab", 2).write(StopMode.CHECKPOINT)
        jobs.append(plan)
        return plan

    monkeypatch.setattr(lives_module, "store_pickled", between)
    signal = RescaleSignal()
    listener = Asks({2: 3}, signal.request)
    result = lives(lab, LocalExecutor(lab.plugins), listener=listener, rescale=signal).run(plan(lab, 1), StartOptions())
    assert (result.is_finished, result.generation, [each.width for each in jobs]) == (False, 3, [2, 3, 2])


def test_a_wish_is_told_once_and_kept_while_nobody_listens(tmp_path):
    signal, heard = RescaleSignal(), []
    signal.request(2)
    signal.request(3)
    signal.watch(heard.append)
    assert heard == [3]
    signal.watch(None)
    signal.request(4)
    signal.watch(heard.append)
    signal.pass_on(Wish(5, "a"))
    signal.pass_on(Wish(5, "a"))
    assert heard == [3, 4, 5]


@pytest.mark.parametrize("wanted", [0, -1, 10**9])
def test_a_number_that_no_pipeline_can_have_is_an_error(wanted, tmp_path):
    with pytest.raises(ConfigError, match="parallelism must be between 1 and"):
        RescaleSignal().request(wanted)
    with pytest.raises(ConfigError, match="parallelism must be between 1 and"):
        RescaleFile.at(tmp_path.as_uri(), "job", 1).write(wanted)


@pytest.mark.parametrize("content", [b"", b"3", b'{"parallelism": 0, "id": "x"}', b'{"parallelism": "3"}', b"\xff"])
def test_a_file_that_makes_no_sense_is_no_request(content, tmp_path):
    file = RescaleFile.at(tmp_path.as_uri(), "job", 1)
    assert file.read() is None
    file._storage.write(file._path, content)
    assert file.read() is None


def test_a_file_is_read_as_it_was_written_and_each_request_is_one(tmp_path):
    file = RescaleFile.at(tmp_path.as_uri(), "job", 1)
    file.write(3)
    first = file.read()
    file.write(3)
    second = file.read()
    assert (first.parallelism, second.parallelism) == (3, 3)
    assert first != second
    assert msgspec.json.decode(msgspec.json.encode(first), type=Wish) == first


def drive(lab, plan_of, events):
    """Run a job that is rescaled from 1 to 3 when its first epoch is committed, and kill it after so many events.

    Whether it came to its end before.
    """
    signal, result, at = RescaleSignal(), None, plan_of(1)
    while True:
        job = Job(
            at,
            LocalExecutor(lab.plugins),
            plugins=lab.plugins,
            storage_url=lab.folder,
            lanes=InlineLanes(),
            rescale=signal,
            replan=plan_of,
            before=result,
            listener=Asks({1: 3}, signal.request),
        )
        lab.ending.callback(job.close)
        job.begin()
        while not job.is_ended:
            if events == 0:
                return False
            job.step()
            events -= 1
        result = job.result
        job.close()
        if job.next_plan is None:
            return True
        at = job.next_plan


def test_a_kill_at_any_event_of_a_rescale_loses_nothing_and_doubles_nothing(lab, tmp_path):
    nodes = [{"id": "rows", "operator": "test.rows", "config": {"count": 30}}, *NODES[1:]]
    found = []
    for events in count():
        lab.folder = (tmp_path / str(events)).as_uri()
        lab.trace.committed.clear()
        is_ended = drive(lab, lambda width: plan(lab, width, nodes), events)
        lab.run(nodes, parallelism=1, checkpoint={"interval": "1h", "rows": 12})
        # A commit that is made again makes the same rows visible.
        shown = {(epoch, *rows[0]): rows for epoch, rows in lab.trace.committed if rows}
        rows = [row for rows in shown.values() for row in rows]
        assert Counter(row["n"] for row in rows if "n" in row) == Counter(range(30)), events
        sums = {row["key"]: row["sum"] for row in rows if "sum" in row}
        assert sums == {key: sum(n for n in range(30) if n % 5 == key) for key in range(5)}, events
        found.append(events)
        if is_ended:
            break
    assert len(found) > 10
