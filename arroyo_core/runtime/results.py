"""What an epoch and a whole job came to, for people and for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arroyo_core.api import END_OF_TIME_US
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.metrics import OperatorMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochResult:
    """An accepted and committed epoch."""

    epoch: int
    duration_s: float
    #: Summed over subtasks, by operator id, in the order of the plan.
    operators: Mapping[str, OperatorMetrics]
    #: By operator id and subtask.
    subtasks: Mapping[tuple[str, int], OperatorMetrics]
    source_rows: int
    #: The least event-time watermark of the sinks; None where there is none.
    watermark_us: int | None
    is_final: bool


@dataclass(slots=True, kw_only=True)
class JobResult:
    """What a job has done so far."""

    job_id: str
    epochs: int = 0
    duration_s: float = 0.0
    source_rows: int = 0
    operators: dict[str, OperatorMetrics] = field(default_factory=dict)
    is_finished: bool = False
    #: The epoch of an earlier run that this one went on from; 0 for a fresh start.
    resumed_from: int = 0

    def add(self, result: EpochResult) -> None:
        self.epochs += 1
        self.source_rows += result.source_rows
        self.is_finished = result.is_final
        for operator_id, metrics in result.operators.items():
            merge_metrics(self.operators.setdefault(operator_id, OperatorMetrics()), metrics)


def merge_metrics(into: OperatorMetrics, other: OperatorMetrics) -> None:
    for name in (
        "rows_received",
        "rows_sent",
        "batches_received",
        "batches_sent",
        "bytes_received",
        "bytes_sent",
        "busy_ns",
    ):
        setattr(into, name, getattr(into, name) + getattr(other, name))
    for name, amount in other.counters.items():
        into.count(name, amount)
    for warning in other.warnings:
        into.warn(warning)


def epoch_result(
    epoch: int, duration_s: float, reports: Iterable[pb.ChainReport], order: Sequence[str], *, is_final: bool
) -> EpochResult:
    operators = {operator_id: OperatorMetrics() for operator_id in order}
    subtasks: dict[tuple[str, int], OperatorMetrics] = {}
    source_rows = 0
    watermarks = []
    for report in reports:
        for item in report.operators:
            metrics = _metrics(item)
            subtasks[item.operator_id, report.subtask] = metrics
            merge_metrics(operators[item.operator_id], metrics)
            if item.finish_type:
                source_rows += item.rows_sent
        last = report.operators[-1]
        if not report.sent and last.HasField("watermark_us") and last.watermark_us < END_OF_TIME_US:
            watermarks.append(last.watermark_us)
    return EpochResult(
        epoch=epoch,
        duration_s=duration_s,
        operators=operators,
        subtasks=subtasks,
        source_rows=source_rows,
        watermark_us=min(watermarks, default=None),
        is_final=is_final,
    )


def _metrics(report: pb.OperatorReport) -> OperatorMetrics:
    return OperatorMetrics(
        rows_received=report.rows_received,
        rows_sent=report.rows_sent,
        batches_received=report.batches_received,
        batches_sent=report.batches_sent,
        bytes_received=report.bytes_received,
        bytes_sent=report.bytes_sent,
        busy_ns=report.busy_ns,
        counters=dict(report.counters),
        warnings=dict.fromkeys(report.warnings),
    )
