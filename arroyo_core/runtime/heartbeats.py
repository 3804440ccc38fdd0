"""How far tasks are that run for long: a small file for each of them, beside the checkpoints.

Spark tells when a task begins and ends, and nothing in between. A task that runs longer than a beat writes where it is,
again whenever something has moved, and deletes its file when it ends. Short tasks write nothing.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

import msgspec

from arroyo_core.errors import StateError
from arroyo_core.state import StorageProvider, paths
from arroyo_core.state.failures import UNREADABLE_JSON
from arroyo_core.state.limits import SMALL_FILE_BYTES

#: How many tasks are told about where many make no progress.
_SHOWN = 5

logger = logging.getLogger(__name__)


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """Where one task is."""

    epoch: int
    wave: int
    subtask: int
    attempt: int
    #: Rises with everything that the task does.
    count: int
    #: Of all its operators together.
    rows: int
    #: What it is doing, as a clause: `in operator 'slow'`.
    place: str

    def __str__(self) -> str:
        return f"subtask {self.subtask} of wave {self.wave} {self.place} ({self.rows:,} rows in and out)"


class Heart:
    """Beats while it is entered: in a thread of its own, since the task may be stuck."""

    def __init__(self, look: Callable[[], Beat], storage: StorageProvider, path: str, *, beat_s: float) -> None:
        self._look = look
        self._storage = storage
        self._path = path
        self._beat_s = beat_s
        self._is_over = threading.Event()
        self._writing = threading.Lock()
        self._last: Beat | None = None

    def __enter__(self) -> None:
        threading.Thread(target=self._run, name="arroyo-heart", daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        with self._writing:
            if self._last is not None:
                with contextlib.suppress(StateError):
                    self._storage.delete(self._path)

    def _run(self) -> None:
        while not self._is_over.wait(self._beat_s):
            beat = self._look()
            with self._writing:
                if not self._is_over.is_set() and (self._last is None or self._last.count != beat.count):
                    self._write(beat)

    def _write(self, beat: Beat) -> None:
        try:
            self._storage.write(self._path, msgspec.json.encode(beat), is_durable=False)
        except StateError as error:
            # The task is not worse for it; if the store stays away it fails by itself.
            logger.debug("a heartbeat could not be written: %s", error)
            return
        self._last = beat


class Heartbeats:
    """The driver's side. Files that tasks have left which were killed are deleted when they are seen."""

    def __init__(self, storage: StorageProvider, job_id: str, generation: int) -> None:
        self._storage = storage
        self._job_id = job_id
        self._generation = generation

    def read(self, epoch: int) -> list[Beat]:
        """The tasks of the epoch that run for long, in their order."""
        found = []
        for path in self._own_paths():
            with contextlib.suppress(StateError, *UNREADABLE_JSON):
                beat = msgspec.json.decode(self._storage.read(path, max_bytes=SMALL_FILE_BYTES), type=Beat)
                if beat.epoch == epoch:
                    found.append(beat)
                else:
                    self._storage.delete(path)
        return sorted(found, key=lambda beat: (beat.wave, beat.subtask))

    def clear(self) -> None:
        """No epoch follows."""
        for path in self._own_paths():
            with contextlib.suppress(StateError):
                self._storage.delete(path)

    def _own_paths(self) -> list[str]:
        """Those of this generation. Older drivers are gone, and so are their tasks; newer ones delete their own."""
        own = []
        for file in self._storage.list(paths.heartbeats_folder(self._job_id)):
            generation = paths.beating_generation_of(self._job_id, file.path)
            if generation == self._generation:
                own.append(file.path)
            elif generation is not None and generation < self._generation:
                with contextlib.suppress(StateError):
                    self._storage.delete(file.path)
        return own


def describe(tasks: str, beats: Sequence[Beat]) -> str:
    """Where an epoch is, for people; `tasks` is what the executor knows."""
    shown = [str(beat) for beat in beats[:_SHOWN]]
    if len(beats) > _SHOWN:
        shown.append(f"and {len(beats) - _SHOWN} more")
    return "; ".join([tasks or "its tasks are not known", *shown])


def fingerprint(tasks: str, beats: Sequence[Beat]) -> str:
    """Differs if anything has moved."""
    return f"{tasks}|" + "|".join(f"{beat.wave}.{beat.subtask}.{beat.attempt}.{beat.count}" for beat in beats)
