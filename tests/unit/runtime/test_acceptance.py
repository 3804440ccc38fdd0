"""Which epochs count: every single deviation in the reports is caught."""

import pytest

from arroyo_core.errors import ArroyoError, ExchangeError, RetryHint, retry_hint
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.events import RunEpoch


@pytest.fixture
def epoch(lab):
    nodes = [
        {"id": "s", "operator": "test.rows", "config": {"count": 20}},
        {"id": "p", "operator": "test.passing", "inputs": ["s"], "config": {"keys": ["key"]}},
        {"id": "o", "operator": "test.sink", "inputs": ["p"]},
    ]
    job = lab.job(nodes, parallelism=2)
    reports = job.executor.run_epoch(job.plan, job.steps.request(RunEpoch(1, 1000)))
    return job.plan, reports


def test_a_whole_epoch_is_accepted(epoch):
    plan, reports = epoch
    accept(plan, 1, reports)


def test_a_missing_report_is_refused(epoch):
    plan, reports = epoch
    for index in range(len(reports)):
        with pytest.raises(ExchangeError, match=r"did not report|consumed"):
            accept(plan, 1, reports[:index] + reports[index + 1 :])


def test_a_second_report_of_one_subtask_is_refused(epoch):
    plan, reports = epoch
    for report in reports:
        again = pb.ChainReport.FromString(report.SerializeToString())
        with pytest.raises(ExchangeError, match="reported twice"):
            accept(plan, 1, [*reports, again])


def test_a_report_of_another_epoch_is_refused(epoch):
    plan, reports = epoch
    with pytest.raises(ExchangeError, match="epoch 1 in epoch 2"):
        accept(plan, 2, reports)


def test_every_deviating_count_or_attempt_is_refused(epoch):
    plan, reports = epoch
    senders = [report for report in reports if report.sent]
    receivers = [report for report in reports if report.received]
    assert len(senders) == len(receivers) == 2
    for report in senders:
        report.attempt += 1
        with pytest.raises(ExchangeError, match="consumed"):
            accept(plan, 1, reports)
        report.attempt -= 1
        for sent in report.sent:
            sent.frames += 1
            with pytest.raises(ExchangeError, match="consumed"):
                accept(plan, 1, reports)
            sent.frames -= 1
    for report in receivers:
        for received in report.received:
            received.attempt += 1
            with pytest.raises(ExchangeError, match="consumed"):
                accept(plan, 1, reports)
            received.attempt -= 1
    accept(plan, 1, reports)


@pytest.mark.parametrize("kind", ["StorageError", "StateError", "ConnectionResetError"])
def test_an_outage_inside_a_task_is_still_known_as_one_on_the_driver(epoch, kind):
    plan, reports = epoch
    reports[0].error.CopyFrom(
        pb.ErrorReport(message="the store is away", kind=kind, domain="external", retry="with_backoff")
    )
    with pytest.raises(ArroyoError, match="the store is away") as raised:
        accept(plan, 1, reports)
    assert retry_hint(raised.value) is RetryHint.WITH_BACKOFF


def test_damage_inside_a_task_is_not_retried(epoch):
    plan, reports = epoch
    reports[0].error.CopyFrom(
        pb.ErrorReport(message="cut", kind="DamagedStateError", domain="external", retry="no_retry", traceback="cut")
    )
    with pytest.raises(ArroyoError, match="cut") as raised:
        accept(plan, 1, reports)
    assert retry_hint(raised.value) is RetryHint.NO_RETRY
