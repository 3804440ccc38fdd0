"""A metric is defined once; whatever shows metrics shows all of them."""

import json
from dataclasses import dataclass, field

import pytest
from arroyo_devtools.reference.metrics_page import metrics_page
from arroyo_jobs.prometheus import JobMetrics
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from arroyo_core.cli.json_output import end_object, epoch_object
from arroyo_core.runtime.metric import Kind, json_values, measured, metrics_of
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

OWNERS = (JobResult, EpochResult, OperatorMetrics)
NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 20}},
    {"id": "out", "operator": "test.sink", "inputs": ["in"]},
]


class Results(JobMetrics):
    """Remembers what it was told."""

    def on_epoch(self, result, job):
        super().on_epoch(result, job)
        self.result, self.job = result, job


@pytest.fixture
def done(lab):
    job = lab.job(NODES, checkpoint={"interval": "1h", "rows": 6}, listener=Results)
    job.run()
    return job.listener


def test_prometheus_shows_every_metric(done):
    registry = CollectorRegistry()
    registry.register(done)
    text = generate_latest(registry).decode()
    for owner in OWNERS:
        for metric in metrics_of(owner).values():
            # There are no watermarks here.
            if metric.prometheus and not metric.is_time:
                name = f"{metric.prometheus}_total" if metric.kind is Kind.COUNTER else metric.prometheus
                assert f"# HELP {name} {metric.help}\n" in text
                assert f"\n{name}{{" in text


def test_json_shows_every_metric(done):
    epoch = json.loads(json.dumps(epoch_object(done._plan, done.result)))
    end = json.loads(json.dumps(end_object(done._plan, done.job, outcome="finished", error=None)))
    for shown, owner in (
        (epoch, EpochResult),
        (end, JobResult),
        *((each, OperatorMetrics) for each in end["operators"]),
    ):
        assert {metric.key for metric in metrics_of(owner).values() if metric.key} <= shown.keys()
    assert end["operators"][0]["rows_out"] == 20


def test_the_reference_shows_every_metric():
    page = metrics_page()
    for owner in OWNERS:
        for metric in metrics_of(owner).values():
            assert metric.help in page
            assert f"`{metric.key}`" in page or not metric.key


@pytest.mark.parametrize("owner", OWNERS)
def test_names_are_given_once(owner):
    for names in (
        [each.prometheus for each in metrics_of(owner).values()],
        [each.key for each in metrics_of(owner).values()],
    ):
        given = [name for name in names if name]
        assert len(given) == len(set(given))


def test_what_an_operator_did_survives_its_way_to_the_driver():
    metrics = OperatorMetrics(rows_received=1, bytes_sent=2**40, busy_ns=5)
    assert OperatorMetrics.from_values(metrics.values()) == metrics


def test_all_that_is_measured_adds_up():
    total = OperatorMetrics(**dict.fromkeys(metrics_of(OperatorMetrics), 2))
    total.add(OperatorMetrics(**dict.fromkeys(metrics_of(OperatorMetrics), 3), counters={"late_rows": 1}))
    assert total.values() == [5] * len(metrics_of(OperatorMetrics))
    assert total.counters == {"late_rows": 1}


def test_a_value_is_shown_in_its_unit():
    @dataclass
    class Measured:
        wait_ns: int = measured("Time waited", unit="seconds", key="wait_s", per_unit=10**9)
        share: float = measured("A share", unit="part", key="share")
        hidden: int = measured("Not in JSON", unit="rows")
        other: list = field(default_factory=list)

    assert json_values(Measured(wait_ns=1_500_000_000, share=0.12345678)) == {"wait_s": 1.5, "share": 0.123457}
    assert list(metrics_of(Measured)) == ["wait_ns", "share", "hidden"]


def test_a_gauge_is_added_over_subtasks_and_replaced_by_a_later_epoch():
    epoch = OperatorMetrics(rows_sent=10, backlog=3)
    epoch.add(OperatorMetrics(rows_sent=5, backlog=4))
    assert (epoch.rows_sent, epoch.backlog) == (15, 7)
    epoch.add_epoch(OperatorMetrics(rows_sent=2, backlog=1, counters={"bad_rows": 1}))
    assert (epoch.rows_sent, epoch.backlog, epoch.counters) == (17, 1, {"bad_rows": 1})
