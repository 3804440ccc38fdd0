"""What an epoch and a whole job came to, for people and for metrics."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from typing import Any

from arroyo_core.api import END_OF_TIME_US
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.metric import Kind, json_values, measured
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.state.merge import table_files
from arroyo_core.state.protocol import referenced_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochResult:
    """An accepted epoch; or one that runs, as far as it has come."""

    epoch: int = measured(
        "The last committed epoch",
        unit="number",
        prometheus="arroyo_epoch",
        key="epoch",
        running="arroyo_running_epoch",
        default=MISSING,
    )
    #: From its start until it was accepted.
    duration_s: float = measured(
        "How long the last epoch ran",
        unit="seconds",
        prometheus="arroyo_epoch_seconds",
        key="duration_s",
        running="arroyo_running_seconds",
        default=MISSING,
    )
    #: Summed over subtasks, by operator id, in the order of the plan.
    operators: Mapping[str, OperatorMetrics]
    #: By operator id and subtask.
    subtasks: Mapping[tuple[str, int], OperatorMetrics]
    source_rows: int = measured(
        "Rows read by the sources",
        unit="rows",
        key="source_rows",
        running="arroyo_running_source_rows",
        default=MISSING,
    )
    #: The least event-time watermark of the sinks; None where there is none.
    watermark_us: int | None = measured(
        "How far event time is behind the clock",
        unit="seconds",
        prometheus="arroyo_watermark_lag_seconds",
        key="watermark_us",
        is_time=True,
        default=MISSING,
    )
    is_final: bool = measured("Whether every source is at its end", unit="boolean", key="is_final", default=MISSING)
    checkpoint_bytes: int = measured(
        "What the last checkpoint added to storage",
        unit="bytes",
        prometheus="arroyo_checkpoint_bytes",
        key="checkpoint_bytes",
    )
    state_bytes: int = measured(
        "All that the last checkpoint refers to", unit="bytes", prometheus="arroyo_state_bytes", key="state_bytes"
    )
    checkpoint_s: float = measured(
        "The longest that a subtask wrote its state",
        unit="seconds",
        prometheus="arroyo_checkpoint_seconds",
        key="checkpoint_s",
        default=0.0,
    )
    #: Beside the next epoch.
    commit_s: float = measured(
        "From the end of the epoch until it was committed",
        unit="seconds",
        prometheus="arroyo_commit_seconds",
        key="commit_s",
        default=0.0,
    )
    backlog: int = measured(
        "Rows that sources know of and have not read", unit="rows", prometheus="arroyo_source_backlog", key="backlog"
    )
    #: By operator id: all its checkpoint refers to. Operators without tables are absent.
    operator_state_bytes: Mapping[str, int] = field(default_factory=dict)
    #: By operator id: the least last event-time watermark of its subtasks; absent until all have one, and at the end.
    operator_watermarks_us: Mapping[str, int] = field(default_factory=dict)
    #: By operator id: the last rows of each subtask, as Arrow IPC, of the nodes that somebody looks at.
    latest: Mapping[str, Sequence[bytes]] = field(default_factory=dict, repr=False)

    def busy_shares(self) -> dict[str, float]:
        """By operator id: the part of the epoch that its busiest subtask spent in it, for which the others wait."""
        busy_ns = dict.fromkeys(self.operators, 0)
        for (operator_id, _), metrics in self.subtasks.items():
            busy_ns[operator_id] = max(busy_ns[operator_id], metrics.busy_ns)
        epoch_ns = self.duration_s * 1e9
        return {name: min(1.0, busy / epoch_ns) if epoch_ns else 0.0 for name, busy in busy_ns.items()}

    def slowest(self) -> str | None:
        """The operator with the greatest busy share; None where nothing was done."""
        shares = self.busy_shares()
        return max(shares, key=shares.__getitem__) if any(shares.values()) else None

    def operator_summaries(self) -> dict[str, dict[str, Any]]:
        """The numbers of each operator, by its id."""
        shares = self.busy_shares()
        return {
            name: {
                **json_values(metrics),
                "busy_share": round(shares[name], 4),
                "state_bytes": self.operator_state_bytes.get(name, 0),
                "watermark_us": self.operator_watermarks_us.get(name),
            }
            for name, metrics in self.operators.items()
        }

    def summary(self) -> dict[str, Any]:
        """The numbers of the epoch as a whole."""
        return json_values(self)


@dataclass(slots=True, kw_only=True)
class JobResult:
    """What a job has done so far."""

    job_id: str
    epochs: int = measured(
        "Epochs committed by this driver",
        unit="epochs",
        kind=Kind.COUNTER,
        prometheus="arroyo_epochs",
        key="epochs",
    )
    duration_s: float = measured("How long this run took", unit="seconds", key="duration_s", default=0.0)
    source_rows: int = measured(
        "Rows read by the sources of committed epochs",
        unit="rows",
        kind=Kind.COUNTER,
        prometheus="arroyo_source_rows",
        key="source_rows",
    )
    operators: dict[str, OperatorMetrics] = field(default_factory=dict)
    #: Of the job as it runs, with nodes that it had only with another parallelism; set by the job.
    plan: Plan | None = field(default=None, repr=False, compare=False)
    is_finished: bool = False
    resumed_from: int = measured(
        "The epoch of an earlier run that this one went on from; 0 for a fresh start", unit="number", key="resumed_from"
    )
    restarts: int = measured(
        "Times the job went back to its last checkpoint",
        unit="restarts",
        kind=Kind.COUNTER,
        prometheus="arroyo_restarts",
        key="restarts",
    )
    generation: int = measured(
        "The generation of this driver: one more than that of the driver before",
        unit="number",
        prometheus="arroyo_generation",
        key="generation",
    )
    parallelism: int = measured(
        "Subtasks of the widest wave; 0 before the driver has started",
        unit="subtasks",
        prometheus="arroyo_parallelism",
        key="parallelism",
    )
    #: None before the driver has started.
    committed_us: int | None = measured(
        "How long ago the last epoch was committed, or the driver started if there was none",
        unit="seconds",
        prometheus="arroyo_last_commit_age_seconds",
        key="committed_us",
        is_time=True,
        default=None,
    )
    #: Why the job went back to its last checkpoint most lately.
    last_error: str = ""
    #: Spark's own pages, where it has any that this driver knows of.
    spark_ui: str = ""
    #: When the driver last did anything, by the monotonic clock.
    active_s: float = field(default_factory=time.monotonic)
    #: What the running epoch has come to so far; None where nobody tells, or it has not run for long.
    look: Callable[[], EpochResult | None] = field(default=lambda: None, repr=False, compare=False)

    def add(self, result: EpochResult) -> None:
        self.epochs += 1
        self.committed_us = time.time_ns() // 1000
        self.source_rows += result.source_rows
        self.is_finished = result.is_final
        for operator_id, metrics in result.operators.items():
            self.operators.setdefault(operator_id, OperatorMetrics()).add_epoch(metrics)


def epoch_result(
    plan: Plan, checkpoint: CheckpointMetadata, reports: Iterable[pb.ChainReport], *, duration_s: float
) -> EpochResult:
    """What the reports of an accepted epoch, and the checkpoint made of them, come to."""
    counted = running_result(plan, checkpoint.epoch, reports, duration_s=duration_s)
    return replace(
        counted,
        is_final=checkpoint.is_final,
        checkpoint_bytes=sum(operator.bytes for operator in checkpoint.operators),
        state_bytes=sum(referenced_sizes(checkpoint).values()),
        checkpoint_s=max(
            ((operator.finish_time_us - operator.start_time_us) / 1e6 for operator in checkpoint.operators), default=0.0
        ),
        operator_state_bytes=operator_state_bytes(checkpoint),
    )


def running_result(plan: Plan, epoch: int, reports: Iterable[pb.ChainReport], *, duration_s: float) -> EpochResult:
    """What an epoch has come to so far, by reports of those chains and subtasks that have said anything."""
    operators = {operator_id: OperatorMetrics() for operator_id in plan.nodes}
    subtasks: dict[tuple[str, int], OperatorMetrics] = {}
    sources = plan.nodes.keys() - {edge.target for edge in plan.edges}
    sinks = plan.nodes.keys() - {edge.source for edge in plan.edges}
    source_rows = 0
    watermarks = []
    by_operator: dict[str, list[int | None]] = defaultdict(list)
    latest: dict[str, list[bytes]] = defaultdict(list)
    for report in reports:
        for item in report.operators:
            metrics = _metrics(item)
            by_operator[item.operator_id].append(_watermark_us(item))
            subtasks[item.operator_id, report.subtask] = metrics
            operators[item.operator_id].add(metrics)
            if item.latest:
                latest[item.operator_id].append(item.latest)
            if item.operator_id in sources:
                source_rows += metrics.rows_sent
        last_us = _watermark_us(report.operators[-1])
        is_sink = report.operators[-1].operator_id in sinks
        if is_sink and last_us is not None and last_us < END_OF_TIME_US:
            watermarks.append(last_us)
    return EpochResult(
        epoch=epoch,
        duration_s=duration_s,
        operators=operators,
        subtasks=subtasks,
        source_rows=source_rows,
        watermark_us=min(watermarks, default=None),
        is_final=False,
        backlog=sum(metrics.backlog for metrics in operators.values()),
        operator_watermarks_us={
            operator_id: least
            for operator_id, times in by_operator.items()
            if None not in times and (least := min(time for time in times if time is not None)) < END_OF_TIME_US
        },
        latest=latest,
    )


def operator_state_bytes(checkpoint: CheckpointMetadata) -> dict[str, int]:
    """All that each operator's tables refer to, by operator id."""
    found = {}
    for operator in checkpoint.operators:
        tables = operator.table_checkpoint_metadata.values()
        # A file that two subtasks share counts once.
        sizes = {file.path: file.size_bytes for table in tables for file in table_files(table)}
        found[operator.operator_metadata.operator_id] = sum(sizes.values())
    return found


def _watermark_us(report: pb.OperatorReport) -> int | None:
    level = report.levels.input
    return level.event_time_us if level.HasField("event_time_us") else None


def _metrics(report: pb.OperatorReport) -> OperatorMetrics:
    metrics = OperatorMetrics.from_values(report.metrics)
    metrics.counters = dict(report.counters)
    metrics.warnings = {warning.topic: warning.text for warning in report.warnings}
    return metrics
