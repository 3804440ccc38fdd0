"""std.session_window against a slow and obvious model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arroyo_std.windows import pending_sessions, session_store
from arroyo_std.windows.sessions import derive_sessions, merge_sessions
from arroyo_testing import FakeClock
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Watermark
from arroyo_core.errors import ConfigError

from .support.window_model import (
    AGGREGATES,
    STREAM,
    EndOfEpoch,
    Mark,
    Row,
    Rows,
    aggregate,
    as_rows,
    batch_of,
    check_order,
    feed,
    streams,
)

GAP = 10
COUNT = [{"function": "count", "as": "n"}]


def split(rows: list[Row]) -> list[list[Row]]:
    """Rows of one key as sessions; each keeps the order of arrival."""
    sessions: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: row.time_us):
        if sessions and row.time_us - max(each.time_us for each in sessions[-1]) < GAP:
            sessions[-1].append(row)
        else:
            sessions.append([row])
    return [[row for row in rows if any(row is each for each in session)] for session in sessions]


def model(steps, *, lateness: int, keys: list[str]) -> tuple[list[dict[str, Any]], int]:
    open_rows: dict[Any, list[Row]] = {}
    watermark: int | None = None
    late = 0
    found: list[dict[str, Any]] = []

    def close(until: int | None) -> None:
        for key, rows in list(open_rows.items()):
            open_rows[key] = []
            for session in split(rows):
                first, last = min(row.time_us for row in session), max(row.time_us for row in session)
                if until is not None and last + GAP + lateness > until:
                    open_rows[key] += session
                    continue
                times = {"window_start": first, "window_end": last + GAP, "window_time": last + GAP - 1}
                found.append({**({"k": key} if keys else {}), **times, **aggregate(session)})
            place = {id(row): number for number, row in enumerate(rows)}
            open_rows[key].sort(key=lambda row: place[id(row)])

    for step in steps:
        if isinstance(step, Mark):
            watermark = step.time_us if watermark is None else max(watermark, step.time_us)
            close(watermark)
        for row in step.rows if isinstance(step, Rows) else ():
            if row.time_us is None:
                continue
            if watermark is not None and row.time_us + GAP + lateness <= watermark:
                late += 1
            else:
                # A copy: equal rows must stay apart.
                open_rows.setdefault(row.key if keys else None, []).append(Row(row.key, row.value, row.time_us))
    close(None)
    return sorted(found, key=lambda row: (row["window_end"], row["window_start"], str(row.get("k")))), late


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(steps=streams(), lateness=st.sampled_from([0, 7]), keys=st.sampled_from([[], ["k"]]))
@example(steps=[Rows((Row("a", 1, 0), Row("a", 1, 100)))], lateness=0, keys=["k"])
@example(steps=[Rows((Row("a", 1, 0), Row("a", 1, 10), Row("a", 1, 19)))], lateness=0, keys=["k"])
@example(
    steps=[Rows((Row("a", 1, 20), Row("a", 2, 0))), EndOfEpoch(True), Rows((Row("a", 3, 11),)), EndOfEpoch(True)],
    lateness=0,
    keys=["k"],
)
def test_sessions_hold_what_the_model_holds(make, run, steps, lateness, keys):
    config = {"gap": GAP, "keys": keys, "aggregates": AGGREGATES, "allowed_lateness": lateness}
    with run(lambda: make("std.session_window", **config), [STREAM]) as harness:
        feed(harness, steps)
        expected, late = model(steps, lateness=lateness, keys=keys)
        assert as_rows(harness.output) == expected
        if not any(isinstance(step, EndOfEpoch) and step.is_restored for step in steps):
            assert harness.counters.get("late_rows", 0) == late
        assert harness.operator.store._sessions.get_all().num_rows == 0
        assert harness.operator.store._apart.get_all().num_rows == 0
        assert not harness.operator.store._timers.is_due(END_OF_TIME_US)
        check_order(harness)


def spans(table) -> list[tuple[int, int, int]]:
    return [(row["window_start"], row["window_end"], row["n"]) for row in as_rows(table)]


def test_a_row_exactly_the_gap_after_the_last_begins_a_new_session(make, run):
    subtask = run(make("std.session_window", gap=GAP, keys=["k"], aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 0), Row("a", 1, 9), Row("a", 1, 19)]))
    subtask.end_of_data()
    assert spans(subtask.output) == [(0, 19, 2), (19, 29, 1)]


def test_a_row_between_two_sessions_makes_them_one_over_epochs(make, run):
    subtask = run(lambda: make("std.session_window", gap=GAP, keys=["k"], aggregates=COUNT), [STREAM])
    for times in ([0], [18], [9]):
        subtask.feed(batch_of([Row("a", 1, time) for time in times]))
        subtask.checkpoint()
        subtask.restore()
    subtask.watermark(Watermark.event_time(27))
    assert subtask.output.num_rows == 0
    subtask.watermark(Watermark.event_time(28))
    assert spans(subtask.output) == [(0, 28, 3)]


def test_a_session_longer_than_a_hundred_gaps_keeps_one_partial_aggregate(make, run):
    subtask = run(lambda: make("std.session_window", gap=GAP, keys=["k"], aggregates=AGGREGATES), [STREAM])
    for step in range(300):
        subtask.feed(batch_of([Row("a", step, step * 9)]))
        subtask.watermark(Watermark.event_time(step * 9))
        if step % 50 == 0:
            subtask.checkpoint()
            subtask.restore()
    subtask.checkpoint()
    (stored,) = subtask.operator.store._sessions.get_all().to_pylist()
    assert len(stored["_sessions"]) == 1
    subtask.end_of_data()
    (row,) = as_rows(subtask.output)
    assert (row["window_start"], row["window_end"], row["n"]) == (0, 299 * 9 + GAP, 300)


def test_sessions_of_many_keys_end_some_keys_at_a_time(make, run, monkeypatch):
    monkeypatch.setattr(session_store, "SETTLED_KEYS", 2)
    subtask = run(lambda: make("std.session_window", gap=GAP, keys=["k"], aggregates=COUNT), [STREAM])
    keys = ["a", "b", "c", "d", None]
    # Stored sessions, some of which rows of the next epoch lengthen, and one of a key that was not there.
    subtask.feed(batch_of([Row(key, 1, time) for time in (0, 30) for key in keys]))
    subtask.checkpoint()
    subtask.restore()
    subtask.feed(batch_of([Row("b", 1, 5), Row("d", 1, 12), Row("e", 1, 1), Row(None, 1, 38)]))
    subtask.watermark(Watermark.event_time(25))
    first = sorted((str(row["k"]), row["window_start"], row["window_end"], row["n"]) for row in as_rows(subtask.output))
    assert first == [
        ("None", 0, 10, 1),
        ("a", 0, 10, 1),
        ("b", 0, 15, 2),
        ("c", 0, 10, 1),
        ("d", 0, 10, 1),
        ("d", 12, 22, 1),
        ("e", 1, 11, 1),
    ]
    subtask.take_output()
    subtask.end_of_data()
    last = sorted((str(row["k"]), row["window_start"], row["window_end"], row["n"]) for row in as_rows(subtask.output))
    assert last == [("None", 30, 48, 2), *((key, 30, 40, 1) for key in "abcd")]


def test_sessions_of_processing_time_end_by_the_clock(make, run):
    clock = FakeClock(now_us=1_000)
    subtask = run(
        make("std.session_window", gap=GAP, keys=["k"], aggregates=COUNT, time="processing"), [STREAM], clock=clock
    )
    subtask.feed(batch_of([Row("a", 1, None)]))
    clock.advance(9e-6)
    subtask.feed(batch_of([Row("a", 1, None)]))
    clock.advance(9e-6)
    subtask.tick()
    assert subtask.output.num_rows == 0
    clock.advance(1e-6)
    subtask.tick()
    assert spans(subtask.output) == [(1_000, 1_019, 2)]


def test_a_gap_of_nothing_is_refused(make):
    with pytest.raises(ConfigError) as raised:
        make("std.session_window", gap=0)
    assert raised.value.field == "gap"


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(-50, 50), st.integers(0, 30)), max_size=20),
    gap_us=st.integers(1, 12),
)
def test_intervals_join_as_they_would_one_by_one(rows, gap_us):
    codes, firsts, lengths = (
        np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else ([],) * 3)
    )
    order, starts = derive_sessions(codes, firsts, firsts + lengths, gap_us=gap_us)
    expected, last = [], None
    for code, first, length in [rows[place] for place in order]:
        is_new = last is None or last[0] != code or first - last[1] >= gap_us
        expected.append(is_new)
        last = (code, first + length if is_new else max(last[1], first + length))
    assert starts.tolist() == expected


def test_a_watermark_looks_only_at_sessions_that_have_begun(make, run, monkeypatch):
    """Rows that came far ahead of the watermark must not be looked at again by each: that would be quadratic."""
    looked_at: list[int] = []

    def count_merged(sessions, plan, *, gap_us):
        looked_at.append(len(sessions))
        return merge_sessions(sessions, plan, gap_us=gap_us)

    monkeypatch.setattr(pending_sessions, "merge_sessions", count_merged)
    times = range(0, 200 * GAP, GAP)
    subtask = run(make("std.session_window", gap=GAP, keys=["k"], aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row(f"k{time % 7}", 1, time) for time in times]))
    for time in times:
        subtask.watermark(Watermark.event_time(time + GAP))
    assert spans(subtask.output) == [(time, time + GAP, 1) for time in times]
    assert sum(looked_at) < 4 * len(times)
