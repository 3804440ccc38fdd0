"""A commit that is interrupted at any call, repeated, or done by a driver that lost the job: each row is there once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from arroyo_kafka.client import Client
from arroyo_kafka.commit import Limits
from arroyo_kafka.markers import GroupMarkers, TopicMarkers
from confluent_kafka import KafkaError, KafkaException

from arroyo_core.api import CommitToken
from arroyo_core.errors import OperatorError

from .support.cluster import Cluster
from .support.faults import Calls, Crash, Fault, FaultyClient
from .support.sinks import Sink

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
GROUP = "arroyo-00000000000000a1-operator"
DAY_S = 24 * 3600
ROWS = 30


@pytest.fixture(params=["group", "progress topic"])
def markers(request: pytest.FixtureRequest) -> str:
    """Where the markers are."""
    return str(request.param)


@pytest.fixture
def subtasks() -> int:
    """Of the sink; each has a part of every epoch, and so a transaction, of its own."""
    return 2


@pytest.fixture
def sink(cluster: Cluster, topic: Callable[..., str], markers: str, subtasks: int) -> Iterator[Sink]:
    name = topic(partitions=3)
    progress = {"progress_topic": f"{name}-progress"} if markers == "progress topic" else {}
    config = {"bootstrap_servers": cluster.bootstrap_servers, "topic": name, "key_fields": ["name"], **progress}
    with Sink(SCHEMA, parallelism=subtasks, limits=Limits(part_bytes=1), **config) as made:
        yield made


class Numbers:
    """Rows with ids that no other row has; `expected` has those that must be in the topic."""

    def __init__(self) -> None:
        self.expected: list[int] = []

    def take(self) -> list[dict[str, Any]]:
        first = len(self.expected)
        self.expected += range(first, first + ROWS)
        return [{"id": number, "name": f"k{number % 7}"} for number in range(first, first + ROWS)]

    def check(self, cluster: Cluster, sink: Sink) -> None:
        found = Counter(ids(cluster, sink))
        missing, twice = Counter(self.expected) - found, found - Counter(self.expected)
        assert (missing, twice) == (Counter(), Counter())


def ids(cluster: Cluster, sink: Sink) -> list[int]:
    return [json.loads(record.value)["id"] for record in cluster.read(sink.settings.topic) if record.value]


def client_of(cluster: Cluster, calls: Calls) -> Client:
    return FaultyClient(cluster.bootstrap_servers, calls)


def count_calls(cluster: Cluster, sink: Sink, numbers: Numbers) -> int:
    """The calls of one commit, by a process that has just begun, on a cluster that has got its own topics ready."""
    calls = Calls()
    sink.write(numbers.take())
    sink.begin_process()
    sink.use(client_of(cluster, calls))
    sink.write(numbers.take())
    assert {"init_transactions", "produce_batch", "flush", "commit_transaction"} <= set(calls.names)
    first_read = next(place for place, name in enumerate(calls.names) if name in ("committed", "consume"))
    assert calls.names.index("init_transactions") < first_read
    return len(calls.names)


def attempt(sink: Sink, staged: Any, token: CommitToken) -> OperatorError | None:
    """Commit, and return what came of it."""
    try:
        sink.commit(staged, token=token)
    except OperatorError as error:
        return error
    return None


@pytest.mark.parametrize("store", [GroupMarkers, TopicMarkers])
def test_a_refusal_that_is_known_before_the_marker_is_written_has_its_reason(cluster, topic, store, monkeypatch):
    """On a fast broker, or a slow machine: the call that writes the marker fails then, and does not say why."""
    write = store.write

    def write_late(markers, producer, marker):
        producer.flush()
        write(markers, producer, marker)

    monkeypatch.setattr(store, "write", write_late)
    name = topic(**{"max.message.bytes": "1000"})
    progress = {"progress_topic": f"{name}-progress"} if store is TopicMarkers else {}
    with (
        Sink(SCHEMA, bootstrap_servers=cluster.bootstrap_servers, topic=name, **progress) as sink,
        pytest.raises(OperatorError, match=r"a message of 50\d\d bytes is too large for topic"),
    ):
        sink.write([{"id": 1, "name": "x" * 5000}])


@pytest.mark.parametrize("markers", ["progress topic"], indirect=True)
@pytest.mark.parametrize("code", [KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_progress_topic_that_not_all_brokers_know_of_yet_is_waited_for(sink, cluster, code, monkeypatch):
    """One that was just made; it has been the end of a job."""
    ends = TopicMarkers._end
    left = [1, 2]

    def not_yet(markers: TopicMarkers) -> int:
        if left:
            left.pop()
            raise KafkaException(KafkaError(code))
        return ends(markers)

    monkeypatch.setattr(TopicMarkers, "_end", not_yet)
    numbers = Numbers()
    sink.write(numbers.take())
    assert not left
    numbers.check(cluster, sink)


@pytest.mark.parametrize("fault", Fault)
def test_a_commit_that_is_interrupted_at_any_call_is_finished_by_the_next_driver(sink, cluster, fault):
    numbers = Numbers()
    plain = sink.settings.client
    count = count_calls(cluster, sink, numbers)
    happened = 0
    for number in range(1, count + 1):
        staged = sink.stage(numbers.take())
        calls = Calls()
        calls.fail(number, fault)
        sink.use(client_of(cluster, calls))
        sink.begin_process()
        try:
            sink.commit(staged)
        except Crash:
            happened += 1
        sink.use(plain)
        sink.begin_process()
        sink.harness.take_over()
        sink.commit(staged)
        sink.harness.restore()
    numbers.check(cluster, sink)
    # What only fails is repeated by the driver itself.
    assert happened == (count if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER) else 0)


@pytest.mark.parametrize("subtasks", [1])
def test_a_driver_that_wakes_up_between_any_two_calls_changes_nothing(sink, cluster):
    numbers = Numbers()
    plain = sink.settings.client
    fenced = 0
    for number in range(1, count_calls(cluster, sink, numbers) + 1):
        staged, calls = sink.stage(numbers.take()), Calls()
        token = sink.harness.last_token

        def at(now: int, call: Callable[[], Any], number: int = number, staged: Any = staged) -> Any:
            if now == number:
                # The second driver takes over while the first one is asleep, and goes on.
                sink.use(plain)
                sink.begin_process()
                sink.harness.take_over()
                sink.commit(staged)
                sink.harness.restore()
                sink.write(numbers.take())
            return call()

        calls.at = at
        sink.begin_process()
        asleep = sink.sessions
        sink.use(client_of(cluster, calls))
        problem = attempt(sink, staged, token)
        asleep.close()
        if problem is not None:
            fenced += 1
            assert "this driver must stop" in str(problem)
            assert problem.cause_retry == "no_retry"
        # The second driver may have been fenced by the first one, and goes on all the same.
        sink.write(numbers.take())
    numbers.check(cluster, sink)
    assert fenced


def test_a_session_serves_epoch_after_epoch(sink, cluster):
    numbers, calls = Numbers(), Calls()
    sink.use(client_of(cluster, calls))
    sink.write(numbers.take())
    calls.names.clear()
    for _ in range(3):
        sink.write(numbers.take())
    numbers.check(cluster, sink)
    assert not {"init_transactions", "committed", "consume"} & set(calls.names)


@pytest.fixture
def plain_sink(cluster: Cluster, topic: Callable[..., str]) -> Iterator[Callable[..., Sink]]:
    """Makes sinks with markers in groups."""
    made: list[Sink] = []

    def make(**config: Any) -> Sink:
        made.append(Sink(SCHEMA, bootstrap_servers=cluster.bootstrap_servers, topic=topic(), **config))
        return made[-1]

    yield make
    for sink in made:
        sink.__exit__()


def forget_markers(cluster: Cluster) -> None:
    """As the cluster does after a week without a commit."""
    for done in cluster.admin.delete_consumer_groups([GROUP]).values():
        done.result(30)


def commit_and_die(cluster: Cluster, sink: Sink, staged: Any) -> None:
    """The commit is done, and nobody hears of it."""
    plain, calls = sink.settings.client, Calls()
    sink.begin_process()
    sink.use(client_of(cluster, calls))

    def at(number: int, call: Callable[[], Any]) -> Any:
        result = call()
        if calls.names[-1] == "commit_transaction":
            calls.is_dead = True
            raise Crash
        return result

    calls.at = at
    with pytest.raises(Crash):
        sink.commit(staged)
    sink.use(plain)
    sink.begin_process()
    sink.harness.take_over()


def lose_the_marker(cluster: Cluster, sink: Sink) -> Any:
    """An epoch that was committed by a driver that died, after others, and whose marker has expired."""
    sink.write([{"id": 1, "name": "a"}])
    staged = sink.stage([{"id": 2, "name": "a"}])
    commit_and_die(cluster, sink, staged)
    forget_markers(cluster)
    return staged


def test_a_lost_marker_stops_the_job_and_says_what_to_do(plain_sink, cluster):
    sink = plain_sink()
    staged = lose_the_marker(cluster, sink)
    with pytest.raises(
        OperatorError, match=r"marker of the last commit is gone.*on_lost_marker: skip if they are"
    ) as caught:
        sink.commit(staged)
    assert caught.value.cause_retry == "no_retry"
    assert ids(cluster, sink) == [1, 2]


@pytest.mark.parametrize(("policy", "expected"), [("repeat", [1, 2, 2, 3]), ("skip", [1, 2, 3])])
def test_a_lost_marker_is_handled_as_the_policy_says_and_the_job_goes_on(plain_sink, cluster, policy, expected):
    sink = plain_sink(on_lost_marker=policy)
    staged = lose_the_marker(cluster, sink)
    sink.commit(staged)
    sink.commit(staged)
    sink.harness.restore()
    sink.write([{"id": 3, "name": "a"}])
    assert ids(cluster, sink) == expected


def test_an_epoch_of_the_present_driver_needs_no_marker(plain_sink, cluster):
    sink = plain_sink()
    sink.write([{"id": 1, "name": "a"}])
    forget_markers(cluster)
    sink.begin_process()
    sink.harness.take_over()
    sink.write([{"id": 2, "name": "a"}])
    assert ids(cluster, sink) == [1, 2]


def test_a_first_epoch_that_was_not_committed_is_committed_by_the_next_driver(plain_sink, cluster):
    sink = plain_sink()
    staged = sink.stage([{"id": 1, "name": "a"}])
    sink.begin_process()
    sink.harness.take_over()
    sink.commit(staged)
    assert ids(cluster, sink) == [1]


def test_a_first_epoch_that_waited_for_days_may_have_lost_its_marker(plain_sink, cluster):
    sink = plain_sink()
    staged = sink.stage([{"id": 1, "name": "a"}])
    sink.begin_process()
    sink.harness.take_over()
    sink.clock.advance(8 * DAY_S)
    with pytest.raises(OperatorError, match="marker of the last commit is gone"):
        sink.commit(staged)
    assert ids(cluster, sink) == []


def test_a_marker_is_written_again_before_it_can_expire(plain_sink, cluster):
    sink = plain_sink()
    sink.write([{"id": 1, "name": "a"}])
    written = cluster.group_offsets(GROUP, sink.settings.topic)
    forget_markers(cluster)
    sink.write([])
    assert cluster.group_offsets(GROUP, sink.settings.topic) == {}
    sink.clock.advance(DAY_S)
    sink.write([])
    assert cluster.group_offsets(GROUP, sink.settings.topic) == written
    assert ids(cluster, sink) == [1]


def test_a_cluster_that_does_not_answer_is_an_outage(plain_sink, cluster):
    sink = plain_sink(limits=Limits(patience_s=0.2))
    staged = sink.stage([{"id": 1, "name": "a"}])
    calls = Calls()
    calls.at = lambda number, call: (_ for _ in ()).throw(KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
    sink.use(client_of(cluster, calls))
    with pytest.raises(OperatorError, match="cannot commit epoch 1") as caught:
        sink.commit(staged)
    assert caught.value.cause_retry == "with_backoff"
    assert len(calls.names) > 1
