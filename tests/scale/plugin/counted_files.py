"""`counted:///path`: local files as an object store that notes each call, and how many bytes went with it.

Every process writes lines of its own into the folder that `ARROYO_COUNTED_CALLS` names: kind, bytes, path. Each call
here would be one request to a store such as S3, but that a listing there takes one for each thousand names.
"""

from __future__ import annotations

import io
import os
import shutil
import threading
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

VARIABLE = "ARROYO_COUNTED_CALLS"


class _Log:
    """Appends to a file of this process; a fork has another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: io.TextIOWrapper | None = None
        self._pid = 0

    def note(self, kind: str, size: int, path: str) -> None:
        folder = os.environ.get(VARIABLE)
        if folder is None:
            return
        with self._lock:
            if self._pid != os.getpid() or self._file is None:
                self._pid = os.getpid()
                self._file = (Path(folder) / f"calls-{self._pid}.txt").open("a")
            self._file.write(f"{kind} {size} {path}\n")
            self._file.flush()


_LOG = _Log()
os.register_at_fork(after_in_child=_LOG.__init__)


class CountedFileSystem(AbstractFileSystem):
    """Object-store semantics: no folders, files appear whole, a create is exclusive."""

    #: The plugin for files takes `memory` for an object store, as it does S3.
    protocol = ("counted", "memory")
    root_marker = "/"
    creates_exclusively = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._local = LocalFileSystem()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("counted://").strip("/")

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        found = self._local.ls(self._strip_protocol(path), detail=True)
        _LOG.note("list", 0, path)
        return found if detail else [entry["name"] for entry in found]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        _LOG.note("list", 0, path)
        return self._local.find(self._strip_protocol(path), maxdepth=maxdepth, withdirs=withdirs, detail=detail)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        _LOG.note("stat", 0, path)
        return dict(self._local.info(self._strip_protocol(path)))

    def modified(self, path: str) -> Any:
        _LOG.note("stat", 0, path)
        return self._local.modified(self._strip_protocol(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        data = bytes(self._local.cat_file(self._strip_protocol(path), start, end))
        _LOG.note("read", len(data), path)
        return data

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        target = Path(self._strip_protocol(path))
        unfinished = self._unfinished(target)
        unfinished.write_bytes(value)
        _LOG.note("create" if mode == "create" else "write", len(value), path)
        try:
            if mode == "create":
                os.link(unfinished, target)
            else:
                unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    def rm_file(self, path: str) -> None:
        _LOG.note("delete", 0, path)
        Path(self._strip_protocol(path)).unlink()

    def rm(self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        """There are no folders in an object store: those that are left empty are removed, and do not count."""
        for name in [path] if isinstance(path, str) else path:
            if not self._local.isdir(self._strip_protocol(name)):
                self.rm_file(name)
                continue
            for file in self.find(name):
                self.rm_file(file)
            shutil.rmtree(self._strip_protocol(name), ignore_errors=True)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        _LOG.note("copy", 0, path2)
        target = Path(self._strip_protocol(path2))
        unfinished = self._unfinished(target)
        shutil.copyfile(self._strip_protocol(path1), unfinished)
        unfinished.replace(target)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "rb":
            return _Reader(self, self._strip_protocol(path))
        if mode != "wb":
            raise NotImplementedError(mode)
        return _Writer(self, self._strip_protocol(path))

    def _unfinished(self, target: Path) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.parent / f".{target.name[:100]}-{os.urandom(6).hex()}"


class _Reader(io.RawIOBase):
    """Each read is a request for a range."""

    def __init__(self, fs: CountedFileSystem, path: str) -> None:
        self._path = path
        self._file = io.FileIO(path)
        self.size = os.fstat(self._file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        _LOG.note("read", count, self._path)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Writer(io.BytesIO):
    """An upload, which is there when it is closed, unless it was discarded."""

    def __init__(self, fs: CountedFileSystem, path: str) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._is_discarded = False

    def discard(self) -> None:
        self._is_discarded = True

    def close(self) -> None:
        if not self.closed and not self._is_discarded:
            self._fs.pipe_file(self._path, self.getvalue())
        super().close()
