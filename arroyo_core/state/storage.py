"""`StorageProvider`: the few calls that state needs of an object store.

Every path is relative to the provider's URL. A store must give read-after-write, and a create
that exactly one of many racing writers wins.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from arroyo_core.api.confined import check_relative
from arroyo_core.api.urls import absolute_url, redact_url
from arroyo_core.errors import SetupError
from arroyo_core.state.failures import MissingFileError, OversizedFileError, StorageError
from arroyo_core.state.transience import backoff_s, is_transient

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a listing."""

    path: str
    size_bytes: int


class Driver(Protocol):
    """What a kind of store does; paths are checked already, errors are the store's own.

    One that can read the beginning of a file in one request has a `read_at_most(path, max_bytes)` as well; of others
    files are opened for it.
    """

    @property
    def is_remote(self) -> bool:
        """Whether calls wait for a network."""

    def read(self, path: str) -> bytes: ...

    def open(self, path: str) -> Any:
        """A seekable binary file for reading."""

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        """Create or replace; the whole file or nothing becomes visible.

        Without `is_durable` a loss of power may lose it.
        """

    def create(self, path: str, data: bytes | memoryview) -> bool:
        """Create; False if the path exists. Of racing writers exactly one gets True."""

    def size(self, path: str) -> int: ...

    def modified_us(self, path: str) -> int | None:
        """When the file was written, by the store's clock; None where the store does not tell."""

    def list(self, prefix: str) -> list[StoredFile]:
        """Every file below the folder `prefix`; none if it does not exist."""

    def delete(self, path: str) -> None:
        """Remove; a path that does not exist is not an error."""


