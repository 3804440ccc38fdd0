"""Event time of partitions: pure decisions, and what a source sends because of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
from arroyo_kafka.event_time import BEGINNING_OF_TIME_US, NO_TIME, EventTime, PartitionTime
from arroyo_testing import FakeClock, SourceHarness
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Watermark

from .support.cluster import Cluster
from .support.sources import Sources, message, messages

MakeTopic = Callable[..., str]
SECOND = 1_000_000


class RunningClock(FakeClock):
    """Half a second later whenever it is asked."""

    def now_us(self) -> int:
        self.advance(0.5)
        return super().now_us()


def event_time(partitions: int, *, lateness: int | None = 10, idle_after: int | None = None) -> EventTime:
    found = EventTime(max_lateness_us=lateness, idle_after_us=idle_after)
    for _ in range(partitions):
        found.add(PartitionTime())
    return found


def observe(times: EventTime, rows: Sequence[tuple[int, int]], now_us: int = 0) -> None:
    numbers, values = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    times.observe(numbers, values, now_us=now_us)


def test_the_watermark_is_that_of_the_partition_that_is_behind() -> None:
    times = event_time(2)
    observe(times, [(0, 100), (1, 50), (0, 90)])
    assert times.take() == Watermark.event_time(40)
    assert times.take() is None
    observe(times, [(1, 200)])
    assert times.take() == Watermark.event_time(90)


def test_a_partition_without_a_row_holds_event_time_back() -> None:
    times = event_time(2)
    observe(times, [(0, 100)])
    assert times.take() is None


def test_a_partition_is_idle_when_it_is_at_its_end_and_quiet() -> None:
    times = event_time(2, idle_after=5)
    observe(times, [(0, 100)], now_us=10)
    times.check_idle(now_us=12)
    assert times.take() is None
    times[1].is_at_end = True
    times.check_idle(now_us=12)
    assert times.take() == Watermark.event_time(90)
    times[0].is_at_end = True
    times.check_idle(now_us=15)
    assert times.take() == Watermark.idle()
    observe(times, [(1, 70)], now_us=16)
    assert times.take() == Watermark.event_time(60)


def test_what_waits_to_be_read_is_not_idle() -> None:
    times = event_time(1, idle_after=5)
    times.check_idle(now_us=10**9)
    assert times.take() is None


def test_rows_without_event_time_do_not_count() -> None:
    times = event_time(1)
    observe(times, [(0, NO_TIME)])
    assert times.take() is None


def test_a_row_cannot_claim_the_end_of_time() -> None:
    times = event_time(1, lateness=0)
    observe(times, [(0, END_OF_TIME_US)])
    assert times.take() == Watermark.event_time(END_OF_TIME_US - 1)


def test_a_partition_that_is_done_holds_nothing_back() -> None:
    times = event_time(2)
    observe(times, [(0, 100), (1, 50)])
    times[1].is_done = True
    assert times.take() == Watermark.event_time(90)


def test_without_a_lateness_only_idleness_is_told() -> None:
    times = event_time(1, lateness=None, idle_after=5)
    times.observe(np.array([0]), None, now_us=0)
    assert times.take() is None
    times[0].is_at_end = True
    times.check_idle(now_us=5)
    assert times.take() == Watermark.idle()
    # Or else nobody would hear of the next idleness.
    times.observe(np.array([0]), None, now_us=6)
    assert times.take() == Watermark.event_time(BEGINNING_OF_TIME_US)


def test_a_source_without_partitions_is_idle() -> None:
    assert event_time(0).take() == Watermark.idle()


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1000)), min_size=1, max_size=30)


@given(ROWS, st.integers(1, 30))
def test_any_cut_of_rows_comes_to_the_same_watermark(rows: list[tuple[int, int]], size: int) -> None:
    whole, cut = event_time(3), event_time(3)
    observe(whole, rows)
    expected = whole.take()
    sent = []
    for start in range(0, len(rows), size):
        observe(cut, rows[start : start + size])
        sent.append(cut.take())
    said = [watermark.event_time_us for watermark in sent if watermark is not None]
    assert said == sorted(said)
    assert said[-1:] == ([expected.event_time_us] if expected else [])


def fill(cluster: Cluster, name: str, partitions: int) -> None:
    for partition in range(partitions):
        seconds = [100 * partition + number for number in range(20)]
        random.Random(partition).shuffle(seconds)
        cluster.produce(name, [message(second, second) for second in seconds], partition=partition)


def last_watermark(harness: SourceHarness, *, epochs: int, parallelisms: Sequence[int]) -> int:
    """The least of what the subtasks have come to: levels are kept by the core, so that each counts from its last."""
    runs = [harness.run(rows=60 // epochs, parallelism=parallelisms[0]) for _ in range(epochs)]
    runs.append(harness.run(interval_ms=1, parallelism=parallelisms[-1]))
    return min(found.event_time_us for found in runs[-1].watermarks if found.event_time_us is not None)


def test_watermarks_are_the_same_for_any_cut_into_epochs(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(3)
    fill(cluster, name, 3)
    found = {
        last_watermark(
            sources(topic=name, event_time_field="at", max_lateness=2 * SECOND),
            epochs=epochs,
            parallelisms=parallelisms,
        )
        for epochs, parallelisms in ((1, (1,)), (5, (1,)), (12, (1,)), (4, (1, 2)), (4, (1, 3)))
    }
    assert found == {(19 - 2) * SECOND}


def test_a_slow_partition_makes_no_row_of_it_late(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic(2)
    cluster.produce(name, messages(range(1000, 1010)), partition=0)
    cluster.produce(name, messages(range(10)), partition=1)
    run = sources(topic=name, until="latest", event_time_field="at", max_lateness=0).run()
    behind = [found.event_time_us for found in run.watermarks if found.event_time_us is not None]
    # Until the slow one is done, nothing is beyond it.
    assert behind == sorted(behind)
    assert all(time <= 9 * SECOND or time == 1009 * SECOND for time in behind)


def test_idle_partitions_let_event_time_go_on_also_over_epochs(
    cluster: Cluster, topic: MakeTopic, sources: Sources
) -> None:
    name = topic(2)
    cluster.produce(name, messages(range(5)), partition=0)
    harness = sources(RunningClock(), topic=name, event_time_field="at", max_lateness=0, idle_after=30 * SECOND)
    runs = [harness.run(rows=5)]
    assert runs[0].watermarks == []
    while not runs[-1].watermarks:
        # No epoch is as long as a partition has to be quiet: the quiet times of several count together.
        runs.append(harness.run(interval_ms=70))
    assert len(runs) > 3
    sent = list(runs[-1].watermarks)
    while sent[-1] != Watermark.idle():
        sent += harness.run(interval_ms=70).watermarks
    # The one without rows first, then the one that had some: or both at once.
    assert set(sent) <= {Watermark.event_time(4 * SECOND), Watermark.idle()}
    cluster.produce(name, messages([7]), partition=0)
    assert harness.run(rows=1).watermarks[-1] == Watermark.event_time(7 * SECOND)


def test_event_time_may_be_the_time_of_the_message(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, messages([1]), timestamp_ms=5_000)
    config = {"metadata": {"sent": "timestamp"}, "event_time_field": "sent", "max_lateness": SECOND}
    run = sources(topic=name, **config).run(rows=1)
    assert run.watermarks == [Watermark.event_time(4 * SECOND)]


def test_null_event_times_are_counted(cluster: Cluster, topic: MakeTopic, sources: Sources) -> None:
    name = topic()
    cluster.produce(name, [b'{"id": 1}', message(2, 3)])
    run = sources(topic=name, event_time_field="at", max_lateness=0).run(rows=2)
    assert run.counters == {"null_event_times": 1}
    assert run.watermarks == [Watermark.event_time(3 * SECOND)]
