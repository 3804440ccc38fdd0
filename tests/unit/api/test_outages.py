"""Outages that last longer than an epoch: the decisions alone, and a source whose service goes away and comes back."""

import pyarrow as pa
import pytest
from arroyo_testing import SourceHarness
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import OUTAGES, ArroyoSchema, Outage, Outages, RetryPolicy, SourceFinishType, SourceOperator
from arroyo_core.api.outages import derive_outage
from arroyo_core.errors import Domain, ExternalError, OperatorError, RetryHint, retry_hint
from arroyo_core.state import global_table_config

SECOND = 1_000_000
#: 2023-11-14T22:13:20Z, where the clock of the harness stands at first.
START = 1_700_000_000 * SECOND


def outage(**known):
    return Outage(**{"attempts": 1, "since_us": START, "next_us": START, "reason": "refused", **known})


def test_the_wait_doubles_up_to_the_longest():
    policy = RetryPolicy(first_wait_s=0.5, longest_wait_s=3)
    assert [policy.wait_s(attempts) for attempts in range(1, 6)] == [0.5, 1, 2, 3, 3]


@given(st.integers(1, 10**9))
def test_no_number_of_attempts_waits_longer_than_the_longest(attempts):
    assert RetryPolicy().wait_s(attempts) <= 60


def test_the_first_failure_begins_an_outage_and_later_ones_keep_its_beginning():
    first = derive_outage(None, "refused", policy=RetryPolicy(), now_us=START)
    assert first == outage(next_us=START + SECOND)
    later = derive_outage(first, "reset", policy=RetryPolicy(), now_us=START + 5 * SECOND)
    assert later == outage(attempts=2, next_us=START + 7 * SECOND, reason="reset")


def test_what_the_service_asks_for_replaces_the_wait_of_the_policy():
    found = derive_outage(None, "too many requests", policy=RetryPolicy(), now_us=START, wait_s=30)
    assert found.next_us == START + 30 * SECOND


def test_a_long_reason_is_cut_before_it_is_stored():
    assert len(derive_outage(None, "x" * 10_000, policy=RetryPolicy(), now_us=START).reason) == 500


@pytest.mark.parametrize(
    ("policy", "attempts", "after_s", "expected"),
    [
        (RetryPolicy(), 10**6, 10**6, False),
        (RetryPolicy(max_attempts=3), 2, 10**6, False),
        (RetryPolicy(max_attempts=3), 3, 0, True),
        (RetryPolicy(max_duration_s=60), 100, 59.9, False),
        (RetryPolicy(max_duration_s=60), 2, 60, True),
    ],
)
def test_a_limit_is_one_of_attempts_or_of_time(policy, attempts, after_s, expected):
    now_us = START + round(after_s * SECOND)
    assert policy.is_spent(outage(attempts=attempts), now_us) is expected


@pytest.mark.parametrize(
    ("after_s", "words"), [(0, "(0s)"), (48, "(48s)"), (303, "(5m 3s)"), (7200, "(2h 0m)"), (93_600, "(26h 0m)")]
)
def test_a_person_reads_since_when_and_how_long(after_s, words):
    text = outage(attempts=2).describe(START + after_s * SECOND)
    assert text == f"refused; failing since 2023-11-14T22:13:20Z {words}, 2 attempts"


class Service:
    """Gives one number at each request, unless it is down."""

    def __init__(self):
        self.error = None
        self.requests = 0

    def next_number(self, position):
        self.requests += 1
        if self.error is not None:
            raise self.error
        return position


class Numbers(SourceOperator):
    """Reads numbers until the epoch ends; one attempt at a time."""

    def __init__(self, service, policy=None, retried=()):
        self._service = service
        self._policy = policy
        self._retried = retried

    def name(self):
        return "test.numbers"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema([("n", pa.int64())]))

    def tables(self):
        return {
            **global_table_config("position", "the next number, by subtask"),
            **global_table_config(OUTAGES, "services that fail", is_partitioned=True),
        }

    def on_start(self, ctx):
        self._position = ctx.table_manager.get_global_keyed_state("position", key_type=int, value_type=int)
        self._outages = Outages(ctx, self._policy, retried=self._retried)

    def run(self, ctx, collector):
        me = ctx.task_info.task_index
        while (message := self._outages.wait()) is None:
            position = self._position.get(me) or 0
            try:
                number = self._service.next_number(position)
            except Exception as error:
                self._outages.failed(error)
                continue
            self._outages.succeeded()
            collector.collect(pa.record_batch({"n": pa.array([number], pa.int64())}))
            self._position.insert(me, position + 1)
        return message.finish_type


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def harness(service, request):
    harness = SourceHarness(lambda: Numbers(service, getattr(request, "param", None)))
    yield harness
    harness.close()


def epoch(harness, **settings):
    """An epoch that ends after two rows, or when the source waits."""
    return harness.run(rows=2, ends_at_wait=True, **settings)


def numbers(run):
    return run.table["n"].to_pylist()


