"""`arroyo run --metrics-port`: what jobs measure, and whether they are well, over HTTP."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from arroyo_core.cli.observers import Observer
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_jobs.prometheus import JobMetrics, MergedMetrics, MetricsServer


class MetricsPort(Observer):
    """Serves the metrics of all jobs of a command while it runs; raises `SetupError` for a port that is taken."""

    def __init__(self, args: argparse.Namespace, plans: Sequence[Plan]) -> None:
        self._jobs = {plan.job_id: JobMetrics(plan) for plan in plans}
        metrics = list(self._jobs.values())
        served = metrics[0] if len(metrics) == 1 else MergedMetrics(metrics)
        self._server = MetricsServer(served, args.metrics_port, host=args.metrics_bind)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__()

    def on_start(self, job: JobResult) -> None:
        self._jobs[job.job_id].on_start(job)

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._jobs[job.job_id].on_epoch(result, job)

    def on_end(self, job_id: str) -> None:
        self._jobs[job_id].has_ended = True
