"""Two drivers of one job at once, on one store, whose steps interleave as a seed says."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from arroyo_testing.crash_filesystem import CrashFileSystem
from arroyo_testing.machine import Crash, Disk, Life

from arroyo_core.state import FencedError, storage

from .calls import FirstDriverStore, SecondDriverStore
from .crash_rounds import ROOT, Laboratory
from .laboratory import make_plugins, plan_job, run_job
from .verdict import check_reader

T = TypeVar("T")

#: How likely a driver pauses before a call, and for how many calls of the other one.
PAUSE_SHARE = 0.03
#: What is decided or made visible by one call deserves more attention.
DECISIVE_SHARE = {"create": 0.3, "copy": 0.15, "delete": 0.05}
PAUSES = (1, 5, 30, 150, 1000)


class Turns:
    """Lets one driver wait while the other one goes on; never both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._changed = threading.Condition()
        self._calls = [0, 0]
        self._has_ended = [False, False]
        #: One of them waits; at first the second one does, for its start.
        self._is_paused = True

    def wait_for_start(self, me: int, calls: int) -> None:
        """Begin after the other driver has made so many calls; it does not pause before that."""
        with self._changed:
            self._wait_for(1 - me, calls)
            self._is_paused = False

    def before_call(self, me: int, kind: str) -> None:
        with self._changed:
            self._calls[me] += 1
            self._changed.notify_all()
            if self._is_paused or self.random.random() >= DECISIVE_SHARE.get(kind, PAUSE_SHARE):
                return
            self._is_paused = True
            self._wait_for(1 - me, self._calls[1 - me] + self.random.choice(PAUSES))
            self._is_paused = False

    def end(self, me: int) -> None:
        with self._changed:
            self._has_ended[me] = True
            self._changed.notify_all()

    def _wait_for(self, other: int, calls: int) -> None:
        self._changed.wait_for(lambda: self._has_ended[other] or self._calls[other] >= calls, timeout=60)


class SharedLife(Life):
    """A process that takes turns with another one, at one disk."""

    _disk_lock = threading.RLock()

    def __init__(self, turns: Turns, me: int) -> None:
        super().__init__()
        self._turns = turns
        self._me = me

    def do(self, kind: str, path: str, act: Callable[[], T], **options: object) -> T:
        if not path.endswith((".stop", ".rescale")):
            self._turns.before_call(self._me, kind)
        with self._disk_lock:
            if self.is_dead:
                raise Crash(f"{kind} {path}: the process is over")
            return act()


@dataclass(slots=True)
class Race:
    """What became of two drivers; `errors` has what each of them raised."""

    seed: int
    finished: list[bool] = field(default_factory=lambda: [False, False])
    errors: list[BaseException | None] = field(default_factory=lambda: [None, None])

    @property
    def fenced(self) -> list[FencedError]:
        return [error for error in self.errors if isinstance(error, FencedError)]

    def __str__(self) -> str:
        told = [f"{type(error).__name__}: {error}" if error else "finished" for error in self.errors]
        return f"seed {self.seed}: first {told[0]}; second {told[1]}"


def race(laboratory: Laboratory, seed: int) -> tuple[Race, Disk]:
    """Run two drivers of the job to their ends, whichever these are; also what they left."""
    storage._provider.cache_clear()
    turns, disk, result = Turns(seed), laboratory.new_disk(), Race(seed)
    late = turns.random.randrange(len(laboratory.whole.calls))
    stores: list[type[CrashFileSystem]] = [FirstDriverStore, SecondDriverStore]
    # The source keeps the URL of its files in state: it is the same for both drivers.
    CrashFileSystem.current = (disk, Life())
    lives = [SharedLife(turns, me) for me in range(2)]
    for life, store in zip(lives, stores, strict=True):
        store.current = (disk, life)

    def drive(me: int) -> None:
        try:
            if me == 1:
                turns.wait_for_start(me, late)
            plugins = make_plugins()
            url, source = f"{stores[me].protocol[0]}://{ROOT}", f"crash-object://{ROOT}/in"
            plan = plan_job(plugins, url, source=source, sink=laboratory.sink)
            result.finished[me] = run_job(plan, plugins).is_finished
        except BaseException as error:
            result.errors[me] = error
        finally:
            # What the driver has under way ends with its process.
            lives[me].kill()
            turns.end(me)

    threads = [threading.Thread(target=drive, args=(me,), name=f"driver-{me}") for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in (CrashFileSystem, *stores):
        store.current = None
    storage._provider.cache_clear()
    check_reader(disk.files, ROOT, laboratory.truth, may_tear=True)
    return result, disk
