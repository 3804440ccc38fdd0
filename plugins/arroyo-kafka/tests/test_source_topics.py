"""`kafka.source` over topics as they are: transactions, compaction, tombstones, retention, growth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from arroyo_kafka.broker import Broker
from arroyo_kafka.open_consumers import open_consumers
from arroyo_testing import FakeClock

from arroyo_core.errors import OperatorError

from .support.cluster import Cluster
from .support.sources import Sources, ids, message, messages

MakeTopic = Callable[..., str]


def test_aborted_messages_are_left_out_and_control_records_at_the_end_are_passed(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.transaction(name, messages(range(3)))
    cluster.transaction(name, messages(range(3, 6)), is_committed=False)
    found = sources(topic=name, until="latest", metadata={"offset": "offset"}).run_all(rows=2)
    assert ids(found) == [0, 1, 2]
    assert found["offset"].to_pylist() == [0, 1, 2]


def test_read_uncommitted_gives_what_was_aborted_too(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.transaction(name, messages(range(2)), is_committed=False)
    cluster.transaction(name, messages(range(2, 4)))
    assert ids(sources(topic=name, until="latest", read_committed=False).run_all()) == [0, 1, 2, 3]


def test_latest_of_committed_messages_is_before_an_open_transaction(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.produce(name, messages(range(2)))
    with cluster.open_transaction(name, messages(range(2, 4))):
        assert ids(sources(topic=name, until="latest").run_all()) == [0, 1]


def test_gaps_of_compaction_are_passed(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(**{"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"})
    # Offsets that nobody sees: what is aborted is never given.
    cluster.produce(name, messages([0]), keys=[b"a"])
    cluster.transaction(name, messages(range(1, 4)), is_committed=False)
    cluster.produce(name, messages([4]), keys=[b"b"])
    cluster.transaction(name, messages(range(5, 8)), is_committed=False)
    harness = sources(topic=name, until="latest")
    assert [ids(harness.run(rows=1)) for _ in range(2)] == [[0], [4]]
    assert harness.run(rows=1).is_final


def test_tombstones_are_left_out_and_count_for_the_position(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.produce(name, [message(0), None, message(1), None], keys=[b"a", b"a", b"b", b"b"])
    harness = sources(topic=name, until="latest", metadata={"offset": "offset"})
    found = harness.run_all()
    assert list(zip(ids(found), found["offset"].to_pylist(), strict=True)) == [(0, 0), (1, 2)]
    assert harness.run().is_final


def test_metadata_of_messages_is_in_columns(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", b"2"), ("none", None)]
    cluster.produce(name, [message(0)], keys=[b"k"], timestamp_ms=1_500, headers=headers)
    cluster.produce(name, [message(1)], timestamp_ms=2_000)
    parts = ("topic", "partition", "offset", "timestamp", "key", "headers")
    found = sources(topic=name, until="latest", metadata={f"m_{part}": part for part in parts}).run_all()
    first, second = found.to_pylist()
    assert (first["m_topic"], first["m_partition"], first["m_offset"]) == (name, 0, 0)
    assert (first["m_key"], first["m_headers"]) == (b"k", [("a", b"1"), ("a", b"2"), ("none", None)])
    assert first["m_timestamp"].timestamp() == 1.5
    assert (second["m_key"], second["m_headers"], second["m_offset"]) == (None, [], 1)
    assert [str(field.type) for field in found.schema][2:] == [
        "string",
        "int32",
        "int64",
        "timestamp[us, tz=UTC]",
        "binary",
        "map<string, binary>",
    ]


def test_messages_of_a_megabyte(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(**{"max.message.bytes": "2000000"})
    values = [b'{"id": %d, "at": null, "x": "%s"}' % (number, b"x" * 1_000_000) for number in range(40)]
    cluster.produce(name, values)
    assert ids(sources(topic=name, until="latest").run_all()) == list(range(40))


def test_new_partitions_are_read_from_their_beginning(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, messages([0]))
    clock = FakeClock()
    harness = sources(clock, topic=name, start="latest")
    assert ids(harness.run(interval_ms=1)) == []
    cluster.grow(name, 2)
    cluster.produce(name, messages([1, 2]), partition=1)
    # Not before it is time to look.
    assert ids(harness.run(interval_ms=1)) == []
    clock.advance(31)
    assert ids(harness.run(rows=2)) == [1, 2]


class TurningClock(FakeClock):
    """Does something once, while an epoch runs, and is half a minute later from then on."""

    def __init__(self, turn: Callable[[], None]) -> None:
        super().__init__()
        self._turn = turn
        self._calls = 0

    def now_us(self) -> int:
        self._calls += 1
        if self._calls == 10:
            self._turn()
            self.advance(31)
        return super().now_us()


def test_partitions_that_are_new_in_the_first_epoch_are_read_from_their_beginning(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()

    def turn() -> None:
        cluster.grow(name, 2)
        cluster.produce(name, messages([5]), partition=1)

    assert ids(sources(TurningClock(turn), topic=name, start="latest").run(rows=1)) == [5]


def test_topics_that_a_pattern_matches_later_are_read_from_their_beginning(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    prefix = topic()
    cluster.produce(prefix, messages([0]))
    clock = FakeClock()
    harness = sources(clock, topic_pattern=f"{prefix}.*", start="latest")
    assert ids(harness.run(interval_ms=1)) == []
    cluster.create(f"{prefix}-b", partitions=2)
    cluster.produce(f"{prefix}-b", messages([5]), partition=1)
    clock.advance(31)
    assert ids(harness.run(rows=1)) == [5]


@pytest.mark.parametrize(("policy", "expected"), [("earliest", [4, 5]), ("latest", [])])
def test_messages_that_retention_deleted_are_counted(
    cluster: Cluster, topic: MakeTopic, sources: Sources, policy: str, expected: list[int]
) -> None:
    name = topic()
    cluster.produce(name, messages(range(6)))
    harness = sources(topic=name, until="latest", on_data_loss=policy)
    assert ids(harness.run(rows=2)) == [0, 1]
    cluster.truncate(name, 0, 4)
    # What a consumer of this process has fetched already is not lost.
    open_consumers.close_all()
    run = harness.run()
    assert (ids(run), run.counters["lost_messages"]) == (expected, 2)
    assert "offsets 2 to 3 are gone" in run.warnings[0]


def test_messages_that_retention_deleted_fail_the_job(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, messages(range(6)))
    harness = sources(topic=name, until="latest")
    harness.run(rows=2)
    cluster.truncate(name, 0, 4)
    # What a consumer of this process has fetched already is not lost.
    open_consumers.close_all()
    with pytest.raises(OperatorError, match=r"t-\w+\[0\]: offsets 2 to 3 are gone"):
        harness.run()


@pytest.mark.parametrize("count", [1, 20])
def test_a_topic_that_was_made_again_is_another_one(
    cluster: Cluster, topic: MakeTopic, sources: Sources, count: int
) -> None:
    """With fewer messages than were read, and with more: offsets alone would not tell."""
    name = topic()
    cluster.produce(name, messages(range(6)))
    clock = FakeClock()
    failing, going_on = (sources(clock, topic=name, on_data_loss=policy) for policy in ("fail", "earliest"))
    for harness in (failing, going_on):
        assert len(ids(harness.run(rows=6))) == 6
    cluster.delete(name)
    cluster.create(name)
    cluster.produce(name, messages(range(100, 100 + count)))
    clock.advance(31)
    with pytest.raises(OperatorError, match="the topic was deleted and made again"):
        failing.run(rows=1)
    run = going_on.run(rows=count)
    assert ids(run) == list(range(100, 100 + count))
    assert "the topic was deleted and made again" in run.warnings[0]


def test_a_topic_that_is_deleted_while_it_is_read(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, messages(range(3)))
    clock = FakeClock()
    failing, waiting = (sources(clock, topic=name, on_data_loss=policy) for policy in ("fail", "latest"))
    for harness in (failing, waiting):
        harness.run(rows=3)
    cluster.delete(name)
    clock.advance(31)
    with pytest.raises(OperatorError, match="its topic was deleted"):
        failing.run(rows=1)
    assert any("waiting until its topic is made again" in text for text in waiting.run(interval_ms=1).warnings)
    cluster.create(name)
    clock.advance(31)
    assert "the topic was deleted and made again" in waiting.run(interval_ms=1).warnings[0]
    cluster.produce(name, messages([7]))
    assert ids(waiting.run(rows=1)) == [7]


def test_a_broker_that_comes_back_is_read_on(
    broker: Broker, cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.produce(name, messages(range(3)))
    harness = sources(topic=name)
    assert ids(harness.run(rows=3)) == [0, 1, 2]
    broker.pause()
    try:
        assert ids(harness.run(interval_ms=300)) == []
    finally:
        broker.resume()
    cluster.produce(name, messages([3]))
    assert ids(harness.run(rows=1)) == [3]


def test_a_source_begins_in_an_epoch_that_is_shorter_than_the_answer_of_a_broker(
    cluster: Cluster, topic: MakeTopic, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic()
    cluster.produce(name, messages([0]))
    harness = sources(topic=name, start="latest")
    # Each answer is waited for in many steps, and the barrier is there before the first of them.
    monkeypatch.setattr("arroyo_kafka.cluster.STEP_SECONDS", 0.0001)
    assert ids(harness.run(interval_ms=0)) == []
    cluster.produce(name, messages([1]))
    assert ids(harness.run(rows=1)) == [1]
