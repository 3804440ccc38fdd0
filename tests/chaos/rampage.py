"""Runs a job on a cluster through all its kills and pauses, to its end."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..integration.processes import Process, kill, python_workers, send
from ..integration.servers import Cluster
from ..integration.tally import published_epoch
from .kills import Kill, Target
from .pauses import Pause, Sleeper
from .supervisor import Asleep, Supervisor, tail

#: Far beyond what any recovery takes, on a busy machine too.
PATIENCE_S = 300
LOOK_S = 0.1

SETTINGS = {
    "spark.ui.enabled": "false",
    # A fetch from an executor that is gone need not be tried for a quarter of a minute.
    "spark.shuffle.io.retryWait": "1s",
}


class ChaosError(Exception):
    """The job did not do what it must."""


@dataclass(slots=True)
class Outcome:
    kills: Counter[Target] = field(default_factory=Counter)
    pauses: Counter[Sleeper] = field(default_factory=Counter)
    starts: int = 0
    failures: int = 0
    epochs: int = 0
    duration_s: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{self.kills[target]} {target}" for target in Target)
        pauses = ", ".join(f"{self.pauses[sleeper]} {sleeper}" for sleeper in Sleeper)
        return (
            f"{self.kills.total()} kills ({kinds}), {self.pauses.total()} pauses ({pauses}), "
            f"{self.starts - 1} restarts of the driver, of which "
            f"{self.failures} after an error, {self.epochs} epochs, {self.duration_s:.0f} s"
        )


class Rampage:
    """One run. Everything is waited for by looking; nothing is assumed about how long it takes."""

    def __init__(
        self,
        cluster: Cluster,
        pipeline: Path,
        settings: Mapping[str, str] | None = None,
        *,
        execution: str = "jobs",
    ) -> None:
        given = SETTINGS | dict(settings or {})
        words = [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
        self._cluster = cluster
        self._folder = pipeline.parent
        arguments = [str(pipeline), "--master", cluster.url, "--execution", execution, *words]
        self._supervisor = Supervisor(arguments, self._folder)
        self._outcome = Outcome()
        #: What is paused, and until when.
        self._paused: list[tuple[float, Process]] = []
        self._started = time.monotonic()

    def run(self, blows: Sequence[Kill | Pause]) -> Outcome:
        """Kill and pause, let the job finish, and tell how it went."""
        try:
            for number, planned in enumerate(blows, start=1):
                self._do(planned)
                print(
                    f"{self._elapsed_s():6.1f} s  epoch {self._epoch():4}  {number} of {len(blows)}: {planned.deed}",
                    flush=True,
                )
            self._finish()
        finally:
            self._supervisor.stop()
        self._outcome.starts = self._supervisor.starts
        self._outcome.failures = self._supervisor.failures
        self._outcome.epochs = self._epoch()
        self._outcome.duration_s = self._elapsed_s()
        return self._outcome

    def _finish(self) -> None:
        self._wait("the job to finish", lambda: self._supervisor.is_finished)

    def _do(self, planned: Kill | Pause) -> None:
        self._wait_for_moment(planned)
        if isinstance(planned, Kill):
            self._wait(f"a {planned.target} to kill", lambda: self._strike(planned), may_finish=False)
            self._outcome.kills[planned.target] += 1
            return
        if planned.target is Sleeper.REPLACED_DRIVER:
            self._replace_driver(planned)
        else:
            self._wait(f"a {planned.target} to pause", lambda: self._pause(planned), may_finish=False)
        self._outcome.pauses[planned.target] += 1

    def _wait_for_moment(self, planned: Kill | Pause) -> None:
        self._wait(f"epoch {planned.after_epoch}", lambda: self._epoch() >= planned.after_epoch, may_finish=False)
        due = time.monotonic() + planned.delay_s
        self._wait("the moment", lambda: time.monotonic() >= due, may_finish=False)

    def _pause(self, planned: Pause) -> bool:
        """Whether there was something to pause; it goes on by itself, when its time has come."""
        groups = self._groups(planned.target)
        if not groups:
            return False
        until = time.monotonic() + planned.duration_s
        for process in planned.choose(groups):
            if send(process, signal.SIGSTOP):
                self._paused.append((until, process))
        return True

    def _groups(self, target: Sleeper) -> list[list[Process]]:
        """The processes that could be paused together."""
        driver = self._supervisor.processes()
        match target:
            case Sleeper.DRIVER:
                return [driver] if driver else []
            case Sleeper.DRIVER_PYTHON:
                return [[process] for process in driver if process.pid == process.session]
            case Sleeper.DRIVER_JVM:
                return [[process] for process in driver if process.is_driver_jvm]
            case Sleeper.SPARK_WORKER:
                return [[process] for process in self._of_workers() if process.pid == process.session]
            case Sleeper.EXECUTOR:
                return [[process] for process in self._of_workers() if process.is_executor]
            case Sleeper.HOST:
                return [family(process, self._of_workers()) for process in self._of_workers() if process.is_executor]
            case _:
                return [[process] for process in python_workers(self._of_workers())]

    def _replace_driver(self, planned: Pause) -> None:
        """The driver sleeps, a second one takes the job over, the first one wakes up: it must find out, and end."""
        # One that sleeps before its claim would take the job from the second one when it wakes up.
        self._wait("an epoch of the first driver", lambda: self._supervisor.has_the_job, may_finish=False)
        asleep = self._supervisor.replace()
        epoch, until = self._epoch(), time.monotonic() + planned.duration_s
        self._wait("the first driver's time to wake", lambda: time.monotonic() >= until)
        self._wait("an epoch of the second driver", lambda: self._epoch() > epoch)
        asleep.wake()
        self._wait("the first driver to end", lambda: asleep.is_gone)
        if not self._ended_rightly(asleep):
            raise ChaosError(f"the driver that lost the job ended, and did not say why:\n{tail(asleep.log)}")

    def _ended_rightly(self, asleep: Asleep) -> bool:
        return asleep.is_fenced

    def _wake(self) -> None:
        now = time.monotonic()
        for until, process in self._paused:
            if now >= until:
                send(process, signal.SIGCONT)
        self._paused = [(until, process) for until, process in self._paused if now < until]

    def _strike(self, planned: Kill) -> bool:
        """Whether there was something to kill."""
        if planned.target is Target.DRIVER:
            self._supervisor.kill()
            return True
        if planned.target is Target.SPARK_WORKER:
            worker = planned.choose(self._cluster.workers)
            worker.kill()
            worker.restart()
            return True
        victims = self._victims(planned.target)
        return bool(victims) and kill(planned.choose(victims))

    def _victims(self, target: Target) -> list[Process]:
        if target is Target.DRIVER_JVM:
            return [process for process in self._supervisor.processes() if process.is_driver_jvm]
        if target is Target.EXECUTOR:
            return [process for process in self._of_workers() if process.is_executor]
        return python_workers(self._of_workers())

    def _of_workers(self) -> list[Process]:
        return [process for worker in self._cluster.workers for process in worker.processes()]

    def _wait(self, what: str, is_true: Callable[[], bool], *, may_finish: bool = True) -> None:
        """Look until it is true, and keep the driver alive meanwhile; fails if the job stands still."""
        epoch, deadline = self._epoch(), time.monotonic() + PATIENCE_S
        while not is_true():
            if not may_finish and self._supervisor.is_finished:
                raise ChaosError(f"the job ended while the test waited for {what}:\n{self._supervisor.tail()}")
            if self._epoch() > epoch:
                epoch, deadline = self._epoch(), time.monotonic() + PATIENCE_S
            if time.monotonic() > deadline:
                raise ChaosError(
                    f"no epoch after {epoch} for {PATIENCE_S} s, waiting for {what}:\n{self._supervisor.tail()}"
                )
            self._wake()
            self._supervisor.look(epoch)
            # A cluster of processes that die and come back has nobody who could tell: it is looked at.
            time.sleep(LOOK_S)

    def _epoch(self) -> int:
        return published_epoch(self._folder)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started


def family(parent: Process, processes: Sequence[Process]) -> list[Process]:
    """A process and all that it started, by parents."""
    found = [parent]
    for process in found:
        found += [child for child in processes if child.parent == process.pid]
    return found
