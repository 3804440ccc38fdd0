"""A remote filesystem whose passing failures are waited out.

Clients try again by themselves, but not for every failure, and some give up soon. What still fails
after the last attempt is an `ExternalError`, which restarts the job from its last checkpoint.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from fsspec.compression import compr

from arroyo_core.errors import ExternalError
from arroyo_core.state import backoff_s, is_transient

ATTEMPTS = 5
#: A file up to this size is sent as a whole, and again if need be.
HELD_BYTES = 8 * 2**20

T = TypeVar("T")


class PatientFileSystem:
    """The calls of fsspec that this plugin makes.

    A call may be made twice where its answer was lost: of a `mv` or a delete that was done,
    the second says `FileNotFoundError`.
    """

    def __init__(self, fs: Any, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._fs = fs
        self._sleep = sleep

    @property
    def protocol(self) -> str | tuple[str, ...]:
        found: str | tuple[str, ...] = self._fs.protocol
        return found

    def info(self, path: str) -> dict[str, Any]:
        return self._patiently("look at", path, lambda: self._fs.info(path))

    def exists(self, path: str) -> bool:
        """Whether there is a file; raises where nobody can tell, unlike many a filesystem's own."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def isfile(self, path: str) -> bool:
        try:
            return bool(self.info(path)["type"] == "file")
        except FileNotFoundError:
            return False

    def size(self, path: str) -> int:
        return int(self.info(path)["size"])

    def ls(self, path: str, *, detail: bool) -> list[Any]:
        return self._patiently("list", path, lambda: self._fs.ls(path, detail=detail))

    def find(self, path: str, *, detail: bool) -> Any:
        return self._patiently("list", path, lambda: self._fs.find(path, detail=detail))

    def glob(self, path: str, *, detail: bool) -> Any:
        return self._patiently("list", path, lambda: self._fs.glob(path, detail=detail))

    def cat_ranges(self, paths: list[str], starts: list[int], ends: list[int]) -> list[bytes]:
        """Parts of files, asked for at the same time."""

        def read() -> list[bytes]:
            return list(self._fs.cat_ranges(paths, starts, ends, on_error="raise"))

        return self._patiently("read", paths[0], read)

    def makedirs(self, path: str, *, exist_ok: bool) -> None:
        self._patiently("make", path, lambda: self._fs.makedirs(path, exist_ok=exist_ok))

    def cp_file(self, source: str, target: str) -> None:
        self._patiently("copy", source, lambda: self._fs.cp_file(source, target))

    def mv(self, source: str, target: str) -> None:
        self._patiently("move", source, lambda: self._fs.mv(source, target))

    def rm_file(self, path: str) -> None:
        self._patiently("delete", path, lambda: self._fs.rm_file(path))

    def rm(self, path: str, *, recursive: bool) -> None:
        self._patiently("delete", path, lambda: self._fs.rm(path, recursive=recursive))

    def invalidate_cache(self) -> None:
        self._fs.invalidate_cache()

    def open(self, path: str, mode: str, *, compression: str | None = None, **options: Any) -> Any:
        """A file to read from or to write to patiently."""

        def open_now() -> Any:
            return self._patiently("open", path, lambda: self._fs.open(path, mode, **options))

        if mode == "wb":
            return PatientWriter(
                path,
                send=lambda data: self._patiently("write", path, lambda: self._fs.pipe_file(path, data)),
                begin=open_now,
            )
        opened = open_now()
        reader = PatientReader(opened, lambda call: self._patiently("read", path, call))
        return reader if compression is None else compr[compression](reader, mode="rb")

    def _patiently(self, verb: str, path: str, call: Callable[[], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return call()
            except Exception as error:
                if not is_transient(error):
                    raise
                if attempt == ATTEMPTS:
                    raise ExternalError(f"cannot {verb} {path}: {error} (tried {attempt} times)") from error
                self._sleep(backoff_s(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")


class PatientReader:
    """A seekable file; a read that failed is made again from where it began."""

    def __init__(self, file: Any, patiently: Callable[[Callable[[], bytes]], bytes]) -> None:
        self._file = file
        self._patiently = patiently

    def read(self, size: int = -1) -> bytes:
        position = self._file.tell()

        def read() -> bytes:
            if self._file.tell() != position:
                self._file.seek(position)
            data: bytes = self._file.read(size)
            return data

        return self._patiently(read)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        self._file.close()

    def flush(self) -> None:
        """Nothing to do, but whoever wraps a file may ask for it."""

    def __enter__(self) -> PatientReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PatientWriter:
    """A file being written.

    It is held back while it is small, and then sent as often as needed. A large one is sent in
    parts, which cannot be sent again: a failure gives the whole file up, as an `ExternalError`.
    """

    def __init__(self, path: str, *, send: Callable[[bytes], None], begin: Callable[[], Any]) -> None:
        """`send` stores a whole file, `begin` opens one for parts."""
        self._path = path
        self._send = send
        self._begin = begin
        self._held = io.BytesIO()
        self._stream: Any = None
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._stream is None and self._size + size > HELD_BYTES:
            self._stream = self._begin()
            held, self._held = self._held.getvalue(), io.BytesIO()
            self._external(lambda: self._stream.write(held))
        if self._stream is None:
            self._held.write(data)
        else:
            self._external(lambda: self._stream.write(data))
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is whole before it is closed."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._stream is None:
            self._send(self._held.getvalue())
        else:
            self._external(self._stream.close)

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def _external(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            if not is_transient(error):
                raise
            raise ExternalError(f"cannot write {self._path}: {error}") from error
