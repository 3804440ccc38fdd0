"""Storage that is compacted shows first that of two creates of one file only one succeeds."""

from __future__ import annotations

import threading
import uuid
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from arroyo_core.errors import ConfigError

from .support.compacted import compaction, rows, write


class SharedMemory(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files of all its instances; each test has a folder of its own."""

    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]


class DefaultCreate(SharedMemory):
    """fsspec's own create: a look, then a write."""

    protocol = "compacted-default"
    pipe_file = AbstractFileSystem.pipe_file


class IgnoresTheCondition(SharedMemory):
    protocol = "compacted-ignoring"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        super().pipe_file(path, value)


class CreatesExclusively(SharedMemory):
    protocol = "compacted-exclusive"
    lock = threading.Lock()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        with self.lock:
            if mode == "create" and self.exists(path):
                raise FileExistsError(path)
            super().pipe_file(path, value)


def new_folder(files: Any, kind: type[SharedMemory]) -> str:
    fsspec.register_implementation(kind.protocol, kind, clobber=True)
    folder = f"{kind.protocol}://{uuid.uuid4().hex}/out"
    write(files, folder, rows(1), rows(2), rows(3))
    return folder


def names(folder: str) -> list[str]:
    fs, path = fsspec.url_to_fs(folder)
    found: list[str] = fs.find(path)
    return found


@pytest.mark.parametrize("kind", [DefaultCreate, IgnoresTheCondition])
def test_storage_on_which_two_compactions_could_both_win_is_refused_before_anything_is_staged(
    files: Any, kind: type[SharedMemory]
) -> None:
    folder = new_folder(files, kind)
    before = names(folder)
    fault = "creates a file in two steps" if kind is DefaultCreate else "a second writer is not refused"
    with pytest.raises(ConfigError, match=rf"cannot be compacted: .*{fault}.*both replace the same files"):
        compaction(folder).run()
    assert names(folder) == before


def test_storage_that_shows_that_it_creates_exclusively_is_compacted(files: Any) -> None:
    folder = new_folder(files, CreatesExclusively)
    assert compaction(folder).run().merged == 3
    assert [name.rpartition("/out/")[2].partition("/")[0] for name in names(folder)][:-1] == [
        *["_committed"] * 3,
        *["_compacted"] * 2,
    ]
    assert files.read(folder)["n"].to_pylist() == [1, 2, 3]
