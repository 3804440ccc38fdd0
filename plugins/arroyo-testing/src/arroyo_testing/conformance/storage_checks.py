"""The checks of storage for checkpoints: what exactly-once rests on."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from arroyo_core.errors import StateError
from arroyo_core.state import StorageProvider
from arroyo_testing.conformance.cases import StorageCase, case_name
from arroyo_testing.conformance.faults import ConformanceError, shown
from arroyo_testing.conformance.subject import empty_folder

_RACERS = 8
_ROUNDS = 5
#: Long enough that a write which is not atomic can be seen half done.
_LARGE = 2_000_000


def check_reads_what_was_written(case: StorageCase) -> None:
    """Read after write, whole and in part; replaced by a second write; nothing is read of what is not there."""
    with _opened(case) as (storage, folder):
        path = f"{folder}/a/file"
        for content in (b"first", b"", b"the second, which is longer"):
            storage.write(path, content)
            _expect(case, storage.read(path), content, "a read right after a write")
        _expect(case, storage.size(path), 27, "the size of a file of 27 bytes")
        with storage.open(path) as source:
            source.seek(4)
            _expect(case, source.read(6), b"second", "a read of a part")
        _expect(case, storage.exists(path), True, "a file that is there")
        _expect(case, storage.exists(f"{folder}/a/other"), False, "a file that is not there")
        _expect_missing(case, storage, f"{folder}/a/other")


def check_put_if_absent(case: StorageCase) -> None:
    """The first create wins; a second with another content loses, and changes nothing."""
    with _opened(case) as (storage, folder):
        path = f"{folder}/claim"
        _expect(case, storage.put_if_absent(path, b"mine"), True, "the first put_if_absent")
        _expect(case, storage.put_if_absent(path, b"yours"), False, "a put_if_absent of a file that is there")
        _expect(case, storage.read(path), b"mine", "the file after a put_if_absent that lost")
        # The answer to the first attempt may have been lost on the way.
        _expect(case, storage.put_if_absent(path, b"mine"), True, "the same put_if_absent once more")


def check_one_of_racing_writers_wins(case: StorageCase) -> None:
    """Of many that create one file at the same time exactly one is told that it won, and its content is there."""
    with _opened(case) as (storage, folder), ThreadPoolExecutor(_RACERS) as pool:
        for turn in range(_ROUNDS):
            path, start = f"{folder}/race-{turn}", threading.Barrier(_RACERS)

            def race(number: int, path: str = path, start: threading.Barrier = start) -> bool:
                start.wait()
                return storage.put_if_absent(path, f"writer {number}".encode())

            winners = [number for number, won in enumerate(pool.map(race, range(_RACERS))) if won]
            if len(winners) != 1:
                raise ConformanceError(
                    f"{case_name(case)}: {len(winners)} of {_RACERS} writers that created one file at the same time "
                    "were told that they won: the create must be atomic (a conditional put, a link), or two drivers "
                    "will own one epoch"
                )
            _expect(case, storage.read(path), f"writer {winners[0]}".encode(), "the file that racing writers created")


def check_listing(case: StorageCase) -> None:
    """A listing has every file below its folder with its size, at once, and nothing beside it."""
    with _opened(case) as (storage, folder):
        paths = [f"{folder}/job/1/a", f"{folder}/job/1/deep/er/b", f"{folder}/job/10/c", f"{folder}/jobs/d"]
        for number, path in enumerate(paths):
            storage.write(path, b"x" * number)
        found = {file.path: file.size_bytes for file in storage.list(f"{folder}/job")}
        _expect(case, found, {paths[0]: 0, paths[1]: 1, paths[2]: 2}, "the listing of a folder")
        _expect(
            case, [file.path for file in storage.list(f"{folder}/job/1")], paths[:2], "the listing of one beside it"
        )
        _expect(case, storage.list(f"{folder}/nothing"), [], "the listing of a folder that is not there")


def check_deletes(case: StorageCase) -> None:
    """A deleted file is gone at once, from reads and listings; to delete it again is not an error."""
    with _opened(case) as (storage, folder):
        path = f"{folder}/old"
        storage.write(path, b"content")
        storage.delete(path)
        storage.delete(path)
        _expect(case, storage.exists(path), False, "a file that was deleted")
        _expect(case, storage.list(folder), [], "the listing of a folder whose one file was deleted")
        _expect(case, storage.put_if_absent(path, b"new"), True, "a put_if_absent of a file that was deleted")


def check_whole_files_only(case: StorageCase) -> None:
    """A reader sees the old content or the new one, never a part."""
    with _opened(case) as (storage, folder):
        path = f"{folder}/file"
        contents = (b"a" * _LARGE, b"b" * (_LARGE // 2))
        storage.write(path, contents[0])
        is_over = threading.Event()
        torn: list[str] = []

        def read() -> None:
            while not is_over.is_set() and not torn:
                content = storage.read(path)
                if content not in contents:
                    torn.append(f"{len(content)} bytes")

        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(read)
            for turn in range(10):
                storage.write(path, contents[(turn + 1) % 2])
            is_over.set()
            reader.result()
        if torn:
            raise ConformanceError(
                f"{case_name(case)}: a reader saw {torn[0]} while a file was replaced: a write must become visible "
                "as a whole, by a rename or by the put of a whole object"
            )


def check_survives_pickling(case: StorageCase) -> None:
    """Tasks on other machines get the provider by pickle."""
    with _opened(case) as (storage, folder):
        storage.write(f"{folder}/file", b"content")
        copy: StorageProvider = pickle.loads(pickle.dumps(storage))
        _expect(case, copy.read(f"{folder}/file"), b"content", "a read by a provider that was pickled")


@contextmanager
def _opened(case: StorageCase) -> Iterator[tuple[StorageProvider, str]]:
    with empty_folder() as place:
        url = case.url(place) if callable(case.url) else case.url
        storage = StorageProvider(url, options=case.options, attempts=1)
        folder = f"conformance-{uuid.uuid4().hex}"
        try:
            yield storage, folder
        except StateError as error:
            raise ConformanceError(f"{case_name(case)} fails: {error}") from error
        finally:
            with suppress(StateError):
                for file in storage.list(folder):
                    storage.delete(file.path)


def _expect(case: StorageCase, got: object, wanted: object, what: str) -> None:
    if got != wanted:
        raise ConformanceError(f"{case_name(case)}: {what} gives {shown(got)}, expected {shown(wanted)}")


def _expect_missing(case: StorageCase, storage: StorageProvider, path: str) -> None:
    from arroyo_core.state.failures import MissingFileError

    try:
        found = storage.read(path)
    except MissingFileError:
        return
    raise ConformanceError(
        f"{case_name(case)}: a read of a file that is not there gives {shown(found)}: raise FileNotFoundError"
    )


STORAGE_CHECKS: Mapping[str, Callable[[StorageCase], None]] = {
    "reads_what_was_written": check_reads_what_was_written,
    "put_if_absent": check_put_if_absent,
    "one_of_racing_writers_wins": check_one_of_racing_writers_wins,
    "listing": check_listing,
    "deletes": check_deletes,
    "whole_files_only": check_whole_files_only,
    "survives_pickling": check_survives_pickling,
}
