"""Which epochs count: every single deviation in the reports is caught."""

import sys

import numpy as np
import pytest

from arroyo_core.errors import ArroyoError, ExchangeError, RetryHint, retry_hint
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime import acceptance, channels
from arroyo_core.runtime.acceptance import accept
from arroyo_core.runtime.events import RunEpoch
from arroyo_core.runtime.exchange import Inbox


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


def test_a_report_of_a_chain_that_is_not_there_is_refused(epoch):
    plan, reports = epoch
    with pytest.raises(ExchangeError, match="chain 99, which the plan has not"):
        accept(plan, 1, [*reports, pb.ChainReport(chain=99, epoch=1, error=pb.ErrorReport(message="x"))])


def test_a_failure_of_no_known_kind_is_refused(epoch):
    plan, reports = epoch
    error = pb.ErrorReport(operator_id="s", message="x", domain="nobody", retry="no_retry")
    with pytest.raises(ExchangeError, match="does not say who can fix it"):
        accept(plan, 1, [*reports, pb.ChainReport(chain=0, epoch=1, error=error)])


def test_bytes_that_are_no_report_are_refused():
    with pytest.raises(ExchangeError, match="3 bytes for the driver holds no report"):
        acceptance.decode_report(b"\xff\xff\xff")


def test_a_report_of_another_epoch_is_refused(epoch):
    plan, reports = epoch
    with pytest.raises(ExchangeError, match="epoch 1 in epoch 2"):
        accept(plan, 2, reports)


def changed(data, kind):
    """The same numbers, each in turn greater by one."""
    numbers = np.frombuffer(data, dtype=kind)
    for index in range(len(numbers)):
        other = numbers.copy()
        other[index] += 1
        yield other.tobytes()


def assert_refused(plan, reports, match="consumed"):
    with pytest.raises(ExchangeError, match=match):
        accept(plan, 1, reports)


def assert_every_deviation_is_refused(plan, reports):
    for report in reports:
        if report.sent:
            report.attempt += 1
            assert_refused(plan, reports)
            report.attempt -= 1
    fields = [(item, "frames", "<u4") for report in reports for item in [*report.sent, *report.received]]
    fields += [(item, "attempts", "<i8") for report in reports for item in report.received]
    for item, name, kind in fields:
        before = getattr(item, name)
        for other in changed(before, kind):
            setattr(item, name, other)
            assert_refused(plan, reports)
        setattr(item, name, before[:-4])
        assert_refused(plan, reports, match="one number for each channel")
        setattr(item, name, before)
    accept(plan, 1, reports)


def test_every_deviating_count_or_attempt_is_refused(epoch):
    plan, reports = epoch
    assert sum(len(report.sent) for report in reports) == sum(len(report.received) for report in reports) == 2
    assert_every_deviation_is_refused(plan, reports)


def test_an_end_that_reports_nothing_of_an_edge_is_refused(epoch):
    plan, reports = epoch
    for report in reports:
        for name in ("sent", "received"):
            if getattr(report, name):
                kept = pb.ChainReport.FromString(report.SerializeToString())
                report.ClearField(name)
                assert_refused(plan, reports, match="one number for each channel")
                report.CopyFrom(kept)
    accept(plan, 1, reports)


def test_edges_of_every_routing_and_number_are_compared(lab):
    nodes = [
        {"id": "s", "operator": "test.rows", "config": {"count": 20}},
        {"id": "keyed", "operator": "test.passing", "inputs": ["s"], "config": {"keys": ["key"]}},
        # From the source it comes over a wave, from subtask to subtask; twice by key; and evenly.
        {"id": "all", "operator": "test.passing", "inputs": ["s", "keyed", "keyed"]},
        {"id": "o", "operator": "test.sink", "inputs": ["all"], "parallelism": 2},
    ]
    job = lab.job(nodes, parallelism=3)
    reports = job.executor.run_epoch(job.plan, job.steps.request(RunEpoch(1, 1000)))
    assert {str(edge.routing) for edge in job.plan.edges} == {"forward", "shuffle", "rebalance"}
    assert_every_deviation_is_refused(job.plan, reports)


def lines_run(plan, reports):
    """How many lines of the modules that decide run."""
    counted = 0

    def trace(frame, event, argument):
        nonlocal counted
        if frame.f_code.co_filename not in (acceptance.__file__, channels.__file__):
            return None
        counted += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        accept(plan, 1, reports)
    finally:
        sys.settrace(before)
    return counted


def test_the_work_grows_with_the_subtasks_not_with_their_square_or_cube(lab):
    nodes = [{"id": "s", "operator": "test.rows"}]
    for number in range(3):
        source = nodes[-1]["id"]
        nodes.append({"id": f"p{number}", "operator": "test.passing", "inputs": [source], "config": {"keys": ["key"]}})
    nodes.append({"id": "o", "operator": "test.sink", "inputs": ["p2"]})
    plans = {width: lab.plan(nodes, parallelism=width) for width in (20, 40)}
    counts = {width: lines_run(plan, whole_reports(plan)) for width, plan in plans.items()}
    assert counts[20] > 100
    assert counts[40] < 2.1 * counts[20]


def whole_reports(plan):
    """The reports of an epoch in which every subtask sent two frames along each of its channels."""
    reports = []
    for chain in plan.chains:
        for subtask in range(chain.parallelism):
            report = pb.ChainReport(chain=chain.id, subtask=subtask, attempt=subtask + 1, epoch=1)
            for edge in plan.outputs_of(chain.tail):
                target = plan.chain_of(edge.target)
                counts = dict.fromkeys(range(target.parallelism), 2)
                report.sent.append(channels.sent_frames(counts, chain=target.id, input=edge.input))
            inboxes = {
                (edge.input, sender): Inbox(attempt=sender + 1, frames=2)
                for edge in plan.inputs_of(chain.head)
                for sender in range(plan.chain_of(edge.source).parallelism)
            }
            report.received.extend(channels.received_frames(inboxes))
            reports.append(report)
    return reports


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
