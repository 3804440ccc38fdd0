"""Which files a watch has seen, in memory that does not grow with them.

Every file is remembered for a while. With an `order`, those that were read are forgotten after it, and a mark stays:
the greatest of what was forgotten. A file that is not remembered and not above the mark was read, or else it came too
late. Which of both a single file is, nobody knows any more; but of all those that a listing shows below the mark, their
number and a digest are kept: one more of them, and a file came late.

Without an order a file is forgotten when it has been gone from the folder for some time.

In the table `k`, of subtask 0: `mark`, a `Mark`; `-{path}`, a `Seen`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from arroyo_core.api import StateTables
from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.listing import File
from arroyo_filesystem.location import Login, without_login
from arroyo_filesystem.watch_settings import Order, WatchSettings

SEEN_TABLE = "k"
#: As the number of a file: it is not to be read.
SKIPPED = -1
_MARK = "mark"


class Seen(msgspec.Struct, array_like=True):
    """A file that was seen."""

    path: str
    size: int
    version: str
    modified_us: int
    identity: str
    #: When it was seen first, and since when it is gone; 0 while it is there.
    seen_us: int
    gone_us: int
    #: That of its first split, or `SKIPPED`.
    number: int
    #: Of one that grows: the end of the lines that were found, and what tells its first bytes.
    stop: int = 0
    head: str = ""

    @property
    def file(self) -> File:
        return File(self.path, self.size, self.version, self.modified_us, self.identity)


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """All that is known of files that were forgotten."""

    order: str
    #: The greatest key of one.
    key: tuple[int, str] | None = None
    #: The greatest time of change of a file that was seen.
    newest_us: int = 0
    #: How many files the last listing had up to that key that are not remembered, and all their digests as one.
    count: int = 0
    digest: int = 0


@dataclass(slots=True)
class Comparison:
    """What a listing has that was not there before."""

    #: In order; where files grow, also those that have changed.
    new: list[File] = field(default_factory=list)
    #: What was seen, and the file as it is now.
    renamed: list[tuple[Seen, File]] = field(default_factory=list)
    replaced: list[File] = field(default_factory=list)
    #: How many files came too late, and one of them, where it is known.
    late_count: int = 0
    late: File | None = None


class SeenFiles:
    """The memory of one epoch."""

    def __init__(self, tables: StateTables, watch: WatchSettings, login: Login) -> None:
        """Every subtask has to make one, as the table is partitioned; only subtask 0 may do anything with it."""
        self._view = tables.get_partitioned_keyed_state(SEEN_TABLE, lambda _: 0, key_type=str)
        self._watch = watch
        self._login = login
        self._loaded: dict[str, Seen] | None = None

    @property
    def mark(self) -> Mark:
        """Raises `IncompatibleCheckpointError` if it is of another order."""
        stored = self._view.get(_MARK)
        if stored is None:
            return Mark(self._watch.order)
        mark = msgspec.convert(stored, Mark)
        if mark.key is not None and mark.order != self._watch.order:
            raise IncompatibleCheckpointError(
                f"files were forgotten in order of their {mark.order or 'absence'}, so order cannot be "
                f"{str(self._watch.order) or 'left out'}: choose {mark.order!r}, or give the node another id, and it "
                "reads from the beginning"
            )
        return mark

    @property
    def files(self) -> dict[str, Seen]:
        """By their paths, without a login."""
        if self._loaded is None:
            stored = self._view.get_all()
            self._loaded = {key[1:]: msgspec.convert(value, Seen) for key, value in stored.items() if key != _MARK}
        return self._loaded

    def remember(self, file: File, *, number: int, now_us: int, stop: int = 0, head: str = "") -> None:
        """From now on this file is a known one; `stop` and `head` are of one that grows."""
        path = without_login(file.path)
        self._store(Seen(path, file.size, file.version, file.modified_us, file.identity, now_us, 0, number, stop, head))
        mark = self.mark
        if file.modified_us > mark.newest_us:
            self._set_mark(msgspec.structs.replace(mark, newest_us=file.modified_us))

    def forget_name(self, path: str, *, identity: str) -> None:
        """A file has another name now; another file may have this one, whose identity begins otherwise."""
        if path in self.files and self.files[path].identity.startswith(f"{identity} "):
            del self.files[path]
            self._view.remove(f"-{path}")

    def compare(self, listed: Sequence[File], now_us: int) -> Comparison:
        """Sort out a listing, and remember what it shows of files that were seen, but not its new ones."""
        found, mark = Comparison(), self.mark
        bare = {without_login(file.path): file for file in listed}
        # Where files grow, a name says little: `FolderWatch` finds out which file it is.
        by_identity = {seen.identity: seen for seen in self.files.values() if seen.identity and not self._watch.grows}
        below: list[str] = []
        for path, file in bare.items():
            seen = self.files.get(path)
            if seen is not None:
                self._meet(seen, file, found)
                continue
            former = by_identity.get(file.identity) if file.identity else None
            if former is not None and (_is_lasting(file.identity) or former.path not in bare):
                found.renamed.append((former, file))
            elif mark.key is not None and self._watch.key(File(path, 0, "", file.modified_us)) <= mark.key:
                below.append(path)
            else:
                found.new.append(file)
        for former, file in found.renamed:
            self._rename(former, file, is_gone=former.path not in bare)
        for path, seen in self.files.items():
            if path not in bare and not seen.gone_us:
                seen.gone_us = now_us
                self._store(seen)
        self._count_late(below, bare, found)
        found.new.sort(key=self._watch.key)
        return found

    def forget(self, now_us: int, *, is_unread: Callable[[int], bool]) -> int:
        """Forget what needs not be remembered; how many were forgotten before their time."""
        mark, read = self.mark, [seen for seen in self.files.values() if not is_unread(seen.number)]
        gone = {seen.path for seen in read if self._is_past(seen, mark, now_us)}
        early = 0
        if self._watch.order and len(self.files) - len(gone) > self._watch.max_remembered_files:
            early = len(self.files) - len(gone) - self._watch.max_remembered_files
            left = sorted((seen for seen in read if seen.path not in gone), key=lambda seen: self._watch.key(seen.file))
            early = len(left[:early])
            gone |= {seen.path for seen in left[:early]}
        key, count, digest = mark.key, mark.count, mark.digest
        for path in gone:
            seen = self.files.pop(path)
            self._view.remove(f"-{path}")
            if not self._watch.order:
                continue
            key = max(key or (0, ""), self._watch.key(seen.file))
            if not seen.gone_us:
                count, digest = count + 1, digest ^ _digest(path)
        if self._watch.order and gone:
            self._set_mark(msgspec.structs.replace(mark, key=key, count=count, digest=digest))
        return early

    def _meet(self, seen: Seen, file: File, found: Comparison) -> None:
        """A file that was seen is still there, or again."""
        is_replaced = seen.file.is_changed(file)
        if is_replaced and self._watch.grows:
            found.new.append(file)
            return
        if is_replaced:
            found.replaced.append(file)
        # A plan of former versions has neither its time nor its identity.
        is_known = (seen.modified_us or not file.modified_us) and (seen.identity or not file.identity)
        if is_replaced or seen.gone_us or not is_known:
            seen.size, seen.version, seen.gone_us = file.size, file.version, 0
            seen.modified_us, seen.identity = file.modified_us, file.identity
            self._store(seen)

    def _rename(self, former: Seen, file: File, *, is_gone: bool) -> None:
        if is_gone and former.path in self.files:
            del self.files[former.path]
            self._view.remove(f"-{former.path}")
        self.remember(file, number=former.number, now_us=former.seen_us)

    def _is_past(self, seen: Seen, mark: Mark, now_us: int) -> bool:
        lateness_us = self._watch.lateness_us
        if self._watch.order is Order.TIME:
            return mark.newest_us - seen.modified_us >= lateness_us
        if self._watch.order is Order.NAME:
            return now_us - seen.seen_us >= lateness_us
        return bool(seen.gone_us) and now_us - seen.gone_us >= lateness_us

    def _count_late(self, below: Sequence[str], bare: dict[str, File], found: Comparison) -> None:
        """Files below the mark were forgotten, unless there are more of them than there were."""
        mark = self.mark
        if mark.key is None:
            return
        digest = 0
        for path in below:
            digest ^= _digest(path)
        if len(below) > mark.count:
            found.late_count = len(below) - mark.count
            only = mark.digest ^ digest
            found.late = next((bare[path] for path in below if found.late_count == 1 and _digest(path) == only), None)
        if (len(below), digest) != (mark.count, mark.digest):
            self._set_mark(msgspec.structs.replace(mark, count=len(below), digest=digest))

    def _store(self, seen: Seen) -> None:
        self.files[seen.path] = seen
        self._view.insert(f"-{seen.path}", seen)

    def _set_mark(self, mark: Mark) -> None:
        self._view.insert(_MARK, msgspec.structs.replace(mark, order=str(self._watch.order)))


def _is_lasting(identity: str) -> bool:
    """Whether a file keeps it under all its names, so that two names are one file and not a copy."""
    return identity.startswith("ino=")


def _digest(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=7).digest(), "big")
