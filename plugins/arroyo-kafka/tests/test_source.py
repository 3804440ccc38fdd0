"""`kafka.source`: every message once, from where to where it was asked for, whatever the topic is like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from arroyo_kafka.broker import Broker
from arroyo_kafka.open_consumers import open_consumers
from arroyo_kafka.source import KafkaSource
from arroyo_testing import FakeClock, SourceHarness

from .support.cluster import Cluster
from .support.sources import Sources, by_partition, ids, make_source, messages

MakeTopic = Callable[..., str]


def test_reads_all_partitions_to_the_end_of_what_is_there(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(3)
    for partition in range(3):
        cluster.produce(name, messages(range(partition * 10, partition * 10 + 10)), partition=partition)
    found = sources(topic=name, until="latest", metadata={"partition": "partition"}).run_all()
    rows = by_partition(found.to_pylist())
    assert rows == {0: list(range(10)), 1: list(range(10, 20)), 2: list(range(20, 30))}


def test_epochs_of_few_rows_go_on_where_the_last_one_ended(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic(2)
    for partition in range(2):
        cluster.produce(name, messages(range(partition * 10, partition * 10 + 10)), partition=partition)
    harness = sources(topic=name, until="latest")
    first = harness.run(rows=3)
    harness.run(rows=4, is_lost=True)
    rest = [harness.run(rows=4, parallelism=parallelism) for parallelism in (2, 3, 1, 1, 1, 1, 1)]
    assert len(ids(first)) == 3
    assert sorted(number for run in [first, *rest] for number in ids(run)) == list(range(20))
    assert rest[-1].is_final


def test_unbounded_source_waits_for_what_comes(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, messages(range(3)))
    harness = sources(topic=name)
    assert ids(harness.run(rows=3)) == [0, 1, 2]
    cluster.produce(name, messages(range(3, 5)))
    assert ids(harness.run(rows=2)) == [3, 4]
    assert not harness.run(interval_ms=1).is_final


def test_the_backlog_is_what_is_not_read_yet(cluster: Cluster, topic: MakeTopic, broker: Broker) -> None:
    name = topic()
    cluster.produce(name, messages(range(10)))
    source = make_source(broker.bootstrap_servers, topic=name).source
    reported: list[int] = []
    run = KafkaSource.run

    class Watching(KafkaSource):
        def run(self, ctx: Any, collector: Any) -> Any:
            ctx.report_backlog = reported.append
            return run(self, ctx, collector)

    assert isinstance(source, KafkaSource)
    harness = SourceHarness(lambda: Watching(source._settings))
    harness.run(rows=4)
    harness.run(rows=6)
    harness.close()
    open_consumers.close_all()
    assert reported == [6, 0]


def test_positions_of_topics_that_are_not_read_any_more_are_forgotten(
    cluster: Cluster, topic: MakeTopic, broker: Broker
) -> None:
    first, second = topic(), topic()
    for name, number in ((first, 1), (second, 2)):
        cluster.produce(name, messages([number]))
    selected = [first]
    harness = SourceHarness(lambda: make_source(broker.bootstrap_servers, topics=list(selected), until="latest"))
    assert ids(harness.run()) == [1]
    cluster.produce(first, messages([3]))
    selected[:] = [second]
    assert harness.run().is_final
    harness.close()
    before, after = (make_source(broker.bootstrap_servers, topic=name) for name in (first, second))
    assert before.inner.state_settings([]) != after.inner.state_settings([])


def test_changes_take_rows_back_and_tombstones_change_nothing(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    changes: list[tuple[str, int | None, int | None]] = [("c", None, 1), ("u", 1, 2), ("d", 2, None)]
    values = [
        json.dumps({"op": op, "before": before and {"id": before}, "after": after and {"id": after}}).encode()
        for op, before, after in changes
    ]
    cluster.produce(name, [*values, None], keys=[b"k"] * 4)
    harness = sources(topic=name, until="latest", format="debezium_json", schema={"id": "int64"})
    rows = harness.run_all().to_pylist()
    assert [(row["id"], row["_updating_meta"]["is_retract"]) for row in rows] == [
        (1, False),
        (1, True),
        (2, False),
        (2, True),
    ]


def test_subtasks_that_had_nothing_at_the_first_start_begin_at_the_beginning_of_what_they_get_later(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic()
    clock = FakeClock()
    harness = sources(clock, topic=name, start="latest")
    harness.run(interval_ms=1, parallelism=3)
    cluster.grow(name, 4)
    for partition in range(1, 4):
        cluster.produce(name, messages([partition]), partition=partition)
    clock.advance(31)
    found = [ids(harness.run(interval_ms=300, parallelism=3)) for _ in range(2)]
    assert sorted(number for numbers in found for number in numbers) == [1, 2, 3]
