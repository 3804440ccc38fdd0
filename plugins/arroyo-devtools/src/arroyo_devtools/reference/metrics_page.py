"""The page of the metrics, made of their definitions."""

from __future__ import annotations

from arroyo_core.runtime.metric import Kind, Metric, metrics_of
from arroyo_core.runtime.metrics import OWN_COUNTERS, OWN_COUNTERS_HELP, OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_devtools.reference.markdown import table

_SECTIONS = (
    ("Of a job", "Since its driver started; labelled `job_id`.", JobResult),
    ("Of an epoch", "Of the last one that was committed; labelled `job_id`.", EpochResult),
    (
        "Of an operator",
        "Labelled `job_id`, `node_id`, `operator_name` and `subtask_idx`; in JSON the subtasks are added up.",
        OperatorMetrics,
    ),
)


def metrics_page() -> str:
    parts = [
        "# Metrics",
        "Under these names `--metrics-port` shows them to Prometheus, and `arroyo run --format json` prints them: see "
        "[Watching](../watching.md).",
    ]
    for title, text, owner in _SECTIONS:
        rows = [_row(metric) for metric in metrics_of(owner).values()]
        if owner is OperatorMetrics:
            rows.append((f"`{OWN_COUNTERS}_total`", "`counters`", "", f"{OWN_COUNTERS_HELP}; labelled `counter`, too"))
        parts += [f"## {title}", text, table(("Prometheus", "JSON", "Unit", "Meaning"), rows)]
    running = [
        (f"`{metric.running}`", metric.unit, metric.help)
        for owner in (EpochResult, OperatorMetrics)
        for metric in metrics_of(owner).values()
        if metric.running
    ]
    parts += [
        "## Of the epoch that runs",
        "What live workers have counted so far in an epoch that has run for a second; labelled as above. They are "
        "gauges: an epoch that fails is run again.",
        table(("Prometheus", "Unit", "Meaning"), running),
    ]
    return "\n\n".join(parts)


def _row(metric: Metric) -> tuple[str, str, str, str]:
    name = f"{metric.prometheus}_total" if metric.kind is Kind.COUNTER else metric.prometheus
    key = f"`{metric.key}`" if metric.key else ""
    text = f"{metric.help}; in JSON the time itself, in microseconds since 1970" if metric.is_time else metric.help
    return (f"`{name}`" if metric.prometheus else "", key, metric.unit, text)
