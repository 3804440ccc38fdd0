"""What the controller's instructions come to: running, publishing and committing epochs, against storage and Spark."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from arroyo_core.api import Clock
from arroyo_core.errors import ExchangeError, StateError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    DistributionDigest,
    OperatorCheckpointMetadata,
    SubtaskCheckpointMetadata,
)
from arroyo_core.runtime.acceptance import accept, is_last
from arroyo_core.runtime.carry import CARRIED, carried_of, carried_state, restore_carried
from arroyo_core.runtime.clocks import DriverClock
from arroyo_core.runtime.commit import commit_epoch
from arroyo_core.runtime.events import (
    Collected,
    Committed,
    EpochAccepted,
    EpochDiscarded,
    Published,
    Restored,
    RunEpoch,
)
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.request import EpochRequest, first_kept, source_budget
from arroyo_core.runtime.results import EpochResult, epoch_result
from arroyo_core.runtime.start import Start, StartOptions, resolve_start
from arroyo_core.runtime.udf_changes import record_udfs
from arroyo_core.state import ParquetBackend, merge_operator_metadata, paths
from arroyo_core.state.failures import DamagedStateError, StorageError

#: An epoch is looked at so many times before it may be given up; its tasks tell as often where they are.
LOOKS = 10

#: A driver whose clock is behind the last checkpoint by more than this says so.
NOTABLE_SKEW_US = 1_000_000

logger = logging.getLogger(__name__)


class EpochExecutor(Protocol):
    """Runs all waves of one epoch somewhere."""

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]: ...

    def cancel(self) -> None:
        """Make a running `run_epoch` return or raise soon; called from another thread."""
        ...

    def progress(self) -> str:
        """How many tasks of a running `run_epoch` have begun and ended, in words; called from another thread.

        Empty where nobody knows.
        """
        ...


@dataclass(slots=True)
class _Epoch:
    """An accepted epoch on its way to being committed."""

    checkpoint: CheckpointMetadata
    result: EpochResult
    accepted_s: float


class JobSteps:
    """Each method does what one instruction asks for; the controller sees to the order.

    `run` may be called while `publish`, `commit` and `collect` of earlier epochs are under way.
    """

    def __init__(
        self,
        plan: Plan,
        executor: EpochExecutor,
        *,
        plugins: PluginSet,
        backend: ParquetBackend,
        clock: Clock,
        options: StartOptions,
    ) -> None:
        self._plan = plan
        self._executor = executor
        self._plugins = plugins
        self._backend = backend
        self._clock = clock
        self._options = options
        self.start = Start(checkpoint=None, next_epoch=1)
        #: What the next epoch builds on: the last accepted one, published or not.
        self._base: CheckpointMetadata | None = None
        self._epochs: dict[int, _Epoch] = {}
        self._reached = 0
        #: Whether an epoch of this driver was accepted.
        self._has_run = False
        #: An epoch of this driver's own that a failure kept from being finished, and that `restore` completed.
        self.recovered: int | None = None
        #: What `restore`, `publish` or `commit` is at, as a clause; read from other threads.
        self.doing = ""
        self._collectable: CheckpointMetadata | None = None
        self._collected_to = 0

    @property
    def reached(self) -> int:
        """The last epoch that this driver knows to be published."""
        return self._reached

    def restore(self) -> Restored:
        """Take the job over, if this driver has not yet, and complete a commit that was interrupted."""
        self.doing = "the restore of the last checkpoint"
        is_restart = self._backend.generation > 0
        if not is_restart:
            self._backend.claim_generation()
        self.start = start = resolve_start(self._backend, self._plan, self._plugins, self._options)
        if is_restart:
            # Another driver may have been the reason for the restart.
            self._backend.check_turn(start.next_epoch)
            self._check_kept(start)
        self._reached = start.parent_epoch
        self._base = start.checkpoint
        self._go_on_in_time(start.checkpoint)
        if start.checkpoint is not None and start.needs_commit:
            self._replay_commit(start.checkpoint)
        self._forget_unpublished()
        return Restored(start.next_epoch, is_final=start.checkpoint is not None and start.checkpoint.is_final)

    def run(self, instruction: RunEpoch) -> EpochAccepted | EpochDiscarded:
        """Run an epoch on the one before, and decide whether it counts."""
        started_s = time.monotonic()
        request = self.request(instruction)
        try:
            reports = self._executor.run_epoch(self._plan, request)
            try:
                accept(self._plan, request.epoch, reports)
            except ExchangeError as error:
                return EpochDiscarded(request.epoch, str(error))
        except Exception:
            self._check_turn(request.epoch)
            raise
        accepted_s = time.monotonic()
        is_final = is_last(reports)
        checkpoint = self._checkpoint(request, reports, is_final=is_final)
        duration_s = accepted_s - started_s
        result = epoch_result(self._plan, checkpoint, reports, duration_s=duration_s)
        self._epochs[request.epoch] = _Epoch(checkpoint, result, accepted_s)
        self._base = checkpoint
        self._has_run = True
        return EpochAccepted(
            request.epoch, rows=result.source_rows, duration_ms=int(duration_s * 1000), is_final=is_final
        )

    def publish(self, epoch: int) -> Published:
        """Make an accepted epoch exist, if what its tasks wrote is there."""
        self.doing = f"the publication of epoch {epoch}"
        checkpoint = self._epochs[epoch].checkpoint
        try:
            self._backend.check_written(checkpoint)
            self._backend.publish(checkpoint)
        except StateError:
            # A driver that sleeps anywhere in here, and is replaced, misses files that are deleted with old epochs.
            self._check_turn(epoch)
            raise
        self._options = self._options.after_publication()
        self._reached = epoch
        return Published(epoch, needs_commit=checkpoint.needs_commit)

    def commit(self, epoch: int) -> Committed:
        accepted = self._epochs[epoch]
        for operator_id, said in self._commit(accepted.checkpoint).items():
            accepted.result.operators[operator_id].add_notes(said)
        return Committed(epoch)

    def result(self, epoch: int) -> EpochResult:
        """What an accepted epoch came to."""
        return self._epochs[epoch].result

    def finish(self, epoch: int) -> EpochResult:
        """The epoch is committed: what it came to."""
        done = self._epochs.pop(epoch)
        self._collectable = done.checkpoint
        return replace(done.result, commit_s=time.monotonic() - done.accepted_s)

    def collect(self) -> Collected:
        """Delete what no kept checkpoint needs."""
        last = self._collectable
        if last is not None and last.min_epoch > self._collected_to:
            self._backend.cleanup_checkpoint(last, self._collected_to, last.min_epoch)
            self._collected_to = last.min_epoch
        return Collected()

    def request(self, instruction: RunEpoch) -> EpochRequest:
        """What the tasks of an epoch are told."""
        spec = self._plan.checkpoint
        base = self._base or CheckpointMetadata()
        return EpochRequest(
            epoch=instruction.epoch,
            min_epoch=first_kept(instruction.epoch, spec.keep),
            timestamp_us=self._clock.now_us(),
            budget=source_budget(self._plan, interval_ms=instruction.source_ms, rows=spec.rows, max_bytes=spec.bytes),
            storage_url=self._backend.storage.url,
            generation=self._backend.generation,
            incarnation=self._backend.incarnation,
            is_first=not self._has_run,
            is_sealed=self._backend.seals.is_on,
            stop=instruction.stop,
            beat_ms=max(1, spec.timeout_ms // LOOKS),
            checkpoints={item.operator_metadata.operator_id: item.SerializeToString() for item in base.operators},
            carried=restore_carried(self._plan, carried_of(base)),
        )

    def _go_on_in_time(self, checkpoint: CheckpointMetadata | None) -> None:
        """Processing time does not go back, though the driver before this one may have had a clock that was ahead."""
        if checkpoint is None or not isinstance(self._clock, DriverClock):
            return
        behind_us = self._clock.go_on_from(checkpoint.finish_time_us)
        if behind_us > NOTABLE_SKEW_US:
            logger.warning(
                "the clock of this machine is %.0f s behind the last checkpoint of the job: processing time goes on "
                "from there; set the clock (NTP)",
                behind_us / 1e6,
            )

    def _forget_unpublished(self) -> None:
        """Of the epochs under way only one can have been published; the others are run again."""
        last = self._base
        own = last.epoch if last is not None and last.generation == self._backend.generation else None
        self._epochs = {epoch: kept for epoch, kept in self._epochs.items() if epoch == own}
        self.recovered = next(iter(self._epochs), None)

    def _check_kept(self, start: Start) -> None:
        """Raise rather than go back behind what this driver has published: only somebody else can have removed it."""
        if start.parent_epoch < self._reached:
            place = f"{self._backend.storage.url}/{paths.epoch_folder(self._plan.job_id, self._reached)}"
            raise DamagedStateError(f"{place} was removed while job {self._plan.job_id!r} ran, which goes on from it")

    def _check_turn(self, epoch: int) -> None:
        """Raise if another driver has the job: it deletes what this one still reads, and that is no damage."""
        with contextlib.suppress(StorageError):
            # The epoch that this one builds on need not be published yet, and may be somebody else's by now.
            for pending in sorted({*self._epochs, epoch}):
                self._backend.check_turn(pending)

    def _checkpoint(
        self, request: EpochRequest, reports: Sequence[pb.ChainReport], *, is_final: bool
    ) -> CheckpointMetadata:
        operators = _merge(reports)
        origins = {node.origin.distribution: node.origin.version for node in self._plan.nodes.values()}
        return CheckpointMetadata(
            job_id=self._plan.job_id,
            epoch=request.epoch,
            min_epoch=request.min_epoch,
            start_time_us=request.timestamp_us,
            finish_time_us=self._clock.now_us(),
            parent_epoch=self._base.epoch if self._base is not None else 0,
            needs_commit=any(operator.needs_commit for operator in operators),
            operators=operators,
            plugins=[DistributionDigest(name=name, version=origins[name]) for name in sorted(origins)],
            udfs=record_udfs(self._plan),
            is_final=is_final,
            incarnation=request.incarnation,
            properties={
                **self.start.properties,
                CARRIED: carried_state(reports).SerializeToString(),
            },
        )

    def _replay_commit(self, checkpoint: CheckpointMetadata) -> None:
        for operator_id, said in self._commit(checkpoint).items():
            for warning in said.warnings.values():
                logger.warning("%s, commit of epoch %d: %s", operator_id, checkpoint.epoch, warning)

    def _commit(self, checkpoint: CheckpointMetadata) -> Mapping[str, OperatorMetrics]:
        """Have every sink commit, then mark the epoch; what they counted and warned of, by operator id."""

        def begin(node_id: str) -> None:
            self.doing = f"the commit of epoch {checkpoint.epoch} by {node_id!r}"

        try:
            said = commit_epoch(self._plan, self._plugins, checkpoint, self._backend, self._clock, begin=begin)
            self._backend.mark_committed(checkpoint.epoch)
        except Exception:
            # Another driver may be the reason: a sink has refused this one, or misses what that one has moved already,
            # or the epoch is an old one by now, and deleted.
            with contextlib.suppress(StorageError):
                self._backend.check_commit(checkpoint.epoch)
            raise
        return said


def _merge(reports: Sequence[pb.ChainReport]) -> list[OperatorCheckpointMetadata]:
    """Each operator's checkpoint from those of its subtasks; operators without tables have none."""
    subtasks: dict[str, list[SubtaskCheckpointMetadata]] = {}
    backlogs: Counter[str] = Counter()
    for report in reports:
        for item in report.operators:
            if item.checkpoint:
                metadata = SubtaskCheckpointMetadata.FromString(item.checkpoint)
                subtasks.setdefault(item.operator_id, []).append(metadata)
            if item.finish_type:
                backlogs[item.operator_id] += OperatorMetrics.from_values(item.metrics).backlog
    merged = [merge_operator_metadata(subtasks[operator_id]) for operator_id in sorted(subtasks)]
    for operator in merged:
        operator.backlog = backlogs[operator.operator_metadata.operator_id]
    return merged
