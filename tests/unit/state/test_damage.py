"""Damaged stores: an error that names the file, or the right answer; never a wrong one."""

from __future__ import annotations

import random

import pytest

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import StorageProvider, files, paths
from arroyo_core.state.envelope import seal, unseal

from .support.recording import DictDriver, dict_storage
from .support.state_life import Life, contents, expected_at

EPOCH = 5


@pytest.fixture(scope="module")
def stored():
    driver = DictDriver()
    Life(StorageProvider("dict://", driver=driver)).run(EPOCH)
    return driver.files


def restore(stored: dict[str, bytes], parallelism: int = 2):
    job = Life(dict_storage(stored)).job
    checkpoint = job.backend.resolve_latest().checkpoint
    return contents(job.open_at(checkpoint, parallelism), checkpoint.epoch)


def attempt(stored: dict[str, bytes]):
    try:
        return restore(stored)
    except StateError as error:
        return error


def needed_files(stored):
    """The latest checkpoint's metadata, and every data file it refers to."""
    job = Life(dict_storage(stored)).job
    checkpoint = job.backend.resolve_latest().checkpoint
    tables = checkpoint.operators[0].table_checkpoint_metadata.values()
    data = {f.path for t in tables for f in (*t.global_keyed.files, *t.expiring_keyed_time.files)}
    return [paths.checkpoint_metadata("job", EPOCH), *sorted(data)]


def damaged(stored, path, data):
    return stored | {path: data}


@pytest.mark.parametrize("part_by_part", [False, True], ids=["whole files", "row groups"])
def test_a_flipped_bit_anywhere_is_never_a_wrong_answer(stored, monkeypatch, part_by_part):
    if part_by_part:
        monkeypatch.setattr(files, "WHOLE_READ_BYTES", 0)
    chance = random.Random(7)
    caught = 0
    for path in needed_files(stored):
        data = stored[path]
        for _ in range(4):
            flipped = bytearray(data)
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            outcome = attempt(damaged(stored, path, bytes(flipped)))
            if isinstance(outcome, StateError):
                assert path in str(outcome)
                caught += 1
            else:
                assert outcome == expected_at(EPOCH)
    assert caught >= len(needed_files(stored))


@pytest.mark.parametrize("keep", [0, 7, 0.5, -1])
def test_a_cut_file_is_named(stored, keep):
    for path in needed_files(stored):
        length = len(stored[path])
        cut = int(length * keep) if isinstance(keep, float) else (keep if keep >= 0 else length + keep)
        with pytest.raises(StateError) as caught:
            restore(damaged(stored, path, stored[path][:cut]))
        assert path in str(caught.value)


def test_a_missing_data_file_is_named_with_the_checkpoint_that_is_still_whole(stored):
    newest = [path for path in needed_files(stored) if path.startswith(f"job/checkpoints/{EPOCH}/table")]
    lost = {path: data for path, data in stored.items() if path != newest[0]}
    with pytest.raises(StateError, match=f"the newest checkpoint that is whole is epoch {EPOCH - 1}") as caught:
        restore(lost)
    assert newest[0] in str(caught.value)


def test_going_back_to_a_whole_checkpoint_is_done_only_on_request(stored):
    path = paths.checkpoint_metadata("job", EPOCH)
    job = Life(dict_storage(damaged(stored, path, b"garbage"))).job
    with pytest.raises(StateError, match="not a metadata file of this format"):
        job.backend.resolve_latest()
    resolution = job.backend.resolve_latest(allow_fallback=True)
    assert resolution.checkpoint.epoch == EPOCH - 1
    assert resolution.skipped_epochs == (EPOCH,)
    assert resolution.next_epoch == EPOCH + 1
    assert contents(job.open_at(resolution.checkpoint, 1), EPOCH - 1) == expected_at(EPOCH - 1)


def test_the_file_of_another_epoch_is_not_taken_for_this_one(stored):
    other = stored[paths.checkpoint_metadata("job", EPOCH - 1)]
    with pytest.raises(StateError, match=f"is of job 'job', epoch {EPOCH - 1}"):
        restore(damaged(stored, paths.checkpoint_metadata("job", EPOCH), other))


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "other/checkpoints/1/x.parquet", "job/x", "job\\x"]
)
def test_a_reference_that_leaves_the_job_is_refused(stored, path):
    name = paths.checkpoint_metadata("job", EPOCH)
    metadata = unseal(stored[name], CheckpointMetadata, name=name)
    metadata.operators[0].table_checkpoint_metadata["offsets"].global_keyed.files[0].path = path
    with pytest.raises(StateError, match="path"):
        restore(damaged(stored, name, seal(metadata)))


def test_a_data_file_swapped_for_another_valid_one_is_noticed(stored):
    data = needed_files(stored)[1:]
    with pytest.raises(StateError):
        restore(damaged(stored, data[0], stored[data[1]]))
