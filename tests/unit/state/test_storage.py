"""The behaviour of stores over local files and memory, retries, and crashes of the local one."""

from __future__ import annotations

import errno
import os
import pickle
import uuid
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from arroyo_core.errors import SetupError, StateError
from arroyo_core.state import StorageProvider, get_storage_provider, local_storage
from arroyo_core.state.local_storage import LocalDriver

from .support.storage_behaviour import BEHAVIOURS


@pytest.fixture(params=["local", "file", "memory"])
def storage(request, tmp_path):
    urls = {"local": str(tmp_path / "x"), "file": f"file://{tmp_path}/y", "memory": f"memory://{uuid.uuid4().hex}"}
    return StorageProvider(urls[request.param])


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.__name__)
def test_every_store_behaves_alike(behaviour, storage):
    behaviour(storage)


class FlakyDriver(LocalDriver):
    """Fails the first `failures` writes with the given error, after the write took effect or before."""

    def __init__(self, root, *, failures, error, takes_effect=False):
        super().__init__(root)
        self.failures, self.error, self.takes_effect = failures, error, takes_effect

    def write(self, path, data, *, is_durable=True):
        self._fail(lambda: LocalDriver.write(self, path, data))
        super().write(path, data)

    def create(self, path, data):
        self._fail(lambda: LocalDriver.create(self, path, data))
        return super().create(path, data)

    def _fail(self, call):
        if self.failures:
            self.failures -= 1
            if self.takes_effect:
                call()
            raise self.error


def provider(tmp_path, **settings):
    slept = []
    storage = StorageProvider(str(tmp_path), driver=FlakyDriver(str(tmp_path), **settings), sleep=slept.append)
    return storage, slept


def test_an_outage_is_retried_with_growing_pauses(tmp_path):
    storage, slept = provider(tmp_path, failures=3, error=ConnectionResetError("reset"))
    storage.write("a", b"x")
    assert storage.read("a") == b"x"
    assert len(slept) == 3
    assert slept[0] < slept[2]


def test_an_outage_that_stays_is_an_error_that_names_the_file(tmp_path):
    storage, _ = provider(tmp_path, failures=99, error=TimeoutError("no answer"))
    with pytest.raises(StateError, match=r"cannot write .*/a/b: no answer \(tried 5 times\)"):
        storage.write("a/b", b"x")


def test_what_cannot_get_better_is_not_retried(tmp_path):
    storage, slept = provider(tmp_path, failures=1, error=OSError(errno.ENOSPC, "disk full"))
    with pytest.raises(StateError, match="disk full"):
        storage.write("a", b"x")
    assert slept == []


def test_a_create_whose_answer_was_lost_counts_as_created(tmp_path):
    storage, _ = provider(tmp_path, failures=1, error=ConnectionResetError("reset"), takes_effect=True)
    assert storage.put_if_absent("a", b"mine")


def test_a_short_write_is_noticed(tmp_path):
    class Cutting(LocalDriver):
        def write(self, path, data, *, is_durable=True):
            super().write(path, bytes(data)[:-1])

    storage = StorageProvider(str(tmp_path), driver=Cutting(str(tmp_path)), sleep=lambda _: None)
    with pytest.raises(StateError, match="3 bytes arrived of 4"):
        storage.write("a", b"1234")


def test_a_local_file_is_synced_before_it_is_visible_and_what_lies_beside_it_before_a_create(tmp_path, monkeypatch):
    events = []
    sync, replace, link = os.fsync, Path.replace, os.link
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("sync"), sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("visible"), replace(self, to))[1])
    monkeypatch.setattr(os, "link", lambda *a: (events.append("visible"), link(*a))[1])
    driver = LocalDriver(str(tmp_path))
    driver.write("a", b"x")
    driver.create("b", b"x")
    assert events == ["sync", "visible", "sync", "sync", "visible", "sync"]


def test_new_folders_are_synced_into_their_parents(tmp_path, monkeypatch):
    synced = []
    sync_folder = local_storage._sync_folder
    monkeypatch.setattr(local_storage, "_sync_folder", lambda path: (synced.append(path), sync_folder(path))[1])
    LocalDriver(str(tmp_path)).write("a/b/c", b"x")
    assert set(synced) == {tmp_path, tmp_path / "a"}


