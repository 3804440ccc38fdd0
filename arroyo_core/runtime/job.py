"""The job: epoch after epoch, each run, accepted, and committed, until the sources end or a stop is asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from arroyo_core.api import Clock, SourceFinishType, SystemClock
from arroyo_core.errors import ExchangeError
from arroyo_core.graph.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, SubtaskCheckpointMetadata
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.commit import commit_epoch
from arroyo_core.runtime.node import Carried, carried_from
from arroyo_core.runtime.request import EpochRequest, source_budget
from arroyo_core.runtime.results import EpochResult, JobResult, epoch_result
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.state import merge_operator_metadata

#: How often an epoch that senders and receivers disagree on is run again before the job fails.
MAX_DISCARDS = 5

logger = logging.getLogger(__name__)


class EpochExecutor(Protocol):
    """Runs all waves of one epoch somewhere."""

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]: ...


class JobListener(Protocol):
    """Is told about a job's progress."""

    def on_epoch(self, result: EpochResult, job: JobResult) -> None: ...


class SilentListener:
    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        return


@dataclass(slots=True)
class Job:
    """Drives a plan to its end."""

    plan: Plan
    executor: EpochExecutor
    plugins: PluginSet
    storage_url: str
    clock: Clock = field(default_factory=SystemClock)
    listener: JobListener = field(default_factory=SilentListener)
    stop: StopSignal = field(default_factory=StopSignal)
    #: What the last accepted epoch left: each operator's checkpoint and each subtask's watermarks.
    _checkpoints: Mapping[str, bytes] = field(default_factory=dict)
    _carried: Mapping[tuple[int, int], Carried] = field(default_factory=dict)
    _epoch: int = 0

    def run(self) -> JobResult:
        """Run until every source is final, or until `stop` is asked for: the epoch then ends early."""
        started = time.monotonic()
        job = JobResult(job_id=self.plan.job_id)
        while not job.is_finished and not self.stop.is_requested:
            result = self.run_epoch()
            job.add(result)
            job.duration_s = time.monotonic() - started
            self.listener.on_epoch(result, job)
        return job

    def run_epoch(self) -> EpochResult:
        """Run, accept and commit the next epoch."""
        started = time.monotonic()
        request = self._request()
        reports = self._run_accepted(request)
        merged = _merge(reports)
        commit_epoch(self.plan, self.plugins, request, merged, self.clock)
        self._epoch = request.epoch
        self._checkpoints = {name: metadata.SerializeToString() for name, metadata in merged.items()}
        self._carried = {(report.chain, report.subtask): carried_from(report) for report in reports}
        return epoch_result(
            request.epoch, time.monotonic() - started, reports, list(self.plan.nodes), is_final=_is_final(reports)
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

    def _request(self) -> EpochRequest:
        spec = self.plan.checkpoint
        return EpochRequest(
            epoch=self._epoch + 1,
            min_epoch=max(1, self._epoch + 1 - spec.keep),
            timestamp_us=self.clock.now_us(),
            budget=source_budget(self.plan, interval_ms=spec.interval_ms, rows=spec.rows, max_bytes=spec.bytes),
            storage_url=self.storage_url,
            stop_file=self.stop.file,
            checkpoints=self._checkpoints,
            carried=self._carried,
        )


def _merge(reports: Sequence[pb.ChainReport]) -> dict[str, OperatorCheckpointMetadata]:
    """Each operator's checkpoint from those of its subtasks; operators without tables have none."""
    subtasks: dict[str, list[SubtaskCheckpointMetadata]] = {}
    for report in reports:
        for item in report.operators:
            if item.checkpoint:
                metadata = SubtaskCheckpointMetadata.FromString(item.checkpoint)
                subtasks.setdefault(item.operator_id, []).append(metadata)
    return {operator_id: merge_operator_metadata(items) for operator_id, items in subtasks.items()}


def _is_final(reports: Sequence[pb.ChainReport]) -> bool:
    finish_types = [item.finish_type for report in reports for item in report.operators if item.finish_type]
    return all(finish_type == SourceFinishType.FINAL for finish_type in finish_types)
