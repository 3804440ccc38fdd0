"""Where `kafka.source` begins and ends: `start`, `until`, and the consumer group."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from arroyo_kafka.partitions import Partition, owner_of

from arroyo_core.errors import OperatorError

from .support.cluster import Cluster
from .support.sources import Sources, ids, message, messages

MakeTopic = Callable[..., str]
HOUR_MS = 3_600_000


def test_latest_is_resolved_for_every_partition_at_the_first_start(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic(2)
    cluster.produce(name, messages(range(5)), partition=0)
    harness = sources(topic=name, start="latest")
    assert ids(harness.run(interval_ms=1)) == []
    # Neither the partition with messages nor the quiet one is read from its beginning, nor from its later end.
    for partition in range(2):
        cluster.produce(name, messages([10 + partition]), partition=partition)
    assert sorted(ids(harness.run(rows=2))) == [10, 11]


def test_start_at_a_time(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(2)
    cluster.produce(name, messages(range(3)), timestamp_ms=HOUR_MS)
    cluster.produce(name, messages(range(3, 6)), timestamp_ms=2 * HOUR_MS)
    cluster.produce(name, messages([9]), partition=1, timestamp_ms=HOUR_MS)
    found = sources(topic=name, start={"timestamp": "1970-01-01T01:30:00Z"}, until="latest").run_all()
    assert ids(found) == [3, 4, 5]


def test_until_a_time_ends_before_the_first_message_of_it(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(2)
    for timestamp, number in ((HOUR_MS, 0), (2 * HOUR_MS, 1), (HOUR_MS, 2)):
        cluster.produce(name, [message(number)], timestamp_ms=timestamp)
    cluster.produce(name, [message(7)], partition=1, timestamp_ms=HOUR_MS)
    found = sources(topic=name, until={"timestamp": "1970-01-01T02:00:00Z"}).run_all()
    assert sorted(ids(found)) == [0, 7]


def test_until_latest_does_not_read_what_came_after_the_first_start(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.produce(name, messages(range(4)))
    harness = sources(topic=name, until="latest")
    first = harness.run(rows=2)
    cluster.produce(name, messages(range(4, 9)))
    cluster.grow(name, 2)
    rest = harness.run_all()
    assert ids(first) + ids(rest) == [0, 1, 2, 3]


def test_topics_without_messages_end_at_once(topic: MakeTopic, sources: Sources) -> None:
    harness = sources(topic=topic(3), until="latest")
    assert harness.run().is_final
    assert harness.run(parallelism=2).is_final


def test_group_is_where_the_consumer_group_is_and_the_beginning_elsewhere(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic(2)
    for partition in range(2):
        cluster.produce(name, messages(range(partition * 10, partition * 10 + 5)), partition=partition)
    first = sources(topic=name, group_id=f"g-{name}")
    assert len(ids(first.run(rows=5))) == 5
    assert first.commit().warnings == {}
    committed = cluster.group_offsets(f"g-{name}", name)
    assert sum(committed.values()) == 5
    found = sources(topic=name, group_id=f"g-{name}", start="group", until="latest").run_all()
    assert len(ids(found)) == 5


def test_a_commit_to_the_group_that_is_refused_is_a_warning(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    cluster.produce(name, messages(range(3)))
    harness = sources(topic=name)
    harness.run(rows=3)
    cluster.delete(name)
    warnings = list(harness.commit().warnings)
    assert len(warnings) == 1
    assert "the job itself does not need it" in warnings[0]


def test_a_topic_that_is_not_there_is_a_mistake_of_the_config(sources: Sources) -> None:
    with pytest.raises(OperatorError, match="there is no topic 'nowhere'"):
        sources(topic="nowhere").run(rows=1)


def test_a_pattern_that_nothing_matches_waits(sources: Sources) -> None:
    run = sources(topic_pattern="none-of-these-.*").run(interval_ms=1)
    assert [watermark.is_idle for watermark in run.watermarks] == [True]


def test_several_topics_are_read_each_once(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    names = [topic(2), topic(1)]
    cluster.produce(names[0], messages(range(3)), partition=1)
    cluster.produce(names[1], messages(range(3, 6)))
    rows = sources(topics=names, until="latest", metadata={"topic": "topic"}).run_all(parallelism=2).to_pylist()
    assert {(row["topic"], row["id"]) for row in rows} == {
        *((names[0], number) for number in range(3)),
        *((names[1], number) for number in range(3, 6)),
    }


def test_partitions_of_a_topic_are_dealt_evenly() -> None:
    for parallelism in (1, 2, 3, 7):
        owners = [owner_of(Partition("orders", number), parallelism) for number in range(2 * parallelism)]
        assert sorted(owners) == sorted([*range(parallelism), *range(parallelism)])