def test_a_failed_rename_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(self, target):
        raise OSError(errno.EIO, "refused")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="refused"):
        LocalDriver(str(tmp_path)).write("a", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_url_nobody_can_open_is_an_error_for_the_user():
    with pytest.raises(SetupError, match="cannot open the checkpoint URL 'nosuch://x'"):
        get_storage_provider("nosuch://x")


def test_a_relative_path_means_the_same_folder_in_every_working_directory(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    storage = StorageProvider("./state")
    storage.write("a", b"x")
    # As a task on an executor does.
    monkeypatch.chdir(tmp_path / "other")
    assert storage.url == str(tmp_path / "state")
    assert get_storage_provider(storage.url).read("a") == b"x"
    assert pickle.loads(pickle.dumps(storage)).read("a") == b"x"


def test_one_provider_per_url():
    assert get_storage_provider("memory://one") is get_storage_provider("memory://one")
    assert get_storage_provider("memory://one") is not get_storage_provider("memory://two")


class CachingFileSystem(MemoryFileSystem):
    """Remembers its listings, as clients of object stores do."""

    protocol = "caching"
    cachable = False
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]

    def __init__(self, **options):
        super().__init__(**options)
        self.remembered = {}

    def find(self, path, **options):
        return self.remembered.setdefault(path, super().find(path, **options))

    def info(self, path, **options):
        return self.remembered.setdefault(("info", path), super().info(path, **options))

    def invalidate_cache(self, path=None):
        self.remembered.clear()


def test_what_another_process_wrote_is_seen_where_a_client_caches_listings():
    fsspec.register_implementation("caching", CachingFileSystem, clobber=True)
    one, other = (StorageProvider("caching://store") for _ in range(2))
    one.write("a/1", b"x")
    assert [file.path for file in one.list("a")] == ["a/1"]
    assert one.size("a/1") == 1
    other.write("a/1", b"more")
    other.write("a/2", b"y")
    assert [(file.path, file.size_bytes) for file in one.list("a")] == [("a/1", 4), ("a/2", 1)]
    assert one.size("a/1") == 4


class RefusalError(OSError):
    """What an S3 client raises for an answer it has no better word for."""

    def __init__(self, code):
        super().__init__(errno.EIO, code)
        self.response = {"Error": {"Code": code}}


@pytest.mark.parametrize(
    ("codes", "created"), [(["PreconditionFailed"], False), (["412"], False), (["ConditionalRequestConflict"], True)]
)
def test_answers_of_stores_to_a_conditional_put_are_understood(codes, created, monkeypatch):
    storage = StorageProvider(f"memory://{uuid.uuid4().hex}", sleep=lambda _: None)
    filesystem = storage._driver._fs
    put = type(filesystem).pipe_file
    answers = list(codes)

    def pipe_file(path, value, mode="overwrite"):
        if mode == "create" and answers:
            raise OSError(errno.EIO, "translated") from RefusalError(answers.pop())
        put(filesystem, path, value, mode=mode)

    monkeypatch.setattr(filesystem, "pipe_file", pipe_file)
    storage.write("a" if not created else "b", b"theirs")
    assert storage.put_if_absent("a", b"mine") is created


def test_a_relative_path_is_meant_from_the_folder_of_the_moment(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        get_storage_provider("./state").write("x", name.encode())
    assert [(tmp_path / name / "state" / "x").read_bytes() for name in ("a", "b")] == [b"a", b"b"]


@pytest.mark.parametrize("method", ["write", "put_if_absent"])
def test_a_bucket_that_is_not_there_is_not_called_a_file(tmp_path, method):
    storage, _ = provider(tmp_path, failures=1, error=FileNotFoundError("The specified bucket does not exist"))
    with pytest.raises(StateError, match=r"cannot (write|create) .*/job/x: there is no such bucket or folder"):
        getattr(storage, method)("job/x", b"x")
