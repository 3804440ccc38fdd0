"""A job's metrics for Prometheus, on an HTTP port of the driver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.metric import Kind, metrics_of
from arroyo_core.runtime.metric import Metric as Definition
from arroyo_core.runtime.metrics import OWN_COUNTERS, OWN_COUNTERS_HELP, OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

#: A driver that has done nothing for so many times `checkpoint.timeout` hangs. A stuck epoch is cancelled after one.
PATIENCE = 2

_OPERATOR_LABELS = ("job_id", "node_id", "operator_name", "subtask_idx")


class JobMetrics(Collector):
    """Listens to a job, and answers each scrape with what is known then; committed epochs count."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._job = JobResult(job_id=plan.job_id)
        self._has_started = False
        #: Whether the job of several has ended, in whatever way.
        self.has_ended = False
        self._last: EpochResult | None = None
        # Replaced as a whole after each epoch: a scrape in another thread sees one state of it.
        self._subtasks: Mapping[tuple[str, int], OperatorMetrics] = {}

    @property
    def job_id(self) -> str:
        return self._plan.job_id

    def on_start(self, job: JobResult) -> None:
        self._job = job
        self._has_started = True

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        subtasks: dict[tuple[str, int], OperatorMetrics] = {}
        for totals in (self._subtasks, result.subtasks):
            for key, metrics in totals.items():
                subtasks.setdefault(key, OperatorMetrics()).add_epoch(metrics)
        self._job, self._last, self._subtasks = job, result, subtasks

    def liveness(self) -> tuple[bool, str]:
        """Whether the driver itself gets on, and why; a job that restarts by itself, or waits for rows, does."""
        if not self._has_started:
            # Spark may be waited for, and storage: nobody can say how long that takes.
            return True, "the driver is starting"
        quiet_s = time.monotonic() - self._job.active_s
        is_live = quiet_s < PATIENCE * self._plan.checkpoint.timeout_ms / 1000
        return is_live, f"the driver did something {quiet_s:.1f} s ago"

    def readiness(self) -> tuple[bool, str]:
        """Whether this driver has committed an epoch, and why."""
        if self._last is None:
            return False, "no epoch is committed yet"
        return True, f"epoch {self._last.epoch} is committed"

    def collect(self) -> Iterable[Metric]:
        yield from self._job_metrics()
        yield from self._operator_metrics()
        running = self._job.look()
        if running is not None:
            yield from self._running_metrics(running)

    def _running_metrics(self, running: EpochResult) -> Iterable[Metric]:
        """Gauges, not added to the counters: an epoch that fails is run again, and its rows would count twice."""
        for name, metric in metrics_of(EpochResult).items():
            if metric.running:
                family = GaugeMetricFamily(metric.running, _running_help(metric), labels=("job_id",))
                family.add_metric([self._plan.job_id], metric.prometheus_value(getattr(running, name)))
                yield family
        for name, metric in metrics_of(OperatorMetrics).items():
            if metric.running:
                family = GaugeMetricFamily(metric.running, _running_help(metric), labels=_OPERATOR_LABELS)
                for (node_id, subtask), metrics in running.subtasks.items():
                    family.add_metric(self._labels(node_id, subtask), metric.prometheus_value(getattr(metrics, name)))
                yield family

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
        plan = self._job.plan or self._plan
        return [plan.job_id, node_id, plan.nodes[node_id].operator, str(subtask)]


class MergedMetrics(Collector):
    """The metrics of several jobs, each described once, as Prometheus demands; labels tell the jobs apart."""

    def __init__(self, collectors: Sequence[JobMetrics]) -> None:
        self._collectors = collectors

    def liveness(self) -> tuple[bool, str]:
        """Whether the drivers of all jobs get on that have not ended."""
        return _all_well((each.job_id, each.liveness()) for each in self._collectors if not each.has_ended)

    def readiness(self) -> tuple[bool, str]:
        """Whether every job has committed an epoch, or has ended."""
        return _all_well((each.job_id, each.readiness()) for each in self._collectors if not each.has_ended)

    def collect(self) -> Iterable[Metric]:
        merged: dict[str, Metric] = {}
        for collector in self._collectors:
            for family in collector.collect():
                if family.name in merged:
                    merged[family.name].samples.extend(family.samples)
                else:
                    merged[family.name] = family
        return merged.values()


def _running_help(metric: Definition) -> str:
    return f"{metric.help}; so far, in the epoch that runs"


def _all_well(jobs: Iterable[tuple[str, tuple[bool, str]]]) -> tuple[bool, str]:
    told = list(jobs)
    return all(is_well for _, (is_well, _) in told), "\n".join(f"{job}: {reason}" for job, (_, reason) in told)


def _family(metric: Definition, labels: Sequence[str]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    return kind(metric.prometheus, metric.help, labels=labels)


class MetricsServer:
    """Serves what a collector knows at `http://host:port/metrics` between enter and exit.

    Beside it `/live` and `/ready`, for supervisors: 200 if it is so, else 503, and why in words.
    """

    def __init__(self, metrics: JobMetrics | MergedMetrics, port: int, *, host: str = "127.0.0.1") -> None:
        self._metrics = metrics
        self._address = (host, port)

    def __enter__(self) -> int:
        """The port, which the system chooses if it was 0."""
        registry = CollectorRegistry()
        registry.register(self._metrics)
        host, port = self._address
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            server = type("_Server", (_Server,), {"address_family": family})
            self._server: WSGIServer = make_server(
                str(address[0]), port, _application(registry, self._metrics), server, handler_class=_QuietHandler
            )
        except OSError as error:
            reason = error.strerror or error
            raise SetupError(f"metrics cannot be served on port {port} of {host}: {reason}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="arroyo-metrics", daemon=True)
        self._thread.start()
        return self._server.server_port

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


def _application(registry: CollectorRegistry, metrics: JobMetrics | MergedMetrics) -> WSGIApplication:
    exposition: WSGIApplication = make_wsgi_app(registry)
    health = {"/live": metrics.liveness, "/ready": metrics.readiness}

    def serve(environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        judge = health.get(environment.get("PATH_INFO", ""))
        if judge is None:
            return exposition(environment, start_response)
        is_well, reason = judge()
        start_response("200 OK" if is_well else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [f"{reason}\n".encode()]

    return serve