def test_an_outage_of_several_epochs_is_counted_from_its_beginning_and_ends(harness, service):
    assert numbers(harness.run(rows=2)) == [0, 1]
    service.error = ConnectionRefusedError("connection refused")
    harness.clock.advance(10)
    first = epoch(harness)
    assert (numbers(first), first.counters) == ([], {"retries": 1})
    assert first.finish_types == [SourceFinishType.CHECKPOINTED]
    assert first.warnings == ["connection refused; failing since 2023-11-14T22:13:30Z (0s), 1 attempt, the next in 1s"]
    harness.clock.advance(300)
    later = epoch(harness)
    assert later.warnings == [
        "connection refused; failing since 2023-11-14T22:13:30Z (5m 0s), 2 attempts, the next in 2s"
    ]
    service.error = None
    harness.clock.advance(2)
    back = harness.run(rows=2)
    assert numbers(back) == [2, 3]
    assert back.warnings == ["works again, after 5m 2s"]
    assert harness.run(rows=2).warnings == []


def test_epochs_between_attempts_try_nothing_and_say_that_the_outage_lasts(harness, service):
    service.error = ConnectionRefusedError("connection refused")
    epoch(harness)
    requests = service.requests
    harness.clock.advance(0.5)
    waiting = epoch(harness)
    assert service.requests == requests
    assert waiting.counters == {}
    assert "failing since 2023-11-14T22:13:20Z" in waiting.warnings[0]


@pytest.mark.parametrize("harness", [RetryPolicy(max_attempts=3)], indirect=True)
def test_a_limit_of_attempts_holds_across_epochs(harness, service):
    service.error = ConnectionRefusedError("connection refused")
    for _ in range(2):
        epoch(harness)
        harness.clock.advance(60)
    with pytest.raises(
        OperatorError, match=r"connection refused; failing since .* \(2m 0s\), 3 attempts: given up"
    ) as end:
        epoch(harness)
    assert (retry_hint(end.value), end.value.cause_domain) == (RetryHint.WITH_BACKOFF, Domain.EXTERNAL)


@pytest.mark.parametrize("harness", [RetryPolicy(max_duration_s=600)], indirect=True)
def test_a_limit_of_time_holds_across_epochs_and_a_restart_fails_at_once(harness, service):
    service.error = ConnectionRefusedError("connection refused")
    for _ in range(9):
        epoch(harness)
        harness.clock.advance(70)
    # The epoch that fails leaves no state; the one that is run in its place begins where the last one ended.
    for _ in range(2):
        with pytest.raises(OperatorError, match=r"ExternalError: connection refused; .* 10 attempts: given up"):
            epoch(harness)
    service.error = None
    assert numbers(harness.run(rows=2)) == [0, 1]


@pytest.mark.parametrize("harness", [RetryPolicy(max_attempts=3)], indirect=True)
def test_success_starts_the_count_again(harness, service):
    for _ in range(5):
        service.error = ConnectionRefusedError("connection refused")
        for _ in range(2):
            epoch(harness)
            harness.clock.advance(60)
        service.error = None
        assert len(numbers(harness.run(rows=2))) == 2


@pytest.mark.parametrize("error", [ValueError("no number"), PermissionError("token refused")])
def test_what_no_retry_can_help_is_raised_at_once(harness, service, error):
    service.error = error
    with pytest.raises(OperatorError, match=str(error)) as raised:
        epoch(harness)
    assert retry_hint(raised.value) is RetryHint.NO_RETRY


def test_an_external_error_and_what_the_source_names_are_retried(service):
    class ClientError(Exception):
        pass

    harness = SourceHarness(lambda: Numbers(service, retried=(ClientError,)))
    for error in (ExternalError("busy"), ClientError("busy too")):
        service.error = error
        assert epoch(harness).counters == {"retries": 1}
        harness.clock.advance(60)
    harness.close()


def test_each_subtask_has_its_own_outage_and_those_that_stay_keep_theirs(harness, service):
    service.error = ConnectionRefusedError("connection refused")
    assert epoch(harness, parallelism=3).counters == {"retries": 3}
    harness.clock.advance(100)
    fewer = epoch(harness, parallelism=1)
    assert "(1m 40s), 2 attempts" in fewer.warnings[0]
    harness.clock.advance(100)
    more = epoch(harness, parallelism=2)
    assert ["3 attempts" in warning for warning in more.warnings] == [True, False]


class Partitions(Numbers):
    """Two partitions, of which one may fail while the other goes on."""

    def __init__(self, failing):
        self._failing = failing

    def on_start(self, ctx):
        self._outages = Outages(ctx, owner=lambda key: {"a": 0, "b": 1}[key] % ctx.task_info.parallelism)

    def run(self, ctx, collector):
        for key, task in (("a", 0), ("b", 1)):
            if task % ctx.task_info.parallelism != ctx.task_info.task_index or not self._outages.is_due(key):
                continue
            if key in self._failing:
                self._outages.failed(TimeoutError("no answer"), key)
            else:
                self._outages.succeeded(key)
                collector.collect(pa.record_batch({"n": pa.array([task], pa.int64())}))
        return SourceFinishType.FINAL


def test_a_partition_that_fails_is_left_out_until_it_is_due_and_moves_with_its_owner():
    failing = {"b"}
    harness = SourceHarness(lambda: Partitions(failing))
    first = harness.run()
    assert numbers(first) == [0]
    assert first.warnings[0].startswith("b: no answer; failing since ")
    failing.clear()
    waiting = harness.run(parallelism=2)
    assert numbers(waiting) == [0]
    assert waiting.warnings[0].startswith("b: no answer; ")
    harness.clock.advance(1)
    back = harness.run(parallelism=2)
    assert numbers(back) == [0, 1]
    assert back.warnings == ["b: works again, after 1s"]
    harness.close()
