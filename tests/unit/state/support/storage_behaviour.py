"""What every store must do; each function takes an empty `StorageProvider`."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import FencedError, ParquetBackend, StorageProvider
from arroyo_core.state.failures import MissingFileError, OversizedFileError

RACES = 200


def a_written_file_is_read_back(storage: StorageProvider) -> None:
    storage.write("a/b.bin", b"\x00content")
    assert storage.read("a/b.bin") == b"\x00content"
    assert storage.size("a/b.bin") == 8
    with storage.open("a/b.bin") as file:
        file.seek(3)
        assert file.read(2) == b"nt"


def a_write_replaces(storage: StorageProvider) -> None:
    storage.write("a", b"first and longer")
    storage.write("a", b"second")
    assert storage.read("a") == b"second"


def an_empty_file_is_a_file(storage: StorageProvider) -> None:
    storage.write("a", b"")
    assert storage.read("a") == b""
    assert storage.exists("a")


def no_more_is_read_than_is_allowed(storage: StorageProvider) -> None:
    storage.write("a/b", b"12345")
    storage.write("a/empty", b"")
    assert storage.read("a/b", max_bytes=5) == b"12345"
    assert storage.read("a/empty", max_bytes=5) == b""
    with pytest.raises(OversizedFileError, match=r"a/b has more than 4 bytes, and is not read; OPTION allows more"):
        storage.read("a/b", max_bytes=4, option="OPTION")
    with pytest.raises(MissingFileError):
        storage.read("a/none", max_bytes=4)


def a_missing_file_is_named(storage: StorageProvider) -> None:
    with pytest.raises(StateError, match=r"cannot read .*/job/none: there is no such file"):
        storage.read("job/none")
    assert not storage.exists("job/none")


def a_listing_has_every_file_below_the_folder_and_no_other(storage: StorageProvider) -> None:
    for path in ("job/1/a", "job/1/b", "job/2/a", "job-2/a", "other"):
        storage.write(path, path.encode())
    assert [(file.path, file.size_bytes) for file in storage.list("job")] == [
        ("job/1/a", 7),
        ("job/1/b", 7),
        ("job/2/a", 7),
    ]
    assert storage.list("nothing/here") == []


def a_deleted_file_is_gone_and_may_be_deleted_again(storage: StorageProvider) -> None:
    storage.write("a/b", b"x")
    storage.delete("a/b")
    storage.delete("a/b")
    assert not storage.exists("a/b")
    assert storage.list("a") == []


def an_existing_file_is_not_created_again(storage: StorageProvider) -> None:
    assert storage.put_if_absent("a/b", b"first")
    assert not storage.put_if_absent("a/b", b"second")
    assert storage.read("a/b") == b"first"


def a_lost_answer_to_a_create_is_recovered(storage: StorageProvider) -> None:
    assert storage.put_if_absent("a/b", b"mine")
    assert storage.put_if_absent("a/b", b"mine")


def no_path_leaves_the_root(storage: StorageProvider) -> None:
    for path in ("../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a\\b", "s3://bucket/x"):
        with pytest.raises(StateError, match="not a plain relative path"):
            storage.read(path)


def a_provider_survives_pickling(storage: StorageProvider) -> None:
    storage.write("a", b"x")
    assert pickle.loads(pickle.dumps(storage)).read("a") == b"x"


def of_two_racing_writers_exactly_one_publishes_an_epoch(storage: StorageProvider) -> None:
    backends = [ParquetBackend(storage, "job") for _ in range(2)]

    def attempt(backend: ParquetBackend, epoch: int) -> bytes | FencedError:
        try:
            return backend.publish(CheckpointMetadata(job_id="job", epoch=epoch)).attempt_id
        except FencedError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        for epoch in range(1, RACES + 1):
            outcomes = list(pool.map(attempt, backends, [epoch, epoch]))
            winners = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
            assert len(winners) == 1, outcomes
            assert backends[0].load_checkpoint_metadata("job", epoch).attempt_id == winners[0]


BEHAVIOURS = [
    a_written_file_is_read_back,
    a_write_replaces,
    an_empty_file_is_a_file,
    no_more_is_read_than_is_allowed,
    a_missing_file_is_named,
    a_listing_has_every_file_below_the_folder_and_no_other,
    a_deleted_file_is_gone_and_may_be_deleted_again,
    an_existing_file_is_not_created_again,
    a_lost_answer_to_a_create_is_recovered,
    no_path_leaves_the_root,
    a_provider_survives_pickling,
    of_two_racing_writers_exactly_one_publishes_an_epoch,
]
