"""The job: epoch after epoch, each run, accepted, and committed, until the sources end or a stop is asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

from arroyo_core.api import Clock, SourceFinishType, SystemClock
from arroyo_core.errors import ExchangeError
from arroyo_core.graph.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    DistributionDigest,
    OperatorCheckpointMetadata,
    SubtaskCheckpointMetadata,
)
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.carry import carried_state, restore_carried
from arroyo_core.runtime.commit import commit_epoch
from arroyo_core.runtime.request import EpochRequest, source_budget
from arroyo_core.runtime.results import EpochResult, JobResult, epoch_result
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.state import ParquetBackend, ResolutionKind, get_storage_provider, merge_operator_metadata

#: How often an epoch that senders and receivers disagree on is run again before the job fails.
MAX_DISCARDS = 5

#: The property of a checkpoint that holds the job's `CarriedState`.
CARRIED = "carried"

logger = logging.getLogger(__name__)


class EpochExecutor(Protocol):
    """Runs all waves of one epoch somewhere."""

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]: ...


class JobListener(Protocol):
    """Is told about a job's progress."""

    def on_start(self, job: JobResult) -> None:
        """Called once, before the first epoch; `job.resumed_from` says where the job goes on."""
        ...

    def on_epoch(self, result: EpochResult, job: JobResult) -> None: ...


class SilentListener:
    def on_start(self, job: JobResult) -> None:
        return

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        return


class Job:
    """Drives a plan to its end, from its latest checkpoint on.

    Each epoch is run, accepted, published, committed and marked, in this order; a job that dies
    anywhere between goes on from the last published epoch, and commits it again if it must.
    """

    def __init__(
        self,
        plan: Plan,
        executor: EpochExecutor,
        *,
        plugins: PluginSet,
        storage_url: str,
        clock: Clock | None = None,
        listener: JobListener | None = None,
        stop: StopSignal | None = None,
    ) -> None:
        self.plan = plan
        self.executor = executor
        self.stop = stop or StopSignal()
        self._plugins = plugins
        self._storage_url = storage_url
        self._clock = clock or SystemClock()
        self._listener = listener or SilentListener()
        self._backend = ParquetBackend(get_storage_provider(storage_url), plan.job_id)
        self._last: CheckpointMetadata | None = None
        self._cleaned_to = 0

    def run(self) -> JobResult:
        """Run until every source is final, or until `stop` is asked for: the epoch then ends early."""
        started = time.monotonic()
        job = JobResult(job_id=self.plan.job_id)
        job.resumed_from = self.start()
        job.is_finished = self._last is not None and self._last.is_final
        self._listener.on_start(job)
        while not job.is_finished and not self.stop.is_requested:
            result = self.run_epoch()
            job.add(result)
            job.duration_s = time.monotonic() - started
            self._listener.on_epoch(result, job)
        return job

    def start(self) -> int:
        """Take the job over, and finish a commit that was broken off; returns the epoch to go on from, or 0."""
        self._backend.claim_generation()
        resolution = self._backend.resolve_latest()
        self._last = resolution.checkpoint
        if self._last is None:
            return 0
        if resolution.kind is ResolutionKind.REPLAY_COMMIT:
            self._commit(self._last)
        return self._last.epoch

    def run_epoch(self) -> EpochResult:
        """Run, accept, publish and commit the next epoch."""
        started = time.monotonic()
        request = self.next_request()
        reports = self._run_accepted(request)
        is_final = _is_final(reports)
        self._last = self._backend.publish(self._checkpoint(request, reports, is_final=is_final))
        self._commit(self._last)
        self._collect_garbage(self._last)
        duration_s = time.monotonic() - started
        return epoch_result(request.epoch, duration_s, reports, list(self.plan.nodes), is_final=is_final)

    def next_request(self) -> EpochRequest:
        """What the tasks of the next epoch are told."""
        spec = self.plan.checkpoint
        last = self._last or CheckpointMetadata()
        carried = pb.CarriedState.FromString(last.properties.get(CARRIED, b""))
        return EpochRequest(
            epoch=last.epoch + 1,
            min_epoch=max(1, last.epoch + 2 - spec.keep),
            timestamp_us=self._clock.now_us(),
            budget=source_budget(self.plan, interval_ms=spec.interval_ms, rows=spec.rows, max_bytes=spec.bytes),
            storage_url=self._storage_url,
            stop_file=self.stop.file,
            checkpoints={item.operator_metadata.operator_id: item.SerializeToString() for item in last.operators},
            carried=restore_carried(self.plan, carried),
        )

    def _run_accepted(self, request: EpochRequest) -> Sequence[pb.ChainReport]:
        for discards in range(MAX_DISCARDS + 1):
            reports = self.executor.run_epoch(self.plan, request)
            try:
                accept(self.plan, request.epoch, reports)
            except ExchangeError as error:
                if discards == MAX_DISCARDS:
                    raise
                logger.warning("epoch %d is discarded and run again: %s", request.epoch, error)
                continue
            return reports
        raise AssertionError("unreachable")

    def _checkpoint(
        self, request: EpochRequest, reports: Sequence[pb.ChainReport], *, is_final: bool
    ) -> CheckpointMetadata:
        operators = _merge(reports)
        origins = {node.origin.distribution: node.origin.version for node in self.plan.nodes.values()}
        return CheckpointMetadata(
            job_id=self.plan.job_id,
            epoch=request.epoch,
            min_epoch=request.min_epoch,
            start_time_us=request.timestamp_us,
            finish_time_us=self._clock.now_us(),
            parent_epoch=request.epoch - 1,
            needs_commit=any(operator.needs_commit for operator in operators),
            operators=operators,
            plugins=[DistributionDigest(name=name, version=origins[name]) for name in sorted(origins)],
            is_final=is_final,
            properties={CARRIED: carried_state(self.plan, reports).SerializeToString()},
        )

    def _commit(self, checkpoint: CheckpointMetadata) -> None:
        if checkpoint.needs_commit:
            commit_epoch(self.plan, self._plugins, checkpoint, self._storage_url, self._clock)
            self._backend.mark_committed(checkpoint.epoch)

    def _collect_garbage(self, checkpoint: CheckpointMetadata) -> None:
        """Now and then, so that listing what is there stays cheap beside the epochs themselves."""
        if checkpoint.min_epoch - self._cleaned_to > self.plan.checkpoint.keep:
            self._backend.cleanup_checkpoint(checkpoint, self._cleaned_to, checkpoint.min_epoch)
            self._cleaned_to = checkpoint.min_epoch


def _merge(reports: Sequence[pb.ChainReport]) -> list[OperatorCheckpointMetadata]:
    """Each operator's checkpoint from those of its subtasks; operators without tables have none."""
    subtasks: dict[str, list[SubtaskCheckpointMetadata]] = {}
    for report in reports:
        for item in report.operators:
            if item.checkpoint:
                metadata = SubtaskCheckpointMetadata.FromString(item.checkpoint)
                subtasks.setdefault(item.operator_id, []).append(metadata)
    return [merge_operator_metadata(subtasks[operator_id]) for operator_id in sorted(subtasks)]


def _is_final(reports: Sequence[pb.ChainReport]) -> bool:
    finish_types = [item.finish_type for report in reports for item in report.operators if item.finish_type]
    return all(finish_type == SourceFinishType.FINAL for finish_type in finish_types)
