"""How a wish for another parallelism reaches a running job: by a call, or by a file beside its checkpoints.

The job ends an epoch early, publishes and commits it, and goes on from it with another plan, in the same process: as if
it had been stopped and started again, under a generation of its own. So a kill at any moment is one of a job that stops
or starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import msgspec

from arroyo_core.errors import ConfigError, StateError
from arroyo_core.pipeline.file_keys import MAX_PARALLELISM
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.job_threads import start_job_thread
from arroyo_core.runtime.stop import LOOK_S, REMOTE_LOOK_S
from arroyo_core.state import StorageProvider, get_storage_provider, paths
from arroyo_core.state.failures import UNREADABLE_JSON
from arroyo_core.state.limits import SMALL_FILE_BYTES


class Wish(msgspec.Struct, frozen=True):
    """One request; the same number may be asked for twice."""

    parallelism: int
    id: str


class RescaleSignal:
    """Given to a job, and asked from anywhere for another parallelism: another thread, a listener.

    A request that cannot be met is refused with a warning, and the job goes on as before.
    """

    def __init__(self) -> None:
        self._wish: Wish | None = None
        self._tell: Callable[[int], None] | None = None
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def request(self, parallelism: int) -> None:
        """Ask for it; where the job does not listen now, it hears of the last request when it does."""
        self.pass_on(Wish(check_parallelism(parallelism), uuid4().hex))

    def pass_on(self, wish: Wish) -> None:
        """A wish that was found somewhere; each counts once."""
        with self._lock:
            if wish.id in self._told:
                return
            tell = self._tell
            self._wish = wish if tell is None else None
            if tell is not None:
                self._told.add(wish.id)
        if tell is not None:
            tell(wish.parallelism)

    def watch(self, tell: Callable[[int], None] | None) -> None:
        """The job listens from now on, or with None no longer; a request from before is told at once."""
        with self._lock:
            self._tell = tell
            wish = self._wish
        if tell is not None and wish is not None:
            self.pass_on(wish)


class RescaleFile:
    """The wish for one generation of a job, where its driver sees it."""

    def __init__(self, storage: StorageProvider, path: str) -> None:
        self._storage = storage
        self._path = path

    @classmethod
    def at(cls, storage_url: str, job_id: str, generation: int) -> RescaleFile:
        return cls(get_storage_provider(storage_url), paths.rescale_request(job_id, generation))

    @property
    def look_s(self) -> float:
        return REMOTE_LOOK_S if self._storage.is_remote else LOOK_S

    def write(self, parallelism: int) -> None:
        self._storage.write(self._path, msgspec.json.encode(Wish(check_parallelism(parallelism), uuid4().hex)))

    def read(self) -> Wish | None:
        """None also where storage cannot be asked now, or what is there makes no sense."""
        try:
            if not self._storage.exists(self._path):
                return None
            wish = msgspec.json.decode(self._storage.read(self._path, max_bytes=SMALL_FILE_BYTES), type=Wish)
            check_parallelism(wish.parallelism)
        except (StateError, ConfigError, *UNREADABLE_JSON):
            return None
        return wish


class RescalePoller:
    """Looks for the file, in a thread of its own."""

    def __init__(self, file: RescaleFile, signal: RescaleSignal) -> None:
        self._file = file
        self._signal = signal
        self._is_over = threading.Event()

    def __enter__(self) -> None:
        start_job_thread(self._look, name="arroyo-rescale")

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _look(self) -> None:
        while not self._is_over.wait(max(self._file.look_s, 0.25)):
            wish = self._file.read()
            if wish is not None and not self._is_over.is_set():
                self._signal.pass_on(wish)


def check_parallelism(parallelism: int) -> int:
    """The number itself; raises `ConfigError` for one that no pipeline can have."""
    if not 1 <= parallelism <= MAX_PARALLELISM:
        raise ConfigError(f"parallelism must be between 1 and {MAX_PARALLELISM}", value=parallelism)
    return parallelism


def is_same_shape(one: Plan, other: Plan) -> bool:
    """Whether all nodes have the same parallelism in both."""
    return {name: node.parallelism for name, node in one.nodes.items()} == {
        name: node.parallelism for name, node in other.nodes.items()
    }


def with_former_nodes(plan: Plan, former: Plan) -> Plan:
    """For views of a job that was rescaled: the plan, with nodes that it had only with another parallelism."""
    return replace(plan, nodes={**plan.nodes, **{k: v for k, v in former.nodes.items() if k not in plan.nodes}})
