"""What goes from the warm cache: a look at its folders, pure choices, and the removal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ENTRY_SUFFIX = ".arrow"
UNFINISHED_PREFIX = "unfinished-"
#: Of the layout of one flat folder, which had two files for each entry.
_FORMER_SUFFIX = ".record"

#: A file that is being written changes all the time: one that has not for so long was left by a process that died.
UNFINISHED_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """How much the cache may hold, and for how long an entry may lie there unused."""

    max_bytes: int
    max_entries: int = 100_000
    max_idle_s: float = 3600


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file of the cache, and when it was last used."""

    path: Path
    size_bytes: int
    used_s: float
    written_s: float

    @property
    def is_unfinished(self) -> bool:
        return self.path.name.startswith(UNFINISHED_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUsage:
    """What is in the cache: `idle_s` is how long the entry used longest ago has not been used."""

    jobs: int
    entries: int
    size_bytes: int
    unfinished: int
    idle_s: float


def measure_usage(folder: Path, *, now_s: float) -> CacheUsage:
    """What the cache holds; reads only."""
    found = list(_files(folder))
    entries = [file for file in found if not file.is_unfinished]
    return CacheUsage(
        jobs=len({file.path.relative_to(folder).parts[0] for file in entries if file.path.parent != folder}),
        entries=len(entries),
        size_bytes=sum(file.size_bytes for file in found),
        unfinished=len(found) - len(entries),
        idle_s=max((now_s - file.used_s for file in entries), default=0.0),
    )


def sweep(folder: Path, limits: CacheLimits, *, now_s: float) -> None:
    """Unlink what `choose_removals` says, and folders that are empty then; a mapping in use stays valid."""
    for file in choose_removals(_files(folder), limits, now_s=now_s):
        with contextlib.suppress(OSError):
            file.path.unlink(missing_ok=True)
    for inner, _, _ in os.walk(folder, topdown=False):
        if Path(inner) != folder:
            with contextlib.suppress(OSError):
                Path(inner).rmdir()


def choose_removals(files: Iterable[CachedFile], limits: CacheLimits, *, now_s: float) -> list[CachedFile]:
    """The files that go: left unfinished, idle for too long, and of the others those used longest ago."""
    gone, entries = [], []
    for file in files:
        if file.is_unfinished:
            gone += [file] if now_s - file.written_s > UNFINISHED_S else []
        elif now_s - file.used_s > limits.max_idle_s:
            gone.append(file)
        else:
            entries.append(file)
    entries.sort(key=lambda file: file.used_s)
    count, total = len(entries), sum(file.size_bytes for file in entries)
    for file in entries:
        if total <= limits.max_bytes and count <= limits.max_entries:
            break
        gone.append(file)
        count, total = count - 1, total - file.size_bytes
    return gone


def dead_entries(folder: Path, needed: Collection[str], *, epoch: int, now_s: float) -> list[Path]:
    """The entries of one subtask, of epochs up to `epoch`, that stand for none of the checksums `needed`.

    And what a process that died left unfinished.
    """
    dead = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        for entry in found:
            if entry.name.startswith(UNFINISHED_PREFIX):
                with contextlib.suppress(FileNotFoundError):
                    dead += [Path(entry.path)] if now_s - entry.stat().st_mtime > UNFINISHED_S else []
                continue
            written, _, rest = entry.name.removesuffix(ENTRY_SUFFIX).partition("-")
            if written.isdecimal() and int(written) <= epoch and rest.partition("-")[0] not in needed:
                dead.append(Path(entry.path))
    return dead


def _files(folder: Path) -> Iterator[CachedFile]:
    for inner, _, names in os.walk(folder):
        for name in names:
            if name.endswith((ENTRY_SUFFIX, _FORMER_SUFFIX)) or name.startswith(UNFINISHED_PREFIX):
                path = Path(inner, name)
                with contextlib.suppress(FileNotFoundError):
                    found = path.stat()
                    yield CachedFile(path, found.st_size, found.st_atime, found.st_mtime)
