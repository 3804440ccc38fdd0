"""How a wish to stop reaches a job and its sources."""

import pytest

from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.lanes import ThreadLanes
from arroyo_core.runtime.stop import StopFile, StopSignal

ENDLESS = [
    {"id": "in", "operator": "test.rows", "config": {"count": 20, "then_wait": True}},
    {"id": "out", "operator": "test.sink", "inputs": ["in"]},
]


@pytest.mark.parametrize("mode", list(StopMode))
def test_a_file_stops_a_running_job_that_waits_for_rows(lab, mode):
    job = lab.job(ENDLESS, lanes=ThreadLanes(), checkpoint={"interval": "1h"})
    lab.trace.on_wait = lambda: StopFile.at(lab.folder, "lab", 1).write(mode)
    result = job.run()
    assert not result.is_finished
    # Sources may see the file before the driver does: an epoch that ended well counts in any mode.
    assert len(lab.trace.numbers()) in ((0, 20) if mode is StopMode.IMMEDIATE else (20,))


def test_the_file_of_an_earlier_generation_stops_nothing(lab):
    StopFile.at(lab.folder, "lab", 7).write(StopMode.CHECKPOINT)
    nodes = [{"id": "in", "operator": "test.rows"}, {"id": "out", "operator": "test.sink", "inputs": ["in"]}]
    assert lab.run(nodes).is_finished


def test_a_request_before_the_job_listens_is_not_lost():
    stop, heard = StopSignal(), []
    stop.request(StopMode.GRACEFUL)
    stop.watch(heard.append)
    assert heard == [StopMode.GRACEFUL]


def test_an_epoch_that_cannot_be_asked_to_end_ends_by_itself(lab, monkeypatch, caplog):
    nodes = [
        {"id": "in", "operator": "test.rows", "config": {"count": 20, "then_wait": True}},
        {"id": "out", "operator": "test.sink", "inputs": ["in"]},
    ]
    job = lab.job(nodes, lanes=ThreadLanes(), checkpoint={"interval": "1s"})
    lab.trace.on_wait = job.stop.request
    monkeypatch.setattr(
        StopFile, "end_epoch", lambda self, **kwargs: (_ for _ in ()).throw(OSError("the store is away"))
    )
    result = job.run()
    assert not result.is_finished
    assert len(lab.trace.numbers()) == 20
    assert "could not be asked to end: the store is away" in caplog.text


def test_the_end_of_an_epoch_does_not_take_the_place_of_a_wish_that_is_more_urgent(lab):
    file = StopFile.at(lab.folder, "lab", 1)
    file.end_epoch()
    assert file.read() is StopMode.CHECKPOINT
    file.write(StopMode.IMMEDIATE)
    file.end_epoch()
    assert file.read() is StopMode.IMMEDIATE


def test_a_file_that_makes_no_sense_is_no_request(lab):
    file = StopFile.at(lab.folder, "lab", 1)
    assert file.read() is None
    file._storage.write(file._path, b"maybe")
    assert file.read() is None
