"""Which replay has which letters.

A replay claims its letters by creating a file of the next free number, put-if-absent: of two replays that begin at
once, the second finds the number taken, looks again, and leaves out what the first one claimed. So no letter is
ever in two claims, and a claim is never taken back: it is either done, or somebody must go on with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import msgspec

from arroyo_core.errors import ArroyoError, Domain
from arroyo_core.state import StorageProvider
from arroyo_core.state.storage import StoredFile
from arroyo_dlq.letters import is_letter_path

FOLDER = "_replays"
_CLAIM = re.compile(rf"{FOLDER}/([0-9]{{5,18}})/claim\.json")
_DONE = re.compile(rf"{FOLDER}/([0-9]{{5,18}})/done\.json")
#: A claim of ten million letters that are no neighbours has less.
MAX_CLAIM_BYTES = 256 << 20


class ReplayError(ArroyoError):
    """A replay cannot be right, or cannot be done; the message says what can."""

    domain = Domain.USER


class ClaimedFile(msgspec.Struct, frozen=True):
    """Letters of one file, as sorted, half-open ranges of their places in it."""

    path: str
    size_bytes: int
    ranges: list[tuple[int, int]]

    def places(self, letters: int) -> list[int]:
        """The places in a file of so many letters. What is read of a claim may say anything."""
        return list(chain.from_iterable(range(start, min(stop, letters)) for start, stop in self.ranges))

    @property
    def letters(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    @property
    def end(self) -> int:
        """The place behind the last letter."""
        return self.ranges[-1][1] if self.ranges else 0

    @property
    def is_plain(self) -> bool:
        """Whether it is as a replay writes it: a path of letters, and ranges that are sorted and apart."""
        ends = [0, *chain.from_iterable(self.ranges)]
        is_sorted = all(first <= second for first, second in pairwise(ends))
        return is_letter_path(self.path) and is_sorted and all(start < stop for start, stop in self.ranges)


class Claim(msgspec.Struct, frozen=True):
    """What one replay takes: letters of one node of one pipeline."""

    number: int
    pipeline: str
    node: str
    #: The node that gets the rows; another one than `node` where the pipeline has changed.
    into: str
    time_us: int
    files: list[ClaimedFile]
    #: The last node to run, and where its output goes; None for the pipeline's own ends.
    until: str | None = None
    sink: str | None = None

    @property
    def letters(self) -> int:
        return sum(file.letters for file in self.files)

    def is_plain(self, number: int) -> bool:
        """Whether it is as a replay writes it in the folder of a number."""
        paths = {file.path for file in self.files}
        is_once = len(paths) == len(self.files)
        return self.number == number and is_once and all(file.is_plain for file in self.files)


class Done(msgspec.Struct, frozen=True):
    """What a finished replay came to."""

    letters: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Replays:
    """Every claim of a folder, by number, and the numbers of those that are done."""

    claims: Mapping[int, Claim] = field(default_factory=dict)
    done: frozenset[int] = frozenset()

    @property
    def broken_off(self) -> list[Claim]:
        """Claims whose replay has not come to its end."""
        return [claim for number, claim in sorted(self.claims.items()) if number not in self.done]

    @property
    def next_number(self) -> int:
        return max(self.claims, default=0) + 1

    def claimed(self, path: str, letters: int) -> frozenset[int]:
        """The places that some replay has of a file with so many letters."""
        return self._places(path, letters, self.claims.values())

    def replayed(self, path: str, letters: int) -> frozenset[int]:
        """The places that a finished replay has of a file with so many letters."""
        return self._places(path, letters, (self.claims[number] for number in self.done if number in self.claims))

    @staticmethod
    def _places(path: str, letters: int, claims: Iterable[Claim]) -> frozenset[int]:
        files = (file for claim in claims for file in claim.files if file.path == path)
        return frozenset(chain.from_iterable(file.places(letters) for file in files))


def read_replays(storage: StorageProvider) -> Replays:
    """What a listing says now; raises `ReplayError` for a claim that no replay writes."""
    listed = storage.list(FOLDER)
    claims = {
        int(found[1]): _read(storage, file, int(found[1])) for file in listed if (found := _CLAIM.fullmatch(file.path))
    }
    done = frozenset(int(found[1]) for file in listed if (found := _DONE.fullmatch(file.path)))
    return Replays(claims, done)


def put_claim(storage: StorageProvider, claim: Claim) -> bool:
    """Take the letters; False if the number is another replay's."""
    return storage.put_if_absent(f"{folder_of(claim)}/claim.json", msgspec.json.encode(claim))


def put_done(storage: StorageProvider, claim: Claim, *, time_us: int) -> None:
    """Say that a replay came to its end; a second time changes nothing."""
    storage.put_if_absent(
        f"{folder_of(claim)}/done.json", msgspec.json.encode(Done(letters=claim.letters, time_us=time_us))
    )


def folder_of(claim: Claim) -> str:
    """Where a replay keeps what is its own, relative to the URL of the letters."""
    return f"{FOLDER}/{claim.number:05}"


def to_ranges(places: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted places as half-open ranges."""
    ranges: list[tuple[int, int]] = []
    for place in places:
        if ranges and ranges[-1][1] == place:
            ranges[-1] = (ranges[-1][0], place + 1)
        else:
            ranges.append((place, place + 1))
    return ranges


def _read(storage: StorageProvider, stored: StoredFile, number: int) -> Claim:
    try:
        if stored.size_bytes > MAX_CLAIM_BYTES:
            raise msgspec.DecodeError(f"it has {stored.size_bytes} bytes, {MAX_CLAIM_BYTES} are allowed")
        claim = msgspec.json.decode(storage.read(stored.path), type=Claim)
        if not claim.is_plain(number):
            raise msgspec.DecodeError("its number, its paths or its ranges are not those that a replay writes")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReplayError(
            f"{storage.url}/{stored.path} is not a claim of a replay ({error}): without it nobody knows which letters "
            "were replayed, so none is; restore the file"
        ) from error
    return claim
