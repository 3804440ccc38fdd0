"""Runs a job on a cluster through all its kills, to its end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..integration.processes import Process, kill, python_workers
from ..integration.servers import Cluster
from ..integration.tally import published_epoch
from .kills import Kill, Target
from .supervisor import Supervisor

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
    starts: int = 0
    failures: int = 0
    epochs: int = 0
    duration_s: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{self.kills[target]} {target}" for target in Target)
        return (
            f"{self.kills.total()} kills ({kinds}), {self.starts - 1} restarts of the driver, of which "
            f"{self.failures} after an error, {self.epochs} epochs, {self.duration_s:.0f} s"
        )


class Rampage:
    """One run. Everything is waited for by looking; nothing is assumed about how long it takes."""

    def __init__(self, cluster: Cluster, pipeline: Path) -> None:
        settings = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
        self._cluster = cluster
        self._folder = pipeline.parent
        self._supervisor = Supervisor([str(pipeline), "--master", cluster.url, *settings], self._folder)
        self._outcome = Outcome()
        self._started = time.monotonic()

    def run(self, kills: Sequence[Kill]) -> Outcome:
        """Kill, let the job finish, and tell how it went."""
        try:
            for number, planned in enumerate(kills, start=1):
                self._do(planned)
                print(
                    f"{self._elapsed_s():6.1f} s  epoch {self._epoch():4}  kill {number} of {len(kills)}: "
                    f"{planned.target}",
                    flush=True,
                )
            self._wait("the job to finish", lambda: self._supervisor.is_finished)
        finally:
            self._supervisor.stop()
        self._outcome.starts = self._supervisor.starts
        self._outcome.failures = self._supervisor.failures
        self._outcome.epochs = self._epoch()
        self._outcome.duration_s = self._elapsed_s()
        return self._outcome

    def _do(self, planned: Kill) -> None:
        self._wait(f"epoch {planned.after_epoch}", lambda: self._epoch() >= planned.after_epoch, may_finish=False)
        due = time.monotonic() + planned.delay_s
        self._wait("the moment", lambda: time.monotonic() >= due, may_finish=False)
        self._wait(f"a {planned.target} to kill", lambda: self._strike(planned), may_finish=False)
        self._outcome.kills[planned.target] += 1

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
        processes = [process for worker in self._cluster.workers for process in worker.processes()]
        if target is Target.EXECUTOR:
            return [process for process in processes if process.is_executor]
        return python_workers(processes)

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
            self._supervisor.look(epoch)
            time.sleep(LOOK_S)

    def _epoch(self) -> int:
        return published_epoch(self._folder)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started