class StorageProvider:
    """Reads and writes files below one URL.

    Calls that can be retried are, with backoff; every error names the call and the file.
    Instances may be shared by threads and survive pickling.
    """

    def __init__(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | None = None,
        driver: Driver | None = None,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        # Tasks on other machines have other working directories, and the URL goes there.
        self.url = absolute_url(url).rstrip("/") or "/"
        self._options = dict(options or {})
        self._driver = driver or _driver_for(self.url, self._options)
        self._is_given = driver is not None
        self._attempts = attempts
        self._sleep = sleep

    @property
    def is_remote(self) -> bool:
        """Whether a call waits for a network rather than for this machine."""
        return self._driver.is_remote

    @property
    def shown_url(self) -> str:
        """The URL without a password, for messages."""
        return redact_url(self.url)

    @property
    def creates_exclusively(self) -> bool | None:
        """Whether of racing `put_if_absent`s exactly one is known to win; None where nobody knows.

        Who gives a driver answers for it.
        """
        return True if self._is_given else getattr(self._driver, "creates_exclusively", None)

    def reopen(self) -> StorageProvider:
        """Another provider of the same store, as another process has one; with the same driver if one was given."""
        if self._is_given:
            return self
        return StorageProvider(self.url, options=self._options, attempts=self._attempts, sleep=self._sleep)

    def __reduce__(self) -> tuple[object, ...]:
        return (get_storage_provider, (self.url, self._options))

    def __repr__(self) -> str:
        return f"StorageProvider({self.url!r})"

    def read(self, path: str, *, max_bytes: int | None = None, option: str = "") -> bytes:
        """The whole content; `MissingFileError` if there is no such file.

        Of one with more than `max_bytes` no more is read, and `OversizedFileError` raised, with the `option` that
        allows more. Whoever does not know how large a file may be gives a limit: it may be anybody's.
        """
        if max_bytes is None:
            return self._call("read", path, lambda: self._driver.read(path))
        data = self._call("read", path, lambda: self._read_at_most(path, max_bytes + 1))
        if len(data) > max_bytes:
            more = f"; {option} allows more" if option else ""
            raise OversizedFileError(f"{self.shown_url}/{path} has more than {max_bytes} bytes, and is not read{more}")
        return data

    def open(self, path: str) -> Any:
        """A seekable binary file for reading parts of it."""
        return self._call("open", path, lambda: self._driver.open(path))

    def read_parts(self, path: str, read: Callable[[Any], T]) -> T:
        """`read` of the opened file; where the store fails in passing, both are done again.

        What else `read` raises, it raises.
        """

        def open_and_read() -> T | Exception:
            with self._driver.open(path) as source:
                try:
                    return read(source)
                except FileNotFoundError:
                    raise
                except Exception as error:
                    if is_transient(error):
                        raise
                    return error

        result = self._call("read", path, open_and_read)
        if isinstance(result, Exception):
            raise result
        return result

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        """Create or replace the file and check that all of it arrived.

        `is_durable=False` is for files that nothing depends on: it saves the wait for the disk.
        """

        def write_and_verify() -> None:
            self._driver.write(path, data, is_durable=is_durable)
            self._verify(path, len(data))

        self._call("write", path, write_and_verify)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file; False if another content is there already.

        A file with exactly this content counts as created: the answer to an earlier attempt may
        have been lost. Callers that race must therefore write contents that differ.
        """

        def create() -> bool:
            if self._driver.create(path, data):
                self._verify(path, len(data))
                return True
            return self._read_at_most(path, len(data) + 1) == data

        return self._call("create", path, create)

    def exists(self, path: str) -> bool:
        try:
            self.size(path)
        except MissingFileError:
            return False
        return True

    def size(self, path: str) -> int:
        return self._call("stat", path, lambda: self._driver.size(path))

    def modified_us(self, path: str) -> int | None:
        """When the file was written, by the store's clock; None where the store does not tell."""
        return self._call("stat", path, lambda: self._driver.modified_us(path))

    def list(self, prefix: str) -> list[StoredFile]:
        """Every file below the folder `prefix`, sorted by path."""
        return sorted(self._call("list", prefix, lambda: self._driver.list(prefix)), key=lambda file: file.path)

    def list_root(self) -> Sequence[StoredFile]:
        """Every file of the store, of all jobs, sorted by path; for people who look around."""
        return sorted(self._retry("list", self.url, lambda: self._driver.list("")), key=lambda file: file.path)

    def delete(self, path: str) -> None:
        """Remove the file; one that is gone already is not an error."""
        self._call("delete", path, lambda: self._driver.delete(path))

    def _read_at_most(self, path: str, max_bytes: int) -> bytes:
        read: Callable[[str, int], bytes] | None = getattr(self._driver, "read_at_most", None)
        if read is not None:
            return read(path, max_bytes)
        with self._driver.open(path) as source:
            return bytes(source.read(max_bytes))

    def _verify(self, path: str, expected: int) -> None:
        found = self._driver.size(path)
        if found != expected:
            raise OSError(errno.EAGAIN, f"{found} bytes arrived of {expected}")

    def _call(self, verb: str, path: str, call: Callable[[], T]) -> T:
        check_relative(path)
        return self._retry(verb, f"{self.url}/{path}", call)

    def _retry(self, verb: str, name: str, call: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts + 1):
            try:
                return call()
            except FileNotFoundError as error:
                missing = "bucket or folder" if verb in ("write", "create") else "file"
                raise MissingFileError(f"cannot {verb} {name}: there is no such {missing}") from error
            except Exception as error:
                if not is_transient(error) or attempt == self._attempts:
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    raise StorageError(f"cannot {verb} {name}: {error}{tried}") from error
                self._sleep(backoff_s(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")


def get_storage_provider(url: str, options: Mapping[str, Any] | None = None) -> StorageProvider:
    """The provider for a checkpoint URL: a local path, `file://`, `memory://`, `s3://`, or any other of fsspec's.

    One provider per process, URL and options; `options` go to the fsspec filesystem.
    """
    frozen = tuple(sorted((options or {}).items(), key=lambda item: item[0]))
    try:
        # A forked worker must not share connections with its parent, and a relative path means another place after
        # a change of the working directory.
        return _provider(absolute_url(url), frozen, os.getpid())
    except TypeError:
        return StorageProvider(url, options=options)


@lru_cache(maxsize=64)
def _provider(url: str, options: tuple[tuple[str, Any], ...], _pid: int) -> StorageProvider:
    return StorageProvider(url, options=dict(options))


def _driver_for(url: str, options: Mapping[str, Any]) -> Driver:
    from arroyo_core.state.fsspec_storage import FsspecDriver
    from arroyo_core.state.local_storage import LocalDriver
    from arroyo_core.state.storage_kinds import storage_kind

    parts = urlsplit(url)
    if "://" not in url:
        return LocalDriver(url)
    if parts.scheme in ("file", "local"):
        return LocalDriver(parts.netloc + parts.path)
    kind = storage_kind(parts.scheme)
    if kind is not None:
        return kind.open(url, options)
    try:
        return FsspecDriver(url, options)
    except (ImportError, ValueError) as error:
        raise SetupError(f"cannot open the checkpoint URL {url!r}: {error}") from error
