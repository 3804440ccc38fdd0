"""fsspec filesystems in memory whose process can die: `crash-object://` and `crash-folder://`.

The first is an object store: files appear whole, a copy is one step, there are no folders, and an upload that
is cut off leaves nothing, but for plain writes, which are allowed to leave half a file: an adversary a little
worse than S3. The second has folders, as HDFS or SFTP: a file is there, and empty, from its opening on, and
grows; a rename is one step.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

from arroyo_core.state import storage
from arroyo_testing.machine import Disk, Life


class CrashFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What both kinds share. An instance belongs to the process that was running when it was made."""

    cachable = False
    #: A create is one step of one process: there is nothing to race.
    creates_exclusively = True
    current: ClassVar[tuple[Disk, Life] | None] = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        assert self.current is not None, "no process is running"
        self.disk, self.life = self.current

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self.life.do("stat", path, lambda: self._info(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        found = self.life.do("list", path, lambda: self._children(path))
        return found if detail else [entry["name"] for entry in found]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        path = self._strip_protocol(path)
        names = self.life.do("find", path, lambda: sorted(self._below(path)))
        return {name: _entry(name, self.disk.files[name]) for name in names} if detail else names

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        path = self._strip_protocol(path)
        return self.life.do("read", path, lambda: self._content(path))[start:end]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        if mode == "create":
            self.life.do("create", path, lambda: self._create(path, value), is_mutation=True)
        else:
            self._write(path, value)

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        self.life.do("delete", path, lambda: self._delete(path), is_mutation=True)

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        path = self._strip_protocol(path)
        if mode == "rb":
            return io.BytesIO(self.cat_file(path))
        return self._open_for_writing(path)

    def _open_for_writing(self, path: str) -> io.BytesIO:
        raise NotImplementedError

    def _write(self, path: str, data: bytes) -> None:
        def put(part: bytes) -> None:
            self.disk.files[path] = bytes(part)

        half = data[: len(data) // 2]
        self.life.do("write", path, lambda: put(data), is_mutation=True, tear=lambda: put(half))

    def _create(self, path: str, data: bytes) -> None:
        if path in self.disk.files:
            raise FileExistsError(path)
        self.disk.files[path] = bytes(data)

    def _content(self, path: str) -> bytes:
        if path not in self.disk.files:
            raise FileNotFoundError(path)
        return self.disk.files[path]

    def _delete(self, path: str) -> None:
        self._content(path)
        del self.disk.files[path]

    def _below(self, path: str) -> list[str]:
        return [name for name in self.disk.files if name == path or name.startswith(f"{path}/")]

    def _info(self, path: str) -> dict[str, Any]:
        if path in self.disk.files:
            return _entry(path, self.disk.files[path])
        if path in self.disk.folders or self._below(path):
            return _folder(path)
        raise FileNotFoundError(path)

    def _children(self, path: str) -> list[dict[str, Any]]:
        if path in self.disk.files:
            return [_entry(path, self.disk.files[path])]
        cut = len(path) + 1
        names = {f"{path}/{name[cut:].partition('/')[0]}" for name in self._below(path)}
        names |= {folder for folder in self.disk.folders if folder.rpartition("/")[0] == path}
        if not names and path not in self.disk.folders:
            raise FileNotFoundError(path)
        files = self.disk.files
        return [_entry(name, files[name]) if name in files else _folder(name) for name in sorted(names)]


class CrashObjectStore(CrashFileSystem):
    """No folders; a file appears when its writer is closed, a copy at once."""

    #: `memory` beside our own name: whoever asks is told that this is an object store.
    protocol = ("crash-object", "memory")

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)

        def copy() -> None:
            self.disk.files[target] = self._content(source)

        self.life.do("copy", target, copy, is_mutation=True)

    def _open_for_writing(self, path: str) -> io.BytesIO:
        return _Upload(self, path)


class CrashFolders(CrashFileSystem):
    """Folders that must be there, and renames in one step."""

    protocol = "crash-folder"

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        self.life.do("mkdir", path, lambda: self._make_folders(path), is_mutation=True)

    def rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        self.life.do("rmdir", path, lambda: self._remove_folder(path), is_mutation=True)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)

        def rename() -> None:
            data = self._content(source)
            self._check_parent(target)
            del self.disk.files[source]
            self.disk.files[target] = data

        self.life.do("rename", target, rename, is_mutation=True)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        # As fsspec's own filesystems with folders do when they are asked to (`auto_mkdir`).
        self._make_folders(path.rpartition("/")[0])
        super().pipe_file(path, value, mode)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        path = self._strip_protocol(path)
        for name in self.find(path):
            self.rm_file(name)
        for folder in sorted((f for f in self.disk.folders if f == path or f.startswith(f"{path}/")), reverse=True):
            self.rmdir(folder)

    def _open_for_writing(self, path: str) -> io.BytesIO:
        def begin() -> None:
            self._check_parent(path)
            self.disk.files[path] = b""

        self.life.do("open", path, begin, is_mutation=True)
        return _Upload(self, path)

    def _check_parent(self, path: str) -> None:
        if path.rpartition("/")[0] not in self.disk.folders:
            raise FileNotFoundError(path)

    def _make_folders(self, path: str) -> None:
        parts = path.split("/")
        self.disk.folders |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}

    def _remove_folder(self, path: str) -> None:
        if path not in self.disk.folders:
            raise FileNotFoundError(path)
        if self._below(path) or any(folder.startswith(f"{path}/") for folder in self.disk.folders):
            raise OSError(39, "not empty", path)
        self.disk.folders.discard(path)


class _Upload(io.BytesIO):
    """Bytes that reach the store when they are closed; those of a dead process never do."""

    def __init__(self, fs: CrashFileSystem, path: str) -> None:
        super().__init__()
        self._fs = fs
        self._path = path

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        if not self._fs.life.is_dead:
            self._fs._write(self._path, data)


def _entry(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "size": len(data), "type": "file"}


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def register_store(kind: type[CrashFileSystem]) -> None:
    """Let URLs with the protocol of `kind` open it."""
    name = kind.protocol if isinstance(kind.protocol, str) else kind.protocol[0]
    fsspec.register_implementation(name, kind, clobber=True)


for kind in (CrashObjectStore, CrashFolders):
    register_store(kind)


@contextmanager
def running(disk: Disk, life: Life) -> Iterator[None]:
    """All that is opened inside belongs to the process `life`, as if it had just begun."""
    # A new process has no providers, which would go on to talk to the disk for the old one.
    storage._provider.cache_clear()
    CrashFileSystem.current = (disk, life)
    try:
        yield
    finally:
        CrashFileSystem.current = None
        storage._provider.cache_clear()
