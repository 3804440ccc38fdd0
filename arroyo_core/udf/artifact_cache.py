"""Artifacts on the local disk, named by their sha256, shared by all processes of one user on one host.

An entry is never trusted: its bytes are hashed each time they are read, and the caller gets the very bytes that were
hashed. What does not match is deleted and fetched again. So a truncated or changed file costs a download, and no more.

The cache makes things faster and rides out outages; it is never needed. A folder that is full or cannot be
written to gives a warning, and the artifact is used from memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import UDF_CACHE
from arroyo_core.udf.bundle import sha256_of
from arroyo_core.udf.failures import DigestMismatchError

DEFAULT_MAX_BYTES = 1024**3
MAX_BYTES_VARIABLE = "ARROYO_UDF_CACHE_BYTES"

#: A transfer that was cut shows as another digest: once more may help.
FETCHES = 2
#: What a writer that died has left is deleted after this time.
_UNFINISHED_S = 3600

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".artifact"
_MAX_SIGNATURE_BYTES = 64 * 1024

logger = logging.getLogger(__name__)


class ArtifactCache:
    """A folder of artifacts. Instances may be shared by threads."""

    def __init__(self, folder: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Raises `SetupError` for a folder that others could write to, `OSError` for one that cannot be made."""
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        UDF_CACHE.make(self.folder)

    def load(self, sha256: str, fetch: Callable[[], bytes], *, what: str) -> bytes:
        """The artifact with this digest: from the folder, else what `fetch` gives, which is kept then.

        However many threads and processes ask at once, one fetches. `fetch` is not called on a hit.
        Raises what `fetch` raises, and `DigestMismatchError` naming `what` if it gives something else.
        """
        sha256 = _checked(sha256)
        data = self._read(sha256)
        if data is not None:
            return data
        with self._locked(sha256):
            # Whoever had the lock before may have fetched it.
            data = self._read(sha256)
            if data is None:
                data = fetch_verified(sha256, fetch, what=what)
                self._write(sha256, data)
        return data

    def put(self, data: bytes) -> str:
        """Keep an artifact that is at hand; gives its digest."""
        sha256 = sha256_of(data)
        if self._read(sha256) is None:
            with self._locked(sha256):
                self._write(sha256, data)
        return sha256

    def read_signature(self, sha256: str) -> bytes | None:
        """The signature that was kept for an artifact. Nobody vouches for it: whoever reads it verifies it."""
        try:
            descriptor = os.open(self._signature(sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_MAX_SIGNATURE_BYTES)
        except OSError:
            return None

    def put_signature(self, sha256: str, signature: bytes) -> None:
        """Keep a signature, so that it is at hand when the store is not; a full disk is not an error."""
        with contextlib.suppress(OSError):
            self._write_file(self._signature(sha256), signature)

    def size_bytes(self) -> int:
        """What the entries take on disk."""
        return sum(size for _, size, _ in self._entries())

    def _path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}{_SUFFIX}"

    def _signature(self, sha256: str) -> Path:
        return self.folder / f"{_checked(sha256)}.sig"

    def _read(self, sha256: str) -> bytes | None:
        path = self._path(sha256)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError:
            # A link, most likely: never followed.
            self._discard(path, "is not a regular file")
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            self._discard(path, "is not a regular file")
            return None
        with os.fdopen(descriptor, "rb") as file:
            try:
                data = file.read()
            except OSError as error:
                self._discard(path, f"cannot be read: {error}")
                return None
            if sha256_of(data) != sha256:
                self._discard(path, f"does not match its digest ({len(data)} bytes)")
                return None
            # The access time orders eviction, whatever the mount options are.
            with contextlib.suppress(OSError):
                os.utime(descriptor, ns=(time.time_ns(), os.fstat(descriptor).st_mtime_ns))
        return data

    def _discard(self, path: Path, reason: str) -> None:
        logger.warning("the cached artifact %s %s: it is fetched again", path.name[:12], reason)
        # Where it cannot be deleted it is not used all the same.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)

    def _write(self, sha256: str, data: bytes) -> None:
        try:
            self._write_file(self._path(sha256), data)
        except OSError as error:
            logger.warning("an artifact is used from memory, because the cache %s: %s", self.folder, error)
            return
        self._evict(keep=sha256)

    def _write_file(self, path: Path, data: bytes) -> None:
        """The whole file or nothing becomes visible."""
        unfinished = self.folder / f"unfinished-{path.name}-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            unfinished.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _locked(self, sha256: str) -> Iterator[None]:
        """One process at a time for one digest; where the folder takes no lock, everybody fetches for himself.

        Lock files stay: deleting one would let two in, of which one holds the lock of a file that is gone.
        """
        try:
            descriptor = os.open(
                self.folder / f"{sha256}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        except OSError:
            yield
            return
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _evict(self, *, keep: str) -> None:
        """Delete what was not used for longest, and what writers that died have left; never `keep`."""
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        total = sum(size for _, size, _ in entries)
        for path, size, _ in entries:
            if total <= self.max_bytes:
                break
            if path.name != f"{keep}{_SUFFIX}":
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                    path.with_suffix(".sig").unlink(missing_ok=True)
                    total -= size
        for path in self.folder.glob("unfinished-*"):
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > _UNFINISHED_S:
                    path.unlink()

    def _entries(self) -> Iterator[tuple[Path, int, int]]:
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                found = path.lstat()
                yield path, found.st_size, found.st_atime_ns


def fetch_verified(sha256: str, fetch: Callable[[], bytes], *, what: str) -> bytes:
    """What `fetch` gives, if it has the digest; a wrong answer is asked for once more."""
    data = b""
    for _ in range(FETCHES):
        data = fetch()
        if sha256_of(data) == sha256:
            return data
    raise DigestMismatchError(
        f"{what} has the sha256 {sha256_of(data)} ({len(data)} bytes), not {sha256}: it was changed or is damaged"
    )


def default_artifact_cache() -> ArtifactCache | None:
    """The cache of this user and host; None where `ARROYO_UDF_CACHE` is `off`, or the default folder cannot be used.

    A folder that was chosen must be fit for use: else `SetupError`.
    """
    folder = UDF_CACHE.path()
    if folder is None:
        return None
    try:
        return ArtifactCache(folder, max_bytes=_max_bytes())
    except (OSError, SetupError) as error:
        if UDF_CACHE.is_chosen:
            raise SetupError(f"the UDF cache {folder} cannot be used: {error}") from error
        logger.warning("UDF bundles are not cached: %s", error)
        return None


def _max_bytes() -> int:
    text = os.environ.get(MAX_BYTES_VARIABLE, "") or str(DEFAULT_MAX_BYTES)
    if not (text.isascii() and text.isdigit()):
        raise SetupError(f"{MAX_BYTES_VARIABLE} is a number of bytes, not {text!r}")
    return int(text)


def _checked(sha256: str) -> str:
    # It becomes the name of a file.
    if not _DIGEST.fullmatch(sha256.lower()):
        raise DigestMismatchError(f"{sha256!r:.100} is not a sha256: 64 hexadecimal digits")
    return sha256.lower()
