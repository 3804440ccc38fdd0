"""Whether a checkpoint URL is a store that jobs can trust.

Everything happens in a folder of its own below the URL, with a name that no job has, and is deleted at the end.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from arroyo_core.api.urls import redact_url
from arroyo_core.errors import ArroyoError, StateError
from arroyo_core.state import StorageProvider
from arroyo_core.state.exclusive import RACERS, RACES, race_fault, second_writer_fault
from arroyo_core.state.failures import MissingFileError
from arroyo_devtools.doctor.findings import Finding, failed, ok, warning
from arroyo_devtools.doctor.machine import room_finding

T = TypeVar("T")

#: No job has a `~` in its name.
FOLDER = "~arroyo-doctor"
LISTED_FILES = 5
#: An epoch makes some tens of calls one after the other.
SLOW_MS = 500
#: Above the first, ages of files mislead; above the second, S3 refuses requests.
SKEWED_S, UNUSABLE_SKEW_S = 5, 600

_TRUST = "use another store: without this, two drivers of one job can both believe that they own it"


def check_store(url: str, open_store: Callable[[str], StorageProvider] = StorageProvider) -> Iterator[Finding]:
    """Write, read, list, race and delete below `url`; every finding names it without its password."""
    secret = urlsplit(url).netloc.rpartition("@")[0] if "://" in url else ""
    for finding in _check(url, open_store):
        # A client's error may go on for many lines, and quote parts of the URL.
        message = finding.message.replace(url, redact_url(url)).partition("\n")[0]
        message = message.replace(secret, "...") if secret else message
        yield Finding(finding.check, finding.level, message, finding.fix)


def _check(url: str, open_store: Callable[[str], StorageProvider]) -> Iterator[Finding]:
    try:
        storage = open_store(url)
    except (ArroyoError, OSError, ValueError) as error:
        yield failed("store", f"cannot open {url}: {error}", _advice(url))
        return
    made = _missing_folders(storage)
    probe = Probe(storage, lambda: open_store(url))
    try:
        yield from probe.findings()
    finally:
        left = probe.clean()
        _remove_folders(made)
    if left:
        yield warning("store: cleaning", f"{left} files are left in {url}/{probe.folder}", "delete that folder")


class Probe:
    """The checks of one store, each in a folder of its own."""

    def __init__(self, storage: StorageProvider, reopen: Callable[[], StorageProvider]) -> None:
        self.folder = f"{FOLDER}-{secrets.token_hex(8)}"
        self._storage = storage
        self._reopen = reopen
        self._times_ms: list[float] = []

    def findings(self) -> Iterator[Finding]:
        steps: tuple[tuple[str, Callable[[str], Finding | None]], ...] = (
            ("write and read", self._write_and_read),
            ("list", self._list),
            ("delete", self._delete),
            ("put-if-absent", self._put_if_absent),
            ("put-if-absent, raced", self._race),
            ("clock", self._clock),
            ("latency", self._latency),
            ("disk", self._disk),
        )
        for name, step in steps:
            check = f"store: {name}"
            try:
                found = step(check)
            except StateError as error:
                # Whatever comes after would fail for the same reason.
                yield failed(check, str(error), _advice(self._storage.url))
                return
            if found is not None:
                yield found

    def clean(self) -> int:
        """Delete everything of this probe; the number of files that would not go."""
        try:
            for file in self._storage.list(self.folder):
                with suppress(StateError):
                    self._storage.delete(file.path)
            return len(self._storage.list(self.folder))
        except StateError:
            # A store that cannot be listed is a finding already; nothing is known to be left.
            return 0

    def _write_and_read(self, check: str) -> Finding:
        path = self._path("written")
        for content in (b"first", b"second, and longer", b"3"):
            self._timed(partial(self._storage.write, path, content))
            found = self._timed(partial(self._storage.read, path))
            if found != content:
                return failed(check, f"a file that was just written reads as {found!r}, not {content!r}", _TRUST)
        return ok(check, f"{self._storage.url}: what is written is read at once")

    def _list(self, check: str) -> Finding:
        paths = {self._path(f"listed/{number}") for number in range(LISTED_FILES)}
        for path in sorted(paths):
            self._storage.write(path, b"x")
        gone = min(paths)
        listed = {file.path for file in self._timed(partial(self._storage.list, f"{self.folder}/listed"))}
        self._storage.delete(gone)
        after = {file.path for file in self._storage.list(f"{self.folder}/listed")}
        fix = "use a store with strong consistency of listings; caches in front of it must be off"
        if listed != paths:
            return failed(check, f"of {len(paths)} files just written, a listing has {len(listed & paths)}", fix)
        if after != paths - {gone}:
            return failed(check, "a file that was just deleted is still listed", fix)
        return ok(check, "listings show what was written and deleted just now")

    def _delete(self, check: str) -> Finding:
        path = self._path("deleted")
        self._storage.write(path, b"x")
        self._storage.delete(path)
        self._storage.delete(path)
        try:
            self._storage.read(path)
        except MissingFileError:
            return ok(check, "what is deleted is gone at once")
        return failed(check, "a file that was just deleted can still be read", _TRUST)

    def _put_if_absent(self, check: str) -> Finding:
        fault = second_writer_fault(self._path("created"), self._storage, self._reopen())
        return failed(check, fault, _TRUST) if fault else ok(check, "the second writer of a file is refused")

    def _race(self, check: str) -> Finding:
        fault = race_fault([self._path(f"raced-{number}") for number in range(RACES)], self._reopen)
        if fault:
            return failed(check, fault, _TRUST)
        return ok(check, f"of {RACERS} writers at once exactly one wins ({RACES} times)")

    def _clock(self, check: str) -> Finding:
        path = self._path("clock")
        before_s = time.time()
        self._storage.write(path, b"x")
        after_s = time.time()
        modified_us = self._storage.modified_us(path)
        if modified_us is None:
            return ok(check, "the store does not tell when a file was written")
        modified_s = modified_us / 1e6
        # Many stores tell whole seconds.
        skew_s = max(before_s - 1 - modified_s, modified_s - after_s, 0.0)
        fix = "set the clock of this machine (NTP), or that of the store"
        message = f"the store's clock and this one differ by {skew_s:.0f} s"
        if skew_s > UNUSABLE_SKEW_S:
            return failed(check, message, fix)
        return warning(check, message, fix) if skew_s > SKEWED_S else ok(check, "the store's clock agrees with ours")

    def _latency(self, check: str) -> Finding:
        median = statistics.median(self._times_ms)
        message = f"a call takes {median:.0f} ms (the slowest {max(self._times_ms):.0f} ms)"
        if median > SLOW_MS:
            return warning(check, message, "run near the store, or make epochs longer: checkpoint: {interval: 60s}")
        return ok(check, message)

    def _disk(self, check: str) -> Finding | None:
        folder = _local_folder(self._storage)
        return room_finding(check, folder, "make room, or choose another checkpoint URL") if folder else None

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _timed(self, call: Callable[[], T]) -> T:
        started = time.monotonic()
        try:
            return call()
        finally:
            self._times_ms.append((time.monotonic() - started) * 1000)


def _advice(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme in ("", "file", "local"):
        return "choose a folder that this user can write, and every executor sees"
    is_client_missing = scheme in ("s3", "s3a") and find_spec("s3fs") is None
    extra = "pip install 'arroyo-core[s3]'; " if is_client_missing else ""
    return (
        f"{extra}check the URL, that its bucket is there, the credentials in the environment, "
        "and that they may write, list and delete there"
    )


def _local_folder(storage: StorageProvider) -> Path | None:
    """The folder of a URL on this machine; None for any other."""
    parts = urlsplit(storage.url)
    if "://" not in storage.url:
        return Path(storage.url)
    return Path(parts.netloc + parts.path) if parts.scheme in ("file", "local") else None


def _missing_folders(storage: StorageProvider) -> list[Path]:
    """The folders of a local URL that are not there yet, innermost first."""
    root = _local_folder(storage)
    return [] if root is None else [path for path in (root, *root.parents) if not path.exists()]


def _remove_folders(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
