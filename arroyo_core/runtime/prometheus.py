"""A job's metrics for Prometheus, on an HTTP port of the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.metric import Kind, metrics_of
from arroyo_core.runtime.metric import Metric as Definition
from arroyo_core.runtime.metrics import OWN_COUNTERS, OWN_COUNTERS_HELP, OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

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
                subtasks.setdefault(key, OperatorMetrics()).add_epoch(metrics)
        self._job, self._last, self._subtasks = job, result, subtasks

    def collect(self) -> Iterable[Metric]:
        yield from self._job_metrics()
        yield from self._operator_metrics()

    def _job_metrics(self) -> Iterable[Metric]:
        for owner in (self._job, self._last):
            for name, metric in metrics_of(type(owner)).items() if owner is not None else ():
                value = getattr(owner, name)
                if metric.prometheus and value is not None:
                    family = _family(metric, ("job_id",))
                    family.add_metric([self._plan.job_id], metric.prometheus_value(value))
                    yield family

    def _operator_metrics(self) -> Iterable[Metric]:
        subtasks = self._subtasks
        for name, metric in metrics_of(OperatorMetrics).items():
            if not metric.prometheus:
                continue
            family = _family(metric, _OPERATOR_LABELS)
            for (node_id, subtask), metrics in subtasks.items():
                family.add_metric(self._labels(node_id, subtask), metric.prometheus_value(getattr(metrics, name)))
            yield family
        counted = CounterMetricFamily(OWN_COUNTERS, OWN_COUNTERS_HELP, labels=(*_OPERATOR_LABELS, "counter"))
        for (node_id, subtask), metrics in subtasks.items():
            for counter, value in metrics.counters.items():
                counted.add_metric([*self._labels(node_id, subtask), counter], value)
        yield counted

    def _labels(self, node_id: str, subtask: int) -> list[str]:
        return [self._plan.job_id, node_id, self._plan.nodes[node_id].operator, str(subtask)]


def _family(metric: Definition, labels: Sequence[str]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    return kind(metric.prometheus, metric.help, labels=labels)


class MetricsServer:
    """Serves what a collector knows at `http://host:port/metrics` between enter and exit."""

    def __init__(self, metrics: Collector, port: int, *, host: str = "0.0.0.0") -> None:
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
