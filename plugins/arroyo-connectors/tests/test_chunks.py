"""Which changes the chunks of a snapshot have already, and the event time of one partition."""

from __future__ import annotations

import datetime

import pyarrow as pa
from arroyo_connectors.cdc.chunks import find_new
from arroyo_connectors.cdc.event_time import BEGINNING_OF_TIME_US, EventTime
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import Watermark

KEYS = st.integers(0, 20)
CHANGES = st.lists(st.tuples(st.integers(1, 30), KEYS), max_size=40)


@given(
    changes=CHANGES,
    lasts=st.lists(KEYS, unique=True, max_size=5).map(sorted),
    seen=st.lists(st.integers(0, 30), min_size=6, max_size=6).map(sorted),
)
def test_a_change_is_new_where_the_chunk_of_its_key_has_not_seen_it(changes, lasts, seen):
    """Chunks end with these keys, the last one has all that is behind; each was read after the one before it."""
    bounds = [*lasts, None]
    numbers = seen[: len(bounds)]
    asked = []

    def find_behind(rows, chunks):
        asked.extend(chunks)
        return [changes[row][1] > bounds[chunk] for row, chunk in zip(rows, chunks, strict=True)]

    sees = [lambda transaction, number=number: transaction <= number for number in numbers]
    found = find_new([transaction for transaction, _ in changes], sees, find_behind)
    expected = []
    for transaction, key in changes:
        chunk = next(place for place, last in enumerate(bounds) if last is None or key <= last)
        expected.append(transaction > numbers[chunk])
    assert found.tolist() == expected
    # Of the last chunk the database is never asked: it has no end.
    assert len(bounds) - 1 not in asked


def test_without_chunks_all_changes_are_new():
    assert find_new([3, 1], [], lambda rows, chunks: []).tolist() == [True, True]


def make(**changes):
    given = {"max_lateness_us": 5, "idle_after_us": 100, "latest_us": None, "is_idle": False, "quiet_us": 0}
    return EventTime(**{**given, "now_us": 0, **changes})


def times(*microseconds):
    return pa.array(microseconds, pa.timestamp("us", "UTC"))


def test_the_watermark_is_behind_the_latest_row_and_is_sent_when_it_changes():
    found = make()
    assert found.take() is None
    found.observe(times(20, 50, None), 1)
    assert found.take() == Watermark.event_time(45)
    assert found.take() is None
    found.observe(times(30), 2)
    assert found.take() is None
    found.observe(pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("s")), 3)
    assert found.take() == Watermark.event_time(999_995)


def test_quiet_times_of_epochs_add_up_to_idleness_until_a_row_comes():
    first = make()
    first.check_idle(60)
    assert first.take() is None
    kept = first.quiet_us(60)
    second = make(quiet_us=kept, now_us=1000)
    second.check_idle(1039)
    assert second.take() is None
    second.check_idle(1040)
    assert second.take() == Watermark.idle()
    second.observe(times(9), 1041)
    assert second.take() == Watermark.event_time(4)


def test_without_event_time_only_idleness_is_sent():
    found = EventTime(max_lateness_us=None, idle_after_us=10, latest_us=None, is_idle=False, quiet_us=0, now_us=0)
    found.observe(None, 1)
    assert found.take() is None
    found.check_idle(11)
    assert found.take() == Watermark.idle()
    found.observe(None, 12)
    assert found.take() == Watermark.event_time(BEGINNING_OF_TIME_US)
