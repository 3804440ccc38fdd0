"""`kafka.source`: every message once, from where to where it was asked for, whatever the topic is like."""

from __future__ import annotations

from collections.abc import Callable

from .support.cluster import Cluster
from .support.sources import Sources, by_partition, ids, messages

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
