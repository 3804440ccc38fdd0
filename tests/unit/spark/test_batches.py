"""Which batch an epoch gets, and when a batch is done."""

from __future__ import annotations

import pickle
import threading
from types import SimpleNamespace

import pytest

from arroyo_core.api import GivenPosition
from arroyo_core.errors import ExternalError, SetupError
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark import batches
from arroyo_core.spark.batches import BatchError, BatchFeed, BatchGiver, _Batch, check_follows

PLAN = SimpleNamespace(job_id="job", checkpoint=SimpleNamespace(url="file:///state"))


def request(epoch, *, stop=None, interval_ms=1000):
    return SimpleNamespace(epoch=epoch, stop=stop, budget=SimpleNamespace(interval_ms=interval_ms))


def batch(number, stream="query"):
    return _Batch(GivenPosition(stream, number), frame=object())


class Job:
    """A giver whose state has the position that the test sets."""

    def __init__(self, monkeypatch):
        self.position = None
        self.stop = StopSignal()
        self.giver = BatchGiver("bids", None, self.stop)
        monkeypatch.setattr(batches, "read_position", lambda *_: self.position)

    def give(self, epoch, **how):
        return self.giver.give(PLAN, request(epoch, **how))

    def waiting(self, epoch):
        """An epoch that waits for a batch; what it comes to is in the list."""
        came = []

        def wait():
            try:
                came.append(self.give(epoch))
            except Exception as error:
                came.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread, came

    def commit(self, epoch):
        self.giver.on_epoch(SimpleNamespace(epoch=epoch), None)


@pytest.fixture
def job(monkeypatch):
    return Job(monkeypatch)


def test_a_batch_goes_to_one_epoch_and_is_done_when_that_is_committed(job):
    first = batch(0)
    job.giver.offer(first)
    inputs = job.give(1)
    assert inputs.positions == {"bids": GivenPosition("query", 0)}
    # The next epoch runs while the first one is published: it must not get the same batch.
    job.position = GivenPosition("query", 0)
    thread, came = job.waiting(2)
    thread.join(0.3)
    assert (came, first.is_done.is_set()) == ([], False)
    job.commit(1)
    assert first.is_done.is_set()
    job.giver.offer(batch(1))
    thread.join(10)
    assert came[0].positions == {"bids": GivenPosition("query", 1)}


def test_an_epoch_that_runs_again_gets_its_batch_again(job):
    job.giver.offer(batch(0))
    assert job.give(1).frames == job.give(1).frames


def test_a_batch_that_a_driver_before_has_published_is_done_without_an_epoch(job):
    job.position = GivenPosition("query", 4)
    again = batch(4)
    job.giver.offer(again)
    thread, came = job.waiting(6)
    assert again.is_done.wait(10)
    job.giver.offer(batch(5))
    thread.join(10)
    assert came[0].positions == {"bids": GivenPosition("query", 5)}


def test_an_epoch_to_end_at_gets_no_batch_and_does_not_wait(job):
    assert job.give(1, stop=StopMode.CHECKPOINT) is None
    assert job.give(1, interval_ms=0) is None


def test_a_stop_and_a_cancelled_epoch_wait_for_no_batch(job):
    thread, came = job.waiting(1)
    assert "waiting for a batch" in job.giver.waiting() or thread.is_alive()
    job.giver.cancel()
    thread.join(10)
    assert isinstance(came[0], ExternalError)
    job.giver.end()
    thread, came = job.waiting(1)
    job.stop.request(StopMode.CHECKPOINT)
    thread.join(10)
    assert came == [None]


def test_a_stop_at_once_begins_no_epoch(job):
    thread, came = job.waiting(1)
    job.stop.request(StopMode.IMMEDIATE)
    thread.join(10)
    assert isinstance(came[0], ExternalError)


def test_what_is_said_while_it_waits_changes_so_that_nobody_takes_it_for_stuck(job):
    thread, _ = job.waiting(1)
    while not job.giver.waiting():
        pass
    assert job.giver.waiting() != job.giver.waiting()
    job.stop.request()
    thread.join(10)
    assert job.giver.waiting() == ""


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (GivenPosition("other", 7), "batch 0 is of query query, .* up to batch 7 of query other: .*checkpointLocation"),
        (GivenPosition(), "has read a whole DataFrame"),
    ],
)
def test_a_batch_of_another_stream_is_refused_with_both_ids(job, last, message):
    job.position = last
    job.giver.offer(batch(0))
    with pytest.raises(BatchError, match=message):
        job.give(8)


def test_the_first_batch_follows_nothing():
    check_follows("job", "bids", None, GivenPosition("query", 12))


def test_a_feed_that_is_sent_elsewhere_is_one_that_has_not_started():
    feed = BatchFeed(PLAN, node_id="bids", query="q", max_restarts=3)
    sent = pickle.loads(pickle.dumps(feed))
    assert (sent.node_id, sent.query, sent.max_restarts, sent.plan) == ("bids", "q", 3, PLAN)
    sent.close()


def test_a_feed_needs_a_place_for_checkpoints():
    with pytest.raises(SetupError, match="checkpoint"):
        BatchFeed(SimpleNamespace(checkpoint=SimpleNamespace(url=None)), node_id="bids")
