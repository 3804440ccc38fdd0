"""What a task is told: which epoch of which plan to run, from which state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TYPE_CHECKING

from arroyo_core.api import CheckpointBarrier, Clock, CommitToken, GivenRows, StopRequest
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.carry import Carried
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.showing import Show
from arroyo_core.state import WarmCache

if TYPE_CHECKING:
    from arroyo_core.runtime.confirmation import Confirmation
    from arroyo_core.runtime.residents import Residents
    from arroyo_core.runtime.running import RunningTask


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRequest:
    """One epoch: the same for every task of it, and sent to executors with the plan."""

    epoch: int
    min_epoch: int
    #: The driver's time, from which tasks reckon theirs (`clocks.py`).
    timestamp_us: int
    #: What each source subtask may take.
    budget: Budget
    #: Where state lives.
    storage_url: str
    #: The generation of the driver; a stop file with its number ends the epoch.
    generation: int = 0
    #: The job's; see `CommitToken`.
    incarnation: str = ""
    #: Until an epoch of the driver was accepted: state is read from storage, and its checksums are compared, whatever
    #: a host has kept of it.
    is_first: bool = False
    #: Whether the driver has a key for seals: tasks, which have none, verify all of each file that they read.
    is_sealed: bool = False
    #: Set for the last epoch before a stop on request.
    stop: StopMode | None = None
    #: How often a task that runs for long tells where it is; None for never.
    beat_ms: int | None = None
    #: Each operator's checkpoint at the end of the last epoch, serialised.
    checkpoints: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    #: The watermarks at the end of the last epoch.
    carried: Carried = field(default_factory=dict, repr=False)
    #: For tests: what tasks in other processes use instead of what is installed there, and of the epoch's clock.
    plugins: Callable[[], PluginSet] | None = None
    clock: Clock | None = None

    def following(self, *, keep: int, timestamp_us: int) -> EpochRequest:
        """The epoch after this one, as far as it is known before this one has ended."""
        return replace(
            self,
            epoch=self.epoch + 1,
            min_epoch=first_kept(self.epoch + 1, keep),
            timestamp_us=timestamp_us,
            is_first=False,
            checkpoints={},
            carried={},
        )

    def follows(self, last: CommitToken) -> bool:
        """Whether the epoch begins with what that one left: the same driver goes on, and has not gone back."""
        return self.token == replace(last, epoch=last.epoch + 1) and not self.is_first

    @property
    def barrier(self) -> CheckpointBarrier:
        return CheckpointBarrier(
            epoch=self.epoch, min_epoch=self.min_epoch, timestamp_us=self.timestamp_us, then_stop=self.stop is not None
        )

    @property
    def token(self) -> CommitToken:
        return CommitToken(self.incarnation, self.generation, self.epoch)

    @property
    def stop_request(self) -> StopRequest | None:
        """What sources are told instead of the barrier."""
        return StopRequest(is_graceful=True) if self.stop is StopMode.GRACEFUL else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnvironment:
    """What is particular to one task: its place, its attempt, and the process it runs in."""

    partition: int
    #: Unique among all attempts at all tasks of the job.
    attempt: int
    plugins: PluginSet
    clock: Clock
    #: A failure now is final: whoever runs the tasks will not try this one again.
    is_last_attempt: bool = True
    #: Whether work may go on in threads beside the task; without, all calls to storage have one order.
    is_concurrent: bool = False
    #: Is given the task, and entered while it runs: for whoever can tell the driver where the task is. Without, a task
    #: that may have threads leaves heartbeats beside the checkpoints.
    watch: Callable[[RunningTask], AbstractContextManager[None]] | None = None
    #: What this host keeps of state that it has written or read; without, all is read from storage.
    cache: WarmCache | None = None
    #: What reads and writes several files of state at once; without, the threads of the process.
    pool: Executor | None = None
    #: Of a worker that lives on: is set when the run is given up. Then frames come and go while the wave runs.
    abandoned: Event | None = None
    #: The operators that live on from epoch to epoch; without, all are made again for each.
    residents: Residents | None = None
    #: Of an epoch that has begun before the driver asked for it: says when it has.
    confirmation: Confirmation | None = None
    #: Is called when the wave has sent its barrier, if the next epoch may begin there.
    on_barrier: Callable[[], None] | None = None
    #: The rows that come with the run, by source.
    given: Mapping[str, GivenRows] = field(default_factory=dict, repr=False)
    #: Brings text to the driver's standard output at once; without, nothing is shown before the commit.
    show: Show | None = None


def first_kept(epoch: int, keep: int) -> int:
    """The oldest epoch whose checkpoint is kept beside that of `epoch`."""
    return max(1, epoch + 1 - keep)


def source_budget(plan: Plan, *, interval_ms: int | None, rows: int | None, max_bytes: int | None) -> Budget:
    """Each source subtask's share of the epoch's budget."""
    shares = sum(node.parallelism for node in plan.nodes.values() if not plan.inputs_of(node.id))
    return Budget(
        interval_ms=interval_ms,
        rows=None if rows is None else -(-rows // shares),
        bytes=None if max_bytes is None else -(-max_bytes // shares),
    )
