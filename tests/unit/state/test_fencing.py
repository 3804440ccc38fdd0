"""Who may publish an epoch, when drivers sleep through what others do."""

from __future__ import annotations

import pytest

from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    OperatorCheckpointMetadata,
    StateFile,
    TableCheckpointMetadata,
    TableType,
)
from arroyo_core.state import EpochTakenError, FencedError, StorageProvider

from .support.drivers import driver, publish
from .support.recording import DictDriver


@pytest.fixture
def storage():
    return StorageProvider("dict://", driver=DictDriver())


def test_a_driver_that_slept_through_a_cleanup_cannot_publish_an_old_epoch_again(storage):
    old = driver(storage)
    publish(old, 1)
    put = storage.put_if_absent

    def put_late(path, data):
        # The old driver has looked at the claims, and falls asleep; the new one goes on, and deletes epoch 2.
        storage.put_if_absent = put
        new = driver(storage)
        publish(new, 2, 3, 4)
        new.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=4), 0, 3)
        assert new.list_epochs() == [3, 4]
        return put(path, data)

    storage.put_if_absent = put_late
    with pytest.raises(FencedError, match="generation 2 owns the job now"):
        publish(old, 2)
    assert driver(storage).resolve_latest().checkpoint.epoch == 4


def test_an_epoch_that_was_created_at_the_very_end_of_a_reign_belongs_to_the_successor(storage):
    old = driver(storage)
    publish(old, 1)
    put, successors = storage.put_if_absent, []

    def put_late(path, data):
        storage.put_if_absent = put
        successors.append(driver(storage))
        return put(path, data)

    storage.put_if_absent = put_late
    with pytest.raises(FencedError):
        publish(old, 2)
    (new,) = successors
    with pytest.raises(EpochTakenError):
        publish(new, 2)
    assert new.resolve_latest().checkpoint.epoch == 2


def test_the_turn_of_a_driver_that_was_replaced_is_over(storage):
    old = driver(storage)
    old.check_turn(1)
    new = driver(storage)
    with pytest.raises(FencedError, match="epoch 1 cannot be published by generation 1"):
        old.check_turn(1)
    new.check_turn(1)


def test_an_epoch_that_another_driver_published_is_not_this_ones_turn(storage):
    publish(driver(storage), 1)
    new = driver(storage)
    with pytest.raises(EpochTakenError, match="epoch 1 was published by another attempt of generation 1"):
        new.check_turn(1)
    publish(new, 2)
    new.check_turn(2)


def test_a_driver_that_loses_its_job_during_a_cleanup_leaves_the_files_of_a_checkpoint_to_go_back_to(storage):
    old = driver(storage)
    file = StateFile(path="job/checkpoints/1/table-op-t-0-1.parquet", size_bytes=1)
    table = TableCheckpointMetadata(table_type=TableType.GLOBAL_KEY_VALUE)
    table.global_keyed.files.append(file)
    storage.write(file.path, b"x")
    operator = OperatorCheckpointMetadata(table_checkpoint_metadata={"t": table})
    old.publish(CheckpointMetadata(job_id="job", epoch=1, operators=[operator]))
    publish(old, 2, 3)
    delete, restored = storage.delete, []

    def delete_late(path):
        # Before the first delete a new driver takes over, and goes back to epoch 1.
        storage.delete = delete
        new = driver(storage)
        restored.append(new.load_checkpoint_metadata("job", 1))
        new.prepare_checkpoint_load(restored[0])
        delete(path)

    storage.delete = delete_late
    old.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=3), 0, 3)
    assert old.list_epochs() == [3]
    old.prepare_checkpoint_load(restored[0])


def test_a_driver_that_lost_its_job_deletes_nothing(storage):
    old = driver(storage)
    publish(old, 1, 2, 3)
    assert old.plan_cleanup(3).metadata
    new = driver(storage)
    # Published by the old driver at the last moment, while the new one was at the same epoch.
    storage.write("job/checkpoints/3/table-op-t-0-1.parquet", b"of the new driver")
    before = dict(storage._driver.files)
    old.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=3), 0, 3)
    assert storage._driver.files == before
    assert new.plan_cleanup(3).metadata
