"""A job's metrics for Prometheus, on an HTTP port of the driver."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from arroyo_core.errors import SetupError
from arroyo_core.graph.plan import Plan
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult, merge_metrics

#: The name of each counter of an operator, and the field it shows.
_COUNTERS = {
    "arroyo_worker_messages_recv": ("rows_received", "Rows received"),
    "arroyo_worker_messages_sent": ("rows_sent", "Rows sent"),
    "arroyo_worker_batches_recv": ("batches_received", "Batches received"),
    "arroyo_worker_batches_sent": ("batches_sent", "Batches sent"),
    "arroyo_worker_bytes_recv": ("bytes_received", "Bytes received"),
    "arroyo_worker_bytes_sent": ("bytes_sent", "Bytes sent"),
}
_OPERATOR_LABELS = ("job_id", "node_id", "operator_name", "subtask_idx")


class JobMetrics(Collector):
    """Listens to a job, and answers each scrape with what is known then; committed epochs count."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._job = JobResult(job_id=plan.job_id)
        self._last: EpochResult | None = None
        # Replaced as a whole after each epoch: a scrape in another thread sees one state of it.
        self._subtasks: Mapping[tuple[str, int], OperatorMetrics] = {}

    def on_start(self, job: JobResult) -> None:
        self._job = job

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        subtasks: dict[tuple[str, int], OperatorMetrics] = {}
        for totals in (self._subtasks, result.subtasks):
            for key, metrics in totals.items():
                merge_metrics(subtasks.setdefault(key, OperatorMetrics()), metrics)
        self._job, self._last, self._subtasks = job, result, subtasks

    def collect(self) -> Iterable[Metric]:
        yield from self._job_metrics()
        yield from self._operator_metrics()

    def _job_metrics(self) -> Iterable[Metric]:
        job, last = self._job, self._last
        yield self._counter("arroyo_source_rows", "Rows read by the sources of committed epochs", job.source_rows)
        yield self._counter("arroyo_epochs", "Epochs committed by this driver", job.epochs)
        yield self._counter("arroyo_restarts", "Times the job went back to its last checkpoint", job.restarts)
        if last is None:
            return
        yield self._gauge("arroyo_epoch", "The last committed epoch", last.epoch)
        yield self._gauge("arroyo_epoch_seconds", "How long the last epoch ran", last.duration_s)
        yield self._gauge("arroyo_checkpoint_seconds", "The longest that a subtask wrote its state", last.checkpoint_s)
        yield self._gauge("arroyo_commit_seconds", "From the end of the epoch until it was committed", last.commit_s)
        yield self._gauge("arroyo_checkpoint_bytes", "What the last checkpoint added to storage", last.checkpoint_bytes)
        yield self._gauge("arroyo_state_bytes", "All that the last checkpoint refers to", last.state_bytes)
        if last.watermark_us is not None:
            lag_s = time.time() - last.watermark_us / 1e6
            yield self._gauge("arroyo_watermark_lag_seconds", "How far event time is behind the clock", lag_s)

    def _operator_metrics(self) -> Iterable[Metric]:
        subtasks = self._subtasks
        for name, (field, text) in _COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=_OPERATOR_LABELS)
            for (node_id, subtask), metrics in subtasks.items():
                family.add_metric(self._labels(node_id, subtask), getattr(metrics, field))
            yield family
        busy = CounterMetricFamily("arroyo_worker_busy_seconds", "Time in the operator", labels=_OPERATOR_LABELS)
        counted = CounterMetricFamily(
            "arroyo_worker_counter", "What operators count themselves", labels=(*_OPERATOR_LABELS, "counter")
        )
        for (node_id, subtask), metrics in subtasks.items():
            labels = self._labels(node_id, subtask)
            busy.add_metric(labels, metrics.busy_ns / 1e9)
            for counter, value in metrics.counters.items():
                counted.add_metric([*labels, counter], value)
        yield busy
        yield counted

    def _labels(self, node_id: str, subtask: int) -> list[str]:
        return [self._plan.job_id, node_id, self._plan.nodes[node_id].operator, str(subtask)]

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=("job_id",))
        family.add_metric([self._plan.job_id], value)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=("job_id",))
        family.add_metric([self._plan.job_id], value)
        return family


class MetricsServer:
    """Serves a job's metrics at `http://host:port/metrics` between enter and exit."""

    def __init__(self, metrics: JobMetrics, port: int, *, host: str = "0.0.0.0") -> None:
        self._metrics = metrics
        self._address = (host, port)

    def __enter__(self) -> int:
        """The port, which the system chooses if it was 0."""
        registry = CollectorRegistry()
        registry.register(self._metrics)
        host, port = self._address
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise SetupError(f"metrics cannot be served on port {port}: {error.strerror or error}") from error
        return self._server.server_port

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
