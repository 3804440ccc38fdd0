"""Any filesystem of fsspec as an object store; `exclusive.py` says for which of them the create was verified."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from arroyo_core.state.storage import StoredFile

#: fsspec's memory filesystem is one dictionary per process, and its create is not atomic.
_MEMORY_LOCK = threading.Lock()


#: Answers of S3 and its clones to a conditional put; not all of them reach us as `FileExistsError`.
_EXISTS_CODES = {"PreconditionFailed", "412"}
_RANGE_CODES = {"InvalidRange", "416"}
_CONFLICT_CODES = {"ConditionalRequestConflict", "OperationAborted", "409"}


class FsspecDriver:
    """A folder or bucket prefix that fsspec opens."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        settings = dict(options)
        self._is_memory = url.startswith("memory://")
        #: Files in memory are a dictionary, which nobody may look through while another changes it.
        self._lock: AbstractContextManager[Any] = _MEMORY_LOCK if self._is_memory else nullcontext()
        self.is_remote = not self._is_memory
        if url.startswith(("s3://", "s3a://")):
            # Other processes write too: a cached listing would hide what they published. Not every filesystem takes
            # this setting, so caches are cleared too, before each look.
            settings.setdefault("use_listings_cache", False)
        self._fs, root = fsspec.core.url_to_fs(url, **settings)
        self._root = root.rstrip("/")
        self.creates_exclusively = self._creates_exclusively()

    def read(self, path: str) -> bytes:
        data: bytes = self._fs.cat_file(self._at(path))
        return data

    def read_at_most(self, path: str, max_bytes: int) -> bytes:
        try:
            data: bytes = self._fs.cat_file(self._at(path), start=0, end=max_bytes)
        except OSError as error:
            # An empty file has no range.
            if _response_code(error) in _RANGE_CODES:
                return b""
            raise
        return data

    def open(self, path: str) -> Any:
        if self._is_memory:
            # All who open a file there would share one position.
            return BytesIO(self.read(path))
        return self._fs.open(self._at(path), "rb", cache_type="none")

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        with self._lock:
            self._fs.pipe_file(self._at(path), bytes(data))

    def create(self, path: str, data: bytes | memoryview) -> bool:
        try:
            with self._lock:
                self._fs.pipe_file(self._at(path), bytes(data), mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            code = _response_code(error)
            if code in _EXISTS_CODES:
                return False
            if code in _CONFLICT_CODES:
                raise ConnectionError(f"another conditional write is under way ({code})") from error
            raise
        return True

    def size(self, path: str) -> int:
        self._fs.invalidate_cache()
        with self._lock:
            return int(self._fs.info(self._at(path))["size"])

    def modified_us(self, path: str) -> int | None:
        self._fs.invalidate_cache()
        try:
            modified: datetime = self._fs.modified(self._at(path))
        except (NotImplementedError, KeyError):
            return None
        moment = modified if modified.tzinfo is not None else modified.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1e6)

    def list(self, prefix: str) -> list[StoredFile]:
        self._fs.invalidate_cache()
        try:
            with self._lock:
                found = self._fs.find(self._at(prefix), detail=True)
        except FileNotFoundError:
            return []
        root = self._fs._strip_protocol(self._root) if self._root else ""
        cut = len(root.rstrip("/")) + 1
        files = [entry for entry in found.values() if entry["type"] == "file"]
        return [StoredFile(str(entry["name"])[cut:], int(entry["size"])) for entry in files]

    def delete(self, path: str) -> None:
        try:
            self._fs.rm_file(self._at(path))
        except FileNotFoundError:
            return

    def _creates_exclusively(self) -> bool | None:
        """What the filesystem says of itself; fsspec's own `pipe_file` looks for the file first, and writes then."""
        declared = getattr(self._fs, "creates_exclusively", None)
        if declared is not None:
            return bool(declared)
        is_default = getattr(self._fs.pipe_file, "__func__", None) is AbstractFileSystem.pipe_file
        return False if is_default else None

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"


def _response_code(error: BaseException) -> str:
    """The error code in an HTTP client's response, which the causes of an error may carry."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            return str(response.get("Error", {}).get("Code", ""))
        cause = cause.__cause__
    return ""
