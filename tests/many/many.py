"""One run: starts the pipelines, does harm to some of them, stops the rest, and says what became of all."""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.nexmark.machine import about

from ..installed import installed
from ..integration.processes import kill, python_workers, session_processes
from ..waiting import wait_until
from .command import Command, JobEpoch
from .memory import Look, Memory
from .pipelines import Small, write_pipelines

CHAOS = Path(__file__).parents[1] / "integration" / "chaos_plugin"

#: When what happens, as a share of the run.
KILL_AT, FAIL_AT, STOP_AT = 0.25, 0.4, 0.6
#: Fewer pipelines are left alone.
LEAST_FOR_FAULTS = 3
#: The exit code where a pipeline has failed for a reason that its author can fix, and others have not.
FAILED_CODE = 2
START_S = 600.0


class ManyError(Exception):
    """The pipelines did not do what they must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    pipelines: list[Small]
    #: By name, when it happened; empty where nothing was done.
    faults: dict[str, float]
    duration_s: float
    epochs: list[JobEpoch]
    looks: list[Look]
    ends: dict[str, dict[str, Any]]
    code: int
    about: dict[str, object]

    @property
    def healthy(self) -> list[Small]:
        """Those to which nobody did harm on purpose."""
        return self.pipelines[: len(self.pipelines) - 2] if self.faults else self.pipelines

    @property
    def late_looks(self) -> list[Look]:
        """Of the last half before the pipelines were stopped: all workers have started, and memory is as it stays."""
        return [look for look in self.looks if look.time_s >= self._end_s - self.duration_s / 2]

    @property
    def early_looks(self) -> list[Look]:
        """Of the quarter before the first fault."""
        start_s = self._end_s - self.duration_s
        return [look for look in self.looks if 0.1 <= (look.time_s - start_s) / self.duration_s <= KILL_AT]

    @property
    def _end_s(self) -> float:
        return max(look.time_s for look in self.looks)

    def epochs_between(self, jobs: Sequence[Small], start_s: float, end_s: float) -> list[JobEpoch]:
        names = {job.name for job in jobs}
        # The first epoch of each waited for Spark.
        return [
            epoch
            for epoch in self.epochs
            if epoch.job in names and epoch.number > 1 and start_s <= epoch.time_s < end_s
        ]

    def cores(self) -> float:
        """How many were busy with all of it, on average."""
        first, last = self.looks[0], self.looks[-1]
        return (last.cpu_s - first.cpu_s) / (last.time_s - first.time_s)

    def problems(self) -> list[str]:
        """What must hold however short the run was."""
        found = []
        if self.code != (FAILED_CODE if self.faults else 0):
            found.append(f"the exit code is {self.code}")
        for job in self.pipelines:
            end = self.ends.get(job.name)
            if end is None:
                found.append(f"{job.name} did not say how it ended")
                continue
            expected = "failed" if self.faults and job is self.pipelines[-1] else "stopped"
            if end["outcome"] != expected:
                found.append(f"{job.name} {end['outcome']}, and not {expected}: {end['error']}")
            problem = job.problem(end["source_rows"])
            if problem is not None:
                found.append(problem)
        if self.faults:
            after_s = max(self.faults.values())
            found += [f"{job.name} has no epoch after the last fault" for job in self._stuck_after(after_s)]
            stopped = self.pipelines[-2]
            end_s = self.ends.get(stopped.name, {}).get("time_s", self._end_s)
            if end_s >= self._end_s:
                found.append(f"{stopped.name} did not end before the others were stopped")
        return found

    def _stuck_after(self, time_s: float) -> list[Small]:
        return [job for job in self.healthy if not any(e.job == job.name and e.time_s > time_s for e in self.epochs)]


def run_many(
    folder: Path, *, count: int, duration_s: float, interval: str, sample_s: float, does_harm: bool = True
) -> Outcome:
    """Run `count` pipelines in `folder`, which must be empty or missing, for so long after the first epoch of each."""
    pipelines = write_pipelines(folder, count, interval=interval)
    faults: dict[str, float] = {}
    with (
        installed(CHAOS),
        tempfile.TemporaryDirectory(prefix="many-", ignore_cleanup_errors=True) as temp,
        Command(folder, Path(temp)) as command,
    ):
        _wait_for(command, lambda: all(command.epochs_of(job.name) for job in pipelines), "an epoch of each")
        began_s = command.time_s
        with Memory(command, sample_s) as memory:
            if does_harm and count >= LEAST_FOR_FAULTS:
                _harm(command, pipelines, faults, began_s, duration_s)
            _pass(command, began_s + duration_s)
            memory.looks.append(memory.look())
        if not command.is_running:
            raise ManyError(f"all of them ended by themselves:\n{command.said()[-3000:]}")
        measured_s = command.time_s - began_s
        code = command.stop()
    return Outcome(
        pipelines=pipelines,
        faults=faults,
        duration_s=measured_s,
        epochs=command.epochs,
        looks=memory.looks,
        ends=command.ends,
        code=code,
        about=about(),
    )


def _harm(
    command: Command, pipelines: Sequence[Small], faults: dict[str, float], began_s: float, duration_s: float
) -> None:
    """Kill a Python worker, make the last pipeline fail, and stop the one before it."""
    _pass(command, began_s + KILL_AT * duration_s)
    victim = python_workers(session_processes(command.session))[0]
    kill(victim)
    faults["a Python worker was killed"] = command.time_s
    _pass(command, began_s + FAIL_AT * duration_s)
    failing, stopped = pipelines[-1], pipelines[-2]
    failing.trigger.touch()
    _wait_for(command, lambda: failing.name in command.ends, f"the end of {failing.name}")
    faults[f"{failing.name} failed"] = command.time_s
    _pass(command, began_s + STOP_AT * duration_s)
    command.stop_one(stopped.name)
    _wait_for(command, lambda: stopped.name in command.ends, f"the end of {stopped.name}")
    faults[f"{stopped.name} was stopped"] = command.time_s
    counts = {job.name: len(command.epochs_of(job.name)) for job in pipelines[:-2]}
    _wait_for(command, lambda: all(len(command.epochs_of(job)) > before for job, before in counts.items()), "epochs")


def _pass(command: Command, until_s: float) -> None:
    """Let the time pass that the run is to last: there is nothing to wait for."""
    threading.Event().wait(max(0.0, until_s - command.time_s))


def _wait_for(command: Command, is_true: Any, what: str) -> None:
    wait_until(
        lambda: is_true() or not command.is_running,
        patience_s=START_S,
        interval_s=0.2,
        problem=lambda: f"there is not {what}:\n{command.said()[-3000:]}",
    )
    if not is_true():
        raise ManyError(f"the command ended before there was {what}:\n{command.said()[-3000:]}")


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
