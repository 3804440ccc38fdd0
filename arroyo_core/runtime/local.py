"""Runs waves in this process, one task after the other: the runtime without Spark, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager

from arroyo_core.api import Clock, GivenRows
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import decode_report
from arroyo_core.runtime.clocks import task_clock
from arroyo_core.runtime.frames import Frame, FrameKind
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.residents import Residents
from arroyo_core.runtime.running import RunningTask
from arroyo_core.runtime.wave import run_wave
from arroyo_core.state import WarmCache


class LocalExecutor:
    """Does what Spark does for `arroyo run`: moves frames to their partitions, wave after wave.

    Without a `cache` every epoch reads state from storage; executors have `default_warm_cache`. A `pool` takes the
    place of the threads that read and write files of state. With `lives_on` operators live on from epoch to epoch
    where they can, as in live workers; close it then. `given` gives an epoch's rows for a subtask of sources whose rows
    come with the run.
    """

    def __init__(
        self,
        plugins: PluginSet,
        clock: Clock | None = None,
        *,
        cache: WarmCache | None = None,
        pool: Executor | None = None,
        lives_on: bool = False,
        given: Callable[[EpochRequest, int], Mapping[str, GivenRows]] | None = None,
    ) -> None:
        self._given = given
        self._plugins = plugins
        self._lives_on = lives_on
        #: By wave and partition.
        self._residents: dict[tuple[int, int], Residents] = {}
        self._clock = clock
        self._cache = cache
        self._pool = pool
        self._attempts = itertools.count(1)
        self._running: RunningTask | None = None

    def run_epoch(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        partitions: Sequence[list[Frame]] = [[] for _ in range(plan.wave_parallelism(0))]
        for wave in range(plan.wave_count):
            sent = [self._run_task(plan, wave, request, *item) for item in enumerate(partitions)]
            is_last = wave == plan.wave_count - 1
            width = 1 if is_last else plan.wave_parallelism(wave + 1)
            partitions = [[] for _ in range(width)]
            for frame in itertools.chain.from_iterable(sent):
                partitions[frame.target % width].append(frame)
        reports = reports_of(partitions[0])
        if any(report.HasField("error") for report in reports):
            self.close()
        return reports

    @property
    def gives_rows(self) -> bool:
        """Whether sources whose rows come with the run get any."""
        return self._given is not None

    def cancel(self) -> None:
        """An epoch that runs in this process runs to its end; what it came to is ignored."""

    def close(self) -> None:
        """End the lives of operators that have gone on."""
        residents, self._residents = self._residents, {}
        for each in residents.values():
            each.close()

    def progress(self) -> str:
        running = self._running
        if running is None:
            return ""
        beat = running.beat()
        return f"{beat}, step {beat.count:,}"

    def _run_task(
        self, plan: Plan, wave: int, request: EpochRequest, partition: int, frames: list[Frame]
    ) -> list[Frame]:
        environment = TaskEnvironment(
            partition=partition,
            attempt=next(self._attempts),
            plugins=self._plugins,
            clock=self._clock or task_clock(request),
            watch=self._watch,
            cache=self._cache,
            pool=self._pool,
            given=self._given(request, partition) if self._given is not None and wave == 0 else {},
            residents=self._residents.setdefault((wave, partition), Residents()) if self._lives_on else None,
        )
        try:
            return list(run_wave(plan, wave, request, environment, frames))
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _watch(self, task: RunningTask) -> Iterator[None]:
        self._running = task
        try:
            yield
        finally:
            # It holds on to all that the task had.
            self._running = None


def reports_of(frames: Sequence[Frame]) -> list[pb.ChainReport]:
    """The reports among the frames that reached the driver."""
    return [decode_report(frame.payload.to_pybytes()) for frame in frames if frame.kind is FrameKind.REPORT]
