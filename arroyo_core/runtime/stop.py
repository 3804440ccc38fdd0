"""How a wish to stop reaches a job: by a call, or by a file beside its checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable

from arroyo_core.errors import StateError
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.job_threads import start_job_thread
from arroyo_core.state import StorageProvider, get_storage_provider, paths
from arroyo_core.state.limits import SMALL_FILE_BYTES

#: How often the file is looked for on this machine, and across a network.
LOOK_S = 0.1
REMOTE_LOOK_S = 2.0


class StopSignal:
    """Given to a job, and asked from anywhere: another thread, a signal handler, a listener."""

    def __init__(self) -> None:
        self._mode: StopMode | None = None
        self._tell: Callable[[StopMode], None] | None = None

    @property
    def is_requested(self) -> bool:
        return self._mode is not None

    @property
    def mode(self) -> StopMode | None:
        return self._mode

    def request(self, mode: StopMode = StopMode.CHECKPOINT) -> None:
        """May be called twice: a second request counts if it is more urgent."""
        self._mode = mode
        if self._tell is not None:
            self._tell(mode)

    def watch(self, tell: Callable[[StopMode], None]) -> None:
        """The job listens from now on; a request from before is told at once."""
        self._tell = tell
        if self._mode is not None:
            tell(self._mode)


class StopFile:
    """The wish of one generation of a job, where its driver and all its sources can see it."""

    def __init__(self, storage: StorageProvider, path: str) -> None:
        self._storage = storage
        self._path = path

    @classmethod
    def at(cls, storage_url: str, job_id: str, generation: int) -> StopFile:
        return cls(get_storage_provider(storage_url), paths.stop_request(job_id, generation))

    @property
    def look_s(self) -> float:
        return REMOTE_LOOK_S if self._storage.is_remote else LOOK_S

    def write(self, mode: StopMode) -> None:
        self._storage.write(self._path, mode.encode())

    def end_epoch(self, *, is_stop: bool = True) -> None:
        """Have the sources end the running epoch; a wish that somebody has left there stays as it is.

        Without `is_stop` the job itself is not asked for anything.
        """
        self._storage.put_if_absent(self._path, StopMode.CHECKPOINT.encode() if is_stop else b"end")

    def read(self) -> StopMode | None:
        """None also where storage cannot be asked now: the next look will tell."""
        try:
            if not self._storage.exists(self._path):
                return None
            return StopMode(self._storage.read(self._path, max_bytes=SMALL_FILE_BYTES).decode())
        except (StateError, ValueError):
            return None

    def is_there(self) -> bool:
        try:
            return self._storage.exists(self._path)
        except StateError:
            return False


class StopPoller:
    """Looks for the file until it is there, in a thread of its own."""

    def __init__(self, file: StopFile, stop: StopSignal) -> None:
        self._file = file
        self._stop = stop
        self._is_over = threading.Event()

    def __enter__(self) -> None:
        start_job_thread(self._look, name="arroyo-stop")

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _look(self) -> None:
        seen: StopMode | None = None
        while not self._is_over.wait(max(self._file.look_s, 0.25)):
            mode = self._file.read()
            if mode is not None and mode is not seen:
                seen = mode
                self._stop.request(mode)
