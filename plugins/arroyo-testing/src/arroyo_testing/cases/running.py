"""Runs a test: one process of its job after the other, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import pyarrow as pa

from arroyo_core.errors import ArroyoError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.events import Committed, EpochAccepted, Event, Published, Restored, StopMode
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_testing.cases.compiling import CompiledCase, Death, LifePlan
from arroyo_testing.cases.operators import POSITION, case_plugins, read_captured
from arroyo_testing.cases.rewiring import Outlet, rewire
from arroyo_testing.clock import FakeClock
from arroyo_testing.crash_filesystem import running
from arroyo_testing.inline_pool import InlinePool
from arroyo_testing.lanes import Killed, WatchedLanes
from arroyo_testing.live import live_executor
from arroyo_testing.machine import Disk, Life

MEMORY_URL = "crash-object://case"


class Place(Protocol):
    """Where a job runs, and where its files are."""

    url: str

    def process(self) -> AbstractContextManager[None]:
        """What is opened inside belongs to a new process."""
        ...

    def executor(self, plugins: PluginSet, clock: FakeClock) -> AbstractContextManager[EpochExecutor]:
        """What runs the epochs of a process, until its end."""
        ...


@dataclass(slots=True)
class MemoryPlace:
    """This process, and a disk in memory. With `is_watched`, the lives note what a crash would leave."""

    disk: Disk = field(default_factory=Disk)
    is_watched: bool = False
    lives: list[Life] = field(default_factory=list)
    url: str = MEMORY_URL

    @contextmanager
    def process(self) -> Iterator[None]:
        life = Life(watch=self.disk if self.is_watched else None)
        self.lives.append(life)
        with running(self.disk, life):
            yield

    def executor(self, plugins: PluginSet, clock: FakeClock) -> AbstractContextManager[EpochExecutor]:
        # In memory, threads only cost time.
        return closing(LocalExecutor(plugins, clock, pool=InlinePool()))


#: Makes what runs the epochs of a process.
MakeExecutor: TypeAlias = Callable[[FakeClock], AbstractContextManager[EpochExecutor]]


@dataclass(slots=True)
class FolderPlace:
    """Files in a folder, and tasks wherever `make_executor` runs them."""

    url: str
    make_executor: MakeExecutor

    def process(self) -> AbstractContextManager[None]:
        return nullcontext()

    def executor(self, plugins: PluginSet, clock: FakeClock) -> AbstractContextManager[EpochExecutor]:
        return self.make_executor(clock)


@dataclass(slots=True)
class RemoteTasks:
    """Lets tasks in other processes have the operators and the clock of tests."""

    inner: EpochExecutor
    clock: FakeClock

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]:
        return self.inner.run_epoch(plan, replace(request, plugins=case_plugins, clock=self.clock))

    def cancel(self) -> None:
        self.inner.cancel()

    def progress(self) -> str:
        return self.inner.progress()


@contextmanager
def live_tasks(clock: FakeClock) -> Iterator[EpochExecutor]:
    """Workers that live on, as threads; an epoch begins when the clock is where the one before it ends."""
    with closing(live_executor(case_plugins(), is_eager=False)) as executor:
        yield RemoteTasks(executor, clock)


#: The rows of each outlet, by the step after which they came.
Captured = Mapping[Outlet, Mapping[int, pa.Table]]


class CaseStuckError(ArroyoError):
    """A job of a test ended before its script did."""


@dataclass(slots=True)
class CaseRunner:
    """Runs one test at one place, from its beginning or from any of its lives."""

    case: CompiledCase
    plans: Callable[[int], Plan]
    sinks: frozenset[str]
    plugins: PluginSet
    place: Place
    #: The step after which each epoch ended; of an epoch that was lost, what the next one of its number says.
    positions: dict[int, int] = field(default_factory=dict)

    def run(self, first_life: int = 0) -> None:
        """All lives from `first_life` on; raises what the job raises."""
        for number in range(first_life, len(self.case.lives)):
            self._live(self.case.lives[number])

    def captured(self) -> Captured:
        """What came out; of those that nobody looks at, sinks only."""
        outlets = dict.fromkeys([*self.case.taps, *(Outlet(name) for name in sorted(self.sinks))])
        with self.place.process():
            return {outlet: self._by_step(read_captured(self._capture_url, str(outlet))) for outlet in outlets}

    @property
    def _capture_url(self) -> str:
        return f"{self.place.url}/captured"

    def _by_step(self, found: Mapping[tuple[int, int], pa.Table]) -> dict[int, pa.Table]:
        parts: dict[int, list[pa.Table]] = {}
        for (epoch, _), table in found.items():
            parts.setdefault(self.positions[epoch], []).append(table)
        return {step: pa.concat_tables(tables) for step, tables in parts.items()}

    def _live(self, life: LifePlan) -> None:
        clock = FakeClock(self.case.times_us[0])
        with self.place.process(), self.place.executor(self.plugins, clock) as executor:
            plan = rewire(
                self.plans(life.parallelism),
                sinks=self.sinks,
                scripts=self.case.scripts,
                cuts=life.cuts,
                taps=self.case.taps,
                state_url=f"{self.place.url}/state",
                capture_url=self._capture_url,
            )
            watcher = _Watcher(self.case, life, clock, self.positions)
            job = Job(
                plan,
                executor,
                plugins=self.plugins,
                storage_url=f"{self.place.url}/state",
                clock=clock,
                max_restarts=0,
                lanes=WatchedLanes(watcher.on_event),
            )
            watcher.job = job
            try:
                result = job.run()
            except Killed:
                return
        if life.death is Death.FINISH and not result.is_finished:
            raise CaseStuckError(f"the job of {self.case.spec.name!r} stopped before its data ended")


@dataclass(slots=True)
class _Watcher:
    """Moves the clock, and ends the life where its plan says."""

    case: CompiledCase
    life: LifePlan
    clock: FakeClock
    positions: dict[int, int]
    position: int = 0
    job: Job | None = None

    def on_event(self, event: Event) -> None:
        match event:
            case Restored():
                self._on_restored()
            case EpochAccepted(epoch=epoch):
                self._on_accepted(epoch)
                self._die_if(Death.UNPUBLISHED)
            case Published(epoch=epoch, needs_commit=True):
                self._die_if(Death.UNCOMMITTED)
            case Published(epoch=epoch) | Committed(epoch=epoch):
                self._die_if(Death.UNCOMMITTED)
                self._on_committed()

    def _on_restored(self) -> None:
        assert self.job is not None
        checkpoint = self.job.steps.start.checkpoint
        self.position = self.positions[checkpoint.epoch] if checkpoint is not None else 0
        self._move_clock()
        # Only after a crash that the test does not know of: what was left to do is to stop.
        if self.position >= self.life.end and self.life.death is not Death.FINISH:
            raise Killed

    def _on_accepted(self, epoch: int) -> None:
        assert self.job is not None
        result = self.job.steps.result(epoch)
        told = [metrics.counters.get(POSITION, 0) for metrics in result.operators.values()]
        # An epoch that a stop ended before it began leaves everything where it is.
        self.position = max([self.position, *told]) if self.case.scripts else self.life.end
        self.positions[epoch] = self.position

    def _on_committed(self) -> None:
        assert self.job is not None
        self._move_clock()
        if self.life.death is Death.STOP and self.position >= self.life.end and not self.job.stop.is_requested:
            self.job.stop.request(StopMode.GRACEFUL)

    def _die_if(self, death: Death) -> None:
        if self.life.death is death and self.position >= self.life.end:
            raise Killed

    def _move_clock(self) -> None:
        self.clock.move_to(self.case.times_us[self.position])


def table_between(tables: Mapping[int, pa.Table], first: int, last: int, schema: pa.Schema) -> pa.Table:
    """What came after step `first` and until `last`."""
    parts: Sequence[pa.Table] = [table for step, table in sorted(tables.items()) if first < step <= last]
    return pa.concat_tables(parts) if parts else schema.empty_table()
