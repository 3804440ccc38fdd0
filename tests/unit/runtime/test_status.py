"""What a driver leaves beside its checkpoints for others to read, and that it never gets in the way."""

from __future__ import annotations

import shutil

import pytest

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime import status
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.status import Ending, StatusWriter, leave_stopped, read_status
from arroyo_core.state import ParquetBackend, StorageProvider, paths

from ...waiting import wait_until


@pytest.fixture
def backend(tmp_path):
    backend = ParquetBackend(StorageProvider(str(tmp_path)), "job")
    backend.claim_generation()
    return backend


def run(backend, *, during=lambda: None, error=None, is_finished=False):
    job = JobResult(job_id="job", generation=backend.generation, is_finished=is_finished)
    with StatusWriter(backend.storage, "job") as writer:
        writer.watch(job)
        writer.on_start(job)
        during()
        if error is not None:
            raise error


def ending_of(backend):
    return read_status(backend.storage, "job", backend.generation).ending


def test_it_tells_how_the_driver_ended(backend):
    seen = []
    run(backend, during=lambda: seen.append(ending_of(backend)), is_finished=True)
    assert ending_of(backend) is Ending.FINISHED
    run(backend, during=lambda: seen.append(ending_of(backend)))
    assert (*seen, ending_of(backend)) == (None, None, Ending.STOPPED)
    with pytest.raises(ValueError, match="boom"):
        run(backend, error=ValueError("boom"))
    failed = read_status(backend.storage, "job", 1)
    assert (failed.ending, failed.error) == (Ending.FAILED, "boom")
    with pytest.raises(KeyboardInterrupt):
        run(backend, error=KeyboardInterrupt())
    assert ending_of(backend) is Ending.INTERRUPTED


def test_it_is_written_again_while_the_job_runs(backend, monkeypatch):
    monkeypatch.setattr(status, "BEAT_S", 0.01)

    def watch():
        first = read_status(backend.storage, "job", 1).written_us
        wait_until(lambda: read_status(backend.storage, "job", 1).written_us > first)

    run(backend, during=watch)


def test_state_that_was_removed_stays_removed(backend, tmp_path):
    run(backend, during=lambda: shutil.rmtree(tmp_path / "job"))
    assert not (tmp_path / "job").exists()


def test_a_driver_of_another_life_of_the_job_is_not_written_over(backend, tmp_path):
    def start_over():
        shutil.rmtree(tmp_path / "job")
        other = ParquetBackend(backend.storage, "job")
        assert other.claim_generation() == backend.generation
        leave_stopped(other)

    with pytest.raises(ValueError, match="late"):
        run(backend, during=start_over, error=ValueError("late"))
    assert ending_of(backend) is Ending.STOPPED


def test_a_store_that_fails_does_not_fail_the_job(backend, monkeypatch):
    monkeypatch.setattr(backend.storage._driver, "write", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    run(backend)
    assert read_status(backend.storage, "job", 1) is None


def test_what_cannot_be_read_is_no_status(backend):
    backend.storage.write(paths.driver_status("job", 1), b"{")
    assert read_status(backend.storage, "job", 1) is None


def test_it_goes_with_its_generation(backend):
    run(backend)
    later = ParquetBackend(backend.storage, "job")
    later.claim_generation()
    run(later)
    for epoch in (1, 2):
        later.publish(CheckpointMetadata(job_id="job", epoch=epoch))
    later.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=2), 0, 2)
    assert read_status(backend.storage, "job", 1) is None
    assert ending_of(later) is Ending.STOPPED
