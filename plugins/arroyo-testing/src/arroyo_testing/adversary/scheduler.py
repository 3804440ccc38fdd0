"""Runs one epoch as Spark's scheduler would on a bad day: stage after stage, and again what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arroyo_core.api import Clock
from arroyo_core.errors import ExternalError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.frames import Frame
from arroyo_core.runtime.local import reports_of
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.wave import run_wave
from arroyo_testing.adversary.attempt import Attempt, AttemptLostError, FetchFailedError, Frames, Output
from arroyo_testing.adversary.odds import Deed

if TYPE_CHECKING:
    from arroyo_testing.adversary.adversary import Adversary

#: How many frames an attempt makes in a turn, at most.
_STEPS = 8
#: As often as Spark tries a task that fails.
_TRIES = 4


@dataclass(slots=True)
class _Stage:
    """A wave: by partition, the output that counts, if there is one."""

    outputs: list[Output | None]

    @property
    def is_complete(self) -> bool:
        return None not in self.outputs

    def missing(self) -> list[int]:
        return [partition for partition, output in enumerate(self.outputs) if output is None]


class EpochScheduler:
    """One try to run an epoch; `run` returns what reached the driver, or raises as Spark would."""

    def __init__(
        self,
        adversary: Adversary,
        plan: Plan,
        request: EpochRequest,
        *,
        plugins: PluginSet,
        clock: Clock,
        attempts: Iterator[int],
        is_peaceful: bool,
    ) -> None:
        self._adversary = adversary
        self._plan = plan
        self._request = request
        self._plugins = plugins
        self._clock = clock
        self._attempts = attempts
        self._is_peaceful = is_peaceful
        widths = [plan.wave_parallelism(wave) for wave in range(plan.wave_count)]
        #: Into how many partitions each wave sends; what comes out of the last one is for the driver.
        self._targets = [*widths[1:], 1]
        self._stages = [_Stage([None] * width) for width in widths]
        self._running: list[Attempt] = []
        self._failures: Counter[tuple[int, int]] = Counter()

    def run(self) -> list[pb.ChainReport]:
        try:
            while (wave := self._next_wave()) is not None:
                self._turn(wave)
            self._may_fail()
        finally:
            for attempt in self._running:
                self._adversary.give_up(attempt)
        results = [output for output in self._stages[-1].outputs if output is not None]
        self._adversary.random.shuffle(results)
        return reports_of([frame for output in results for frame in output.blocks[0]])

    def _next_wave(self) -> int | None:
        """The wave to run: one behind which nothing is missing that it reads; None at the end.

        What is missing further in front is not asked for, as long as nobody has to read it.
        """
        wave = len(self._stages) - 1
        if self._stages[wave].is_complete:
            return None
        while wave > 0 and not self._stages[wave - 1].is_complete:
            wave -= 1
        return wave

    def _turn(self, wave: int) -> None:
        adversary, odds = self._adversary, self._adversary.odds
        adversary.wake()
        adversary.may_die()
        self._may_fail()
        if self._happens(odds.lose_host):
            self._lose_host()
            return
        if self._is_half_done(wave) and self._happens(odds.lose_output):
            self._lose_output(wave - 1, adversary.random.randrange(len(self._stages[wave - 1].outputs)))
            return
        self._start_missing(wave)
        attempt = adversary.random.choice(self._running)
        if self._happens(odds.lose_attempt):
            adversary.count(Deed.LOSE_ATTEMPT)
            self._drop(attempt)
        elif self._happens(odds.outage):
            self._interrupt(attempt)
        else:
            self._advance(attempt)

    def _start_missing(self, wave: int) -> None:
        """See to it that each missing task has an attempt; now and then it has two."""
        for partition in self._stages[wave].missing():
            at_it = [each for each in self._running if (each.wave, each.partition) == (wave, partition)]
            if not at_it:
                self._start(wave, partition)
            elif len(at_it) == 1 and self._happens(self._adversary.odds.speculate):
                self._adversary.count(Deed.SPECULATE)
                self._start(wave, partition)

    def _start(self, wave: int, partition: int) -> None:
        random = self._adversary.random
        environment = TaskEnvironment(
            partition=partition,
            attempt=next(self._attempts),
            plugins=self._plugins,
            clock=self._clock,
            is_last_attempt=self._failures[wave, partition] >= _TRIES - 1,
        )
        request = replace(self._request, budget=self._vary(self._request.budget))
        frames = _task(self._plan, wave, request, environment, self._read(wave, partition))
        self._running.append(Attempt(wave, partition, random.randrange(self._adversary.odds.hosts), frames))

    def _vary(self, budget: Budget) -> Budget:
        """Sources are stopped by the clock, too: another attempt stops at another row."""
        share = 0.0 if self._is_peaceful else self._adversary.odds.vary_budget
        factor = 1 + self._adversary.random.uniform(-share, share)
        return replace(budget, rows=None if budget.rows is None else max(1, round(budget.rows * factor)))

    def _read(self, wave: int, partition: int) -> Iterator[Frame]:
        """What the task reads: the outputs that count when it begins, in any order."""
        if wave == 0:
            return iter(())
        outputs = [output for output in self._stages[wave - 1].outputs if output is not None]
        self._adversary.random.shuffle(outputs)
        # Small blocks are all fetched before the task sees the first of them.
        is_prefetched = self._adversary.random.random() < 0.5
        return self._fetch(wave, partition, outputs, is_prefetched=is_prefetched)

    def _fetch(self, wave: int, partition: int, outputs: Sequence[Output], *, is_prefetched: bool) -> Iterator[Frame]:
        for output in outputs:
            if output.is_lost and not is_prefetched:
                self._adversary.count(Deed.FAIL_FETCH)
                raise FetchFailedError
            yield from output.blocks[partition]

    def _advance(self, attempt: Attempt) -> None:
        try:
            if self._adversary.advance(attempt, self._adversary.random.randint(1, _STEPS)):
                self._end(attempt)
        except (AttemptLostError, FetchFailedError):
            self._drop(attempt)
        except Exception as error:
            self._fail(attempt, error)

    def _interrupt(self, attempt: Attempt) -> None:
        """A service is away for a moment, in the middle of the task."""
        self._adversary.count(Deed.OUTAGE)
        try:
            attempt.throw(ConnectionError("the service is away"))
        except Exception as error:
            self._fail(attempt, error)

    def _end(self, attempt: Attempt) -> None:
        """The first to end counts; but of one whose stage was started over meanwhile, the last does."""
        self._running.remove(attempt)
        stage = self._stages[attempt.wave]
        if stage.outputs[attempt.partition] is not None:
            is_result = attempt.wave == len(self._stages) - 1
            if is_result or not self._happens(self._adversary.odds.replace):
                self._adversary.count(Deed.IGNORE)
                return
            self._adversary.count(Deed.REPLACE)
        width = self._targets[attempt.wave]
        blocks: list[list[Frame]] = [[] for _ in range(width)]
        for frame in attempt.sent:
            blocks[frame.target % width].append(frame)
        stage.outputs[attempt.partition] = Output(attempt.partition, attempt.host, blocks)
        # The others at it are asked to end.
        for other in [each for each in self._running if self._is_same(each, attempt)]:
            if self._adversary.random.random() < 0.5:
                self._drop(other)

    def _is_same(self, other: Attempt, attempt: Attempt) -> bool:
        return (other.wave, other.partition) == (attempt.wave, attempt.partition)

    def _fail(self, attempt: Attempt, error: Exception) -> None:
        """The attempt failed by itself; a task that does so too often ends the job."""
        self._running.remove(attempt)
        self._failures[attempt.wave, attempt.partition] += 1
        if self._failures[attempt.wave, attempt.partition] >= _TRIES:
            raise ExternalError(f"the job failed: {error}") from error

    def _drop(self, attempt: Attempt) -> None:
        self._running.remove(attempt)
        self._adversary.give_up(attempt)

    def _lose_host(self) -> None:
        """All outputs on it are gone, and so are its attempts; but results that the driver has, it keeps."""
        self._adversary.count(Deed.LOSE_HOST)
        host = self._adversary.random.randrange(self._adversary.odds.hosts)
        for wave, stage in enumerate(self._stages[:-1]):
            for partition, output in enumerate(stage.outputs):
                if output is not None and output.host == host:
                    self._lose_output(wave, partition)
        for attempt in [each for each in self._running if each.host == host]:
            self._drop(attempt)

    def _lose_output(self, wave: int, partition: int) -> None:
        output = self._stages[wave].outputs[partition]
        if output is not None:
            self._adversary.count(Deed.LOSE_OUTPUT)
            output.is_lost = True
            self._stages[wave].outputs[partition] = None

    def _is_half_done(self, wave: int) -> bool:
        return wave > 0 and 0 < len(self._stages[wave].missing()) < len(self._stages[wave].outputs)

    def _may_fail(self) -> None:
        if self._happens(self._adversary.odds.fail_job):
            self._adversary.count(Deed.FAIL_JOB)
            raise ExternalError("the job failed: all executors are gone")

    def _happens(self, chance: float) -> bool:
        return not self._is_peaceful and self._adversary.happens(chance)


def _task(
    plan: Plan, wave: int, request: EpochRequest, environment: TaskEnvironment, frames: Iterator[Frame]
) -> Frames:
    yield from run_wave(plan, wave, request, environment, frames)
