"""Whether a store can create exclusively: of many that create one file at once, exactly one may win.

All fencing rests on it: with a create that looks first and writes then, two drivers can both own a generation of a job,
and both publish an epoch. What was verified is listed here; any other store proves it before a job's first claim.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from urllib.parse import urlsplit

from arroyo_core.errors import StateError
from arroyo_core.state.failures import UnsafeStorageError
from arroyo_core.state.storage import StorageProvider

#: Stores whose create is our own code, tested in races: hard links of local files, and a dictionary behind a lock.
VERIFIED = frozenset({"", "file", "local", "memory"})

#: S3 creates exclusively (`If-None-Match: *`). Others speak its protocol too, and some ignore the condition: those
#: let a second writer in, which is seen without a race.
CONDITIONAL = frozenset({"s3", "s3a"})

#: `allow` lets jobs start on any store, with a warning.
OVERRIDE_VARIABLE = "ARROYO_UNSAFE_STORAGE"

#: No job has a `~` in its name.
FOLDER = "~arroyo-race"
RACES = 5
RACERS = 8

logger = logging.getLogger(__name__)


class Proof(Enum):
    """What a store has to show before a job trusts it."""

    NONE = "none"
    SECOND_WRITER = "second writer"
    RACE = "race"


def required_proof(storage: StorageProvider) -> Proof:
    """What is asked of a store; nothing where whoever made it gave its driver, or the filesystem vouches for itself."""
    if storage.creates_exclusively:
        return Proof.NONE
    scheme = urlsplit(storage.url).scheme if "://" in storage.url else ""
    if scheme in VERIFIED:
        return Proof.NONE
    return Proof.SECOND_WRITER if scheme in CONDITIONAL else Proof.RACE


def require_exclusive_create(storage: StorageProvider) -> None:
    """Raise `UnsafeStorageError` unless the store is known to create exclusively, or shows that it does.

    Called when a job claims its first generation. What it writes is in a folder of its own, and deleted.
    """
    fault = exclusive_fault(storage)
    if fault is None:
        return
    message = (
        f"{storage.shown_url} cannot hold checkpoints: {fault}. Two drivers of one job could both believe that they "
        "own it. Use a local or shared folder, S3, or another store with an exclusive create"
    )
    if os.environ.get(OVERRIDE_VARIABLE) != "allow":
        raise UnsafeStorageError(
            f"{message}; where you are sure that no second driver of the job is ever started, "
            f"{OVERRIDE_VARIABLE}=allow runs it all the same"
        )
    logger.warning("%s. The job runs, because %s=allow says so", message, OVERRIDE_VARIABLE)


def exclusive_fault(storage: StorageProvider, *, folder: str = "") -> str | None:
    """Why the store is not trusted to create exclusively; None where it is known to, or shows that it does.

    What it writes is below `folder`, and deleted.
    """
    proof = required_proof(storage)
    return None if proof is Proof.NONE else find_fault(storage, proof, folder=folder)


def find_fault(storage: StorageProvider, proof: Proof, *, folder: str = "") -> str | None:
    """Why the store does not create exclusively, if it does not."""
    if storage.creates_exclusively is False:
        return "its fsspec filesystem creates a file in two steps, it looks for the file and then writes it"
    place = f"{folder}/" if folder else ""
    place += f"{FOLDER}-{secrets.token_hex(8)}"
    try:
        fault = second_writer_fault(f"{place}/second", storage, storage.reopen())
        if fault is None and proof is Proof.RACE:
            fault = race_fault([f"{place}/{number}" for number in range(RACES)], storage.reopen)
        return fault
    finally:
        # What cannot be deleted is no reason to refuse a store, nor to hide what is.
        with suppress(StateError):
            for file in storage.list(place):
                storage.delete(file.path)


def second_writer_fault(path: str, first: StorageProvider, second: StorageProvider) -> str | None:
    """What is wrong with a create of a file that is there, if anything."""
    if not first.put_if_absent(path, b"first"):
        return "a file that is not there cannot be created"
    is_refused = not second.put_if_absent(path, b"second")
    if not is_refused or first.read(path) != b"first":
        return "a second writer is not refused: it writes over the first"
    return None


def race_fault(paths: Sequence[str], reopen: Callable[[], StorageProvider]) -> str | None:
    """What is wrong with creates at the same moment, one race for each path; raises what a writer fails with."""
    for path in paths:
        stores = [reopen() for _ in range(RACERS)]
        winners = race(path, stores)
        if len(winners) != 1 or stores[0].read(path) != _content(winners[0]):
            return f"of {RACERS} writers at once {len(winners)} were told that they won"
    return None


def race(path: str, stores: Sequence[StorageProvider]) -> list[int]:
    """All create one file at the same moment; who was told that it won. Raises the first failure of a writer."""
    start = threading.Barrier(len(stores))
    winners: list[int] = []
    errors: list[StateError] = []

    def write(number: int, store: StorageProvider) -> None:
        start.wait()
        try:
            if store.put_if_absent(path, _content(number)):
                winners.append(number)
        except StateError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=each, name="arroyo-race") for each in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return winners


def _content(number: int) -> bytes:
    return f"writer {number}".encode()
