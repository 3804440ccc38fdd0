"""Stores that create in two steps are refused before a job's first claim; those that create exclusively are not."""

from __future__ import annotations

import threading
import time
import uuid
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from arroyo_core.errors import Domain, RetryHint
from arroyo_core.state import ParquetBackend, StorageProvider, exclusive, paths
from arroyo_core.state.exclusive import Proof, required_proof
from arroyo_core.state.failures import StorageError, UnsafeStorageError
from arroyo_core.state.local_storage import LocalDriver


class SharedMemory(MemoryFileSystem):
    """Files of all its instances; each test has a root of its own."""

    cachable = False
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]


class DefaultCreate(SharedMemory):
    """fsspec's own create: a look, then a write."""

    protocol = "default-create"
    pipe_file = AbstractFileSystem.pipe_file


class LooksThenWrites(SharedMemory):
    """A create of its own that is no better, with a window as short as a call over a network."""

    protocol = "looks-then-writes"

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        # The probe that is tested has to hit this gap by chance, as with a real store.
        time.sleep(0.001)
        super().pipe_file(path, value)


class IgnoresTheCondition(SharedMemory):
    """As some servers that speak S3's protocol do."""

    protocol = "ignores-the-condition"

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        super().pipe_file(path, value)


class CreatesExclusively(SharedMemory):
    """Lets one writer in at a time."""

    protocol = "creates-exclusively"
    lock = threading.Lock()
    creates: ClassVar[list[str]] = []

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        with self.lock:
            if mode == "create":
                self.creates.append(path)
                if self.exists(path):
                    raise FileExistsError(path)
            # As long as the gap of the class above: who comes meanwhile waits for the lock.
            time.sleep(0.001)
            super().pipe_file(path, value)


class VouchesForItself(LooksThenWrites):
    """It is believed."""

    protocol = "vouches-for-itself"
    creates_exclusively = True


class Forbidden(SharedMemory):
    protocol = "forbidden"

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        raise PermissionError(13, "Access Denied")


KINDS = (DefaultCreate, LooksThenWrites, IgnoresTheCondition, CreatesExclusively, VouchesForItself, Forbidden)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.delenv(exclusive.OVERRIDE_VARIABLE, raising=False)
    for kind in KINDS:
        fsspec.register_implementation(kind.protocol, kind, clobber=True)


def backend_on(kind):
    return ParquetBackend(StorageProvider(f"{kind.protocol}://me:secret@{uuid.uuid4().hex}/state"), "job")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (DefaultCreate, "creates a file in two steps"),
        (LooksThenWrites, r"of 8 writers at once \d+ were told that they won"),
        (IgnoresTheCondition, "a second writer is not refused"),
    ],
)
def test_a_store_that_does_not_create_exclusively_is_refused_at_the_first_claim(kind, reason):
    backend = backend_on(kind)
    with pytest.raises(UnsafeStorageError, match=rf"cannot hold checkpoints: .*{reason}") as caught:
        backend.claim_generation()
    assert (caught.value.domain, caught.value.retry) == (Domain.USER, RetryHint.NO_RETRY)
    assert "secret" not in str(caught.value)
    assert exclusive.OVERRIDE_VARIABLE in str(caught.value), "it says how to run all the same"
    assert backend.storage.list_root() == [], "nothing is left, and nothing is claimed"


def test_a_store_that_creates_exclusively_is_raced_once_for_each_job():
    backend = backend_on(CreatesExclusively)
    CreatesExclusively.creates.clear()
    assert backend.claim_generation() == 1
    assert len(CreatesExclusively.creates) >= exclusive.RACES * exclusive.RACERS
    CreatesExclusively.creates.clear()
    assert ParquetBackend(backend.storage, "job").claim_generation() == 2
    assert len(CreatesExclusively.creates) == 1, "the claim itself"
    left = [file.path for file in backend.storage.list_root()]
    assert left == [paths.generation_claim("job", 1), paths.generation_claim("job", 2)]


def test_who_knows_better_is_let_through_with_a_warning(monkeypatch, caplog):
    monkeypatch.setenv(exclusive.OVERRIDE_VARIABLE, "allow")
    assert backend_on(LooksThenWrites).claim_generation() == 1
    (record,) = caplog.records
    assert "cannot hold checkpoints" in record.message
    assert "ARROYO_UNSAFE_STORAGE=allow" in record.message
    monkeypatch.setenv(exclusive.OVERRIDE_VARIABLE, "yes")
    with pytest.raises(UnsafeStorageError):
        backend_on(LooksThenWrites).claim_generation()


def test_a_filesystem_may_vouch_for_itself():
    assert backend_on(VouchesForItself).claim_generation() == 1


def test_a_store_that_fails_is_not_called_unsafe():
    with pytest.raises(StorageError, match="Access Denied"):
        backend_on(Forbidden).claim_generation()


def test_what_was_verified_needs_no_race(tmp_path):
    proofs = {
        str(tmp_path): Proof.NONE,
        tmp_path.as_uri(): Proof.NONE,
        f"local://{tmp_path}": Proof.NONE,
        "memory://state": Proof.NONE,
        "s3://bucket/state": Proof.SECOND_WRITER,
        "s3a://bucket/state": Proof.SECOND_WRITER,
        "creates-exclusively://state": Proof.RACE,
    }
    assert {url: required_proof(StorageProvider(url)) for url in proofs} == proofs
    # Whoever gives a driver answers for it.
    given = StorageProvider("creates-exclusively://state", driver=LocalDriver(str(tmp_path)))
    assert required_proof(given) is Proof.NONE
