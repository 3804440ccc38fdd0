"""Which files were replaced by larger ones: the records of compaction, and what they mean for readers.

A record is `_compacted/{number}.begun`: it is created exclusively, says which files take the place of which, and is
never changed. `{number}.json`, with the same content, appears when every new file has its name, and before the first of
those that it replaces is deleted. So at any moment the output is what the manifests list, with the new files of all
`.json` records, and without what these replace. Records stay: a commit that is repeated finds in them why a file is
gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from arroyo_core.api.confined import check_relative
from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_filesystem.location import Location

COMPACTED_FOLDER = "_compacted"
#: In the names of files that replace others, before the extension.
MARK = ".compacted."


def merged_name(first: str, unique: str, *, longest: int) -> str:
    """The name of a file that replaces others, of at most so many bytes; `unique` are 32 random hexadecimal digits.

    The name of the first one stays in front: names are in the order of epochs, as before.
    """
    stem, _, extension = first.rpartition(".")
    stem, _, former = stem.partition(MARK)
    name = f"{stem}{MARK}{unique[:8]}.{extension}"
    if len(name.encode()) <= longest and len(former) <= 8:
        return name
    # What is cut off, now or before, may be all that told the names of files apart.
    ending = f"{MARK}{unique}.{extension}"
    kept = stem.encode()[: max(1, longest - len(ending))].decode(errors="ignore")
    return f"{kept}{ending}"


class DamagedRecordError(StateError):
    """A record is not what a compaction wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class Merge(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and those that it replaces; paths are relative to the folder of the sink."""

    path: str
    rows: int
    bytes: int
    replaces: tuple[str, ...]
    #: Who wrote them, as names of manifests begin, and the epoch of the first of them.
    owner: str
    epoch: int
    #: Where the new file waits until the record is there.
    staged: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of compaction did."""

    number: int
    merges: tuple[Merge, ...]

    @property
    def replaced(self) -> Iterator[str]:
        """The first one of each merge comes last: as long as others are there, it is, and its name tells of them."""
        return (path for merge in self.merges for path in reversed(merge.replaces))

    @property
    def begun_path(self) -> str:
        return f"{COMPACTED_FOLDER}/{self.number:08}.begun"

    @property
    def complete_path(self) -> str:
        return f"{COMPACTED_FOLDER}/{self.number:08}.json"


def encode_record(record: Record) -> bytes:
    """One line of JSON, as manifests are."""
    return msgspec.json.encode(record) + b"\n"


@dataclass(frozen=True, slots=True)
class Records:
    """All records of a folder."""

    complete: tuple[Record, ...] = ()
    begun: tuple[Record, ...] = ()

    @classmethod
    def read(cls, location: Location) -> Records:
        """Those that are there; raises `DamagedRecordError` naming one that is not a record."""
        sizes = _sizes(location)
        complete: list[Record] = []
        begun: list[Record] = []
        for name, size in sorted(sizes.items()):
            stem, _, kind = name.partition(".")
            if kind == "begun" and stem.isdecimal():
                record = _read(location, name)
                # One that was cut off is written again.
                (complete if sizes.get(f"{stem}.json") == size else begun).append(record)
        return cls(tuple(complete), tuple(begun))

    @property
    def last(self) -> int:
        """The greatest number that is taken; 0 where there is none."""
        return max((record.number for record in (*self.complete, *self.begun)), default=0)

    @property
    def merges(self) -> list[Merge]:
        """What is done."""
        return [merge for record in self.complete for merge in record.merges]

    @property
    def replaced(self) -> frozenset[str]:
        """Files that count no more, also those that are still there."""
        return frozenset(path for record in self.complete for path in record.replaced)

    @property
    def hidden(self) -> frozenset[str]:
        """Files whose rows do not count: those that are replaced, and those that do not replace others yet."""
        return self.replaced | {merge.path for record in self.begun for merge in record.merges}


def _sizes(location: Location) -> dict[str, int]:
    location.fs.invalidate_cache()
    try:
        found = location.fs.ls(location.child(COMPACTED_FOLDER), detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {str(info["name"]).rpartition("/")[2]: int(info["size"] or 0) for info in found}


def _read(location: Location, name: str) -> Record:
    path = f"{COMPACTED_FOLDER}/{name}"
    with location.fs.open(location.child(path), "rb") as stream:
        content = stream.read()
    try:
        record = msgspec.json.decode(content, type=Record)
        for merge in record.merges:
            for each in (merge.path, merge.staged, *merge.replaces):
                check_relative(each)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, StateError) as error:
        raise DamagedRecordError(f"{path!r} in {location.url!r} is not a record of compaction: {error}") from error
    return record
