"""How far the tasks of a running epoch are, where they tell the driver themselves.

Workers that live on send it over their connection to the driver; tasks of Spark jobs have none (`heartbeats.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.carry import levels_message
from arroyo_core.runtime.heartbeats import Beat
from arroyo_core.runtime.node import OperatorNode


class RunningTask(Protocol):
    """A task, as another thread may look at it while it runs."""

    def beat(self) -> Beat:
        """Where it is."""
        ...

    def counted(self) -> list[pb.ChainReport]:
        """What its chains have counted so far."""
        ...


def counted_so_far(nodes: Iterable[OperatorNode], epoch: int) -> list[pb.ChainReport]:
    """Reports of chains that still run. The numbers of one operator need not be of the same moment."""
    return [
        pb.ChainReport(
            chain=node.chain.id,
            subtask=node.subtask,
            epoch=epoch,
            operators=[
                pb.OperatorReport(
                    operator_id=ctx.task_info.operator_id,
                    metrics=ctx.metrics.values(),
                    # The operator may add one just now.
                    counters=dict(ctx.metrics.counters),
                    levels=levels_message(ctx.levels),
                )
                for ctx in node.contexts()
            ],
        )
        for node in nodes
    ]


def progress_message(task: RunningTask) -> pb.TaskProgress:
    beat = task.beat()
    return pb.TaskProgress(
        epoch=beat.epoch,
        wave=beat.wave,
        subtask=beat.subtask,
        attempt=beat.attempt,
        count=beat.count,
        rows=beat.rows,
        place=beat.place,
        chains=task.counted(),
    )


@dataclass(slots=True)
class _Run:
    #: By wave and subtask.
    told: dict[tuple[int, int], pb.TaskProgress] = field(default_factory=dict)
    #: By chain and subtask.
    ended: dict[tuple[int, int], pb.ChainReport] = field(default_factory=dict)

    def is_ended(self, task: pb.TaskProgress) -> bool:
        return all((chain.chain, chain.subtask) in self.ended for chain in task.chains)


class RunningTasks:
    """What the driver was told last of each task, by the numbers of the runs that are under way; from any thread."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self._lock = threading.Lock()

    def begin(self, run: int) -> None:
        with self._lock:
            self._runs[run] = _Run()

    def end(self, run: int) -> None:
        with self._lock:
            self._runs.pop(run, None)

    def tell(self, run: int, task: pb.TaskProgress) -> None:
        """What a task says of itself; of a run that is over it means nothing."""
        with self._lock:
            if run in self._runs:
                self._runs[run].told[task.wave, task.subtask] = task

    def report(self, run: int, report: pb.ChainReport) -> None:
        """A chain has come to its end: what it has counted is final."""
        with self._lock:
            if run in self._runs:
                self._runs[run].ended[report.chain, report.subtask] = report

    def beats(self, epoch: int) -> list[Beat]:
        """The tasks of an epoch that have run for long and still do, in their order."""
        with self._lock:
            running = [
                task
                for run in self._runs.values()
                for task in run.told.values()
                if task.epoch == epoch and not run.is_ended(task)
            ]
        return sorted(map(_beat, running), key=lambda beat: (beat.wave, beat.subtask))

    def reports(self, epoch: int) -> list[pb.ChainReport]:
        """The newest of each chain and subtask; none where no task has run for long."""
        newest: dict[tuple[int, int], pb.ChainReport] = {}
        with self._lock:
            for run in self._runs.values():
                chains = [chain for task in run.told.values() if task.epoch == epoch for chain in task.chains]
                newest.update({(chain.chain, chain.subtask): chain for chain in chains})
                if chains:
                    newest.update(run.ended)
        return list(newest.values())


@runtime_checkable
class Telling(Protocol):
    """An executor whose tasks tell how far they are."""

    @property
    def running(self) -> RunningTasks: ...


def _beat(task: pb.TaskProgress) -> Beat:
    return Beat(
        epoch=task.epoch,
        wave=task.wave,
        subtask=task.subtask,
        attempt=task.attempt,
        count=task.count,
        rows=task.rows,
        place=task.place,
    )
