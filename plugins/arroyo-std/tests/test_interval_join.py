"""std.interval_join against a slow and obvious model, and against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ConfigError

from .support.join_model import (
    LEFT,
    ON,
    RIGHT,
    STREAMS,
    EndOfEpoch,
    Mark,
    Row,
    Rows,
    batch_of,
    cut,
    duckdb_rows,
    feed,
    joined,
    many_rows,
    rows_of,
    sides_on_time,
    steps,
)

TYPES = ["inner", "left", "right", "full"]
INTERVALS = [(-5, 10), (0, 0), (3, 8), (-8, -3), (-30, 30)]


def text(duration_us: int) -> str:
    return f"{duration_us}us"


def latest(left: Row | None, right: Row | None) -> tuple[int]:
    return (max(row.time_us for row in (left, right) if row is not None),)


@pytest.mark.usefixtures("limits")
@settings(max_examples=120, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), interval=st.sampled_from(INTERVALS), parallelism=st.integers(1, 2))
def test_rows_within_the_interval_are_joined_and_no_others(make, stream, kind, interval, parallelism):
    lower, upper = interval
    config = {"type": kind, "on": ON, "lower": text(lower), "upper": text(upper)}
    with ParallelHarness(
        lambda: make("std.interval_join", **config), inputs=STREAMS, parallelism=parallelism
    ) as harness:
        feed(harness, stream)
        (left, right), late = sides_on_time(stream, lambda time_us: time_us)
        expected = joined(
            left, right, kind=kind, is_match=lambda x, y: lower <= y.time_us - x.time_us <= upper, added=latest
        )
        assert rows_of(harness.output) == expected
        assert harness.counters.get("late_rows", 0) == late


@settings(max_examples=60, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), interval=st.sampled_from(INTERVALS))
def test_no_row_is_behind_the_watermark_that_went_before_it(make, run, stream, kind, interval):
    config = {"type": kind, "on": ON, "lower": text(interval[0]), "upper": text(interval[1])}
    subtask = run(lambda: make("std.interval_join", **config), [*STREAMS])
    for step in stream:
        if isinstance(step, Rows):
            subtask.process(batch_of(step.side, step.rows), step.side)
        elif isinstance(step, Mark):
            subtask.watermark(Watermark.event_time(step.time_us), step.side)
    subtask.end_of_data()
    watermark_us = None
    for event in subtask.events:
        if isinstance(event, Watermark):
            watermark_us = event.event_time_us
        elif watermark_us is not None:
            assert event.column("join_time").cast(pa.int64()).to_numpy().min() >= watermark_us


@pytest.mark.parametrize("kind", TYPES)
def test_a_large_join_is_that_of_duckdb(make, kind):
    rows = many_rows()
    config = {"type": kind, "on": ON, "lower": "-300us", "upper": "500us"}
    with ParallelHarness(lambda: make("std.interval_join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, cut(rows))
        found = rows_of(harness.output)
    query = f"""
        SELECT l.k, l.a, epoch_us(l.at), r.key, r.a, epoch_us(r.seen), greatest(epoch_us(l.at), epoch_us(r.seen))
        FROM left_rows l {kind} JOIN right_rows r
        ON l.k = r.key AND epoch_us(r.seen) - epoch_us(l.at) BETWEEN -300 AND 500
    """
    assert found == duckdb_rows(query, rows)
    assert found.total() > 500


def test_a_pair_comes_with_its_second_row_and_a_row_without_a_match_when_none_can_come(make, run):
    subtask = run(make("std.interval_join", type="left", on=ON, lower="-5us", upper="10us"), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 20), Row("b", 2, 20), Row(None, 3, 20)]))
    assert rows_of(subtask.take_output()) == {(None, 3, 20, None, None, None, 20): 1}
    subtask.feed(batch_of(1, [Row("a", 4, 15), Row("a", 5, 14), Row("a", 6, 30), Row("a", 7, 31)]), index=1)
    assert rows_of(subtask.take_output()) == {("a", 1, 20, "a", 4, 15, 20): 1, ("a", 1, 20, "a", 6, 30, 30): 1}
    for time_us in (30, 31):
        assert subtask.output.num_rows == 0
        for index in (0, 1):
            subtask.watermark(Watermark.event_time(time_us), index)
    assert rows_of(subtask.output) == {("b", 2, 20, None, None, None, 20): 1}
    assert subtask.watermarks == [Watermark.event_time(20), Watermark.event_time(21)]


def rows_in_state(harness, table: str) -> int:
    files = harness._state.metadata.table_checkpoint_metadata[table].expiring_keyed_time.files
    return sum(file.rows for file in files)


@pytest.mark.parametrize(("kind", "kept"), [("inner", (1, 0)), ("left", (1, 1)), ("right", (1, 0))])
def test_rows_leave_the_state_when_they_cannot_match_any_more(make, run, kind, kept):
    """A left row waits 10 for the right, a right row 5 for the left; 15 where the other side is kept."""
    subtask = run(lambda: make("std.interval_join", type=kind, on=ON, lower="-5us", upper="10us"), [*STREAMS])
    for index in (0, 1):
        subtask.feed(batch_of(index, [Row("a", 1, 20)]), index=index)
    subtask.checkpoint()
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(30), index)
    subtask.checkpoint()
    assert (rows_in_state(subtask, "left"), rows_in_state(subtask, "right")) == kept
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(36), index)
    subtask.checkpoint()
    assert (rows_in_state(subtask, "left"), rows_in_state(subtask, "right")) == (0, 0)


def test_a_row_that_came_out_without_a_match_does_not_come_again_after_a_restore(make):
    stream = [
        Rows(0, (Row("a", 1, 5), Row("b", 1, 6))),
        EndOfEpoch(2),
        Mark(0, 20),
        Mark(1, 20),
        EndOfEpoch(3),
        Mark(0, 21),
        Mark(1, 21),
        EndOfEpoch(1),
    ]
    config = {"type": "full", "on": ON, "lower": "-30us", "upper": "10us"}
    with ParallelHarness(lambda: make("std.interval_join", **config), inputs=STREAMS) as harness:
        feed(harness, stream)
        assert harness.output.num_rows == 2


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"lower": "5", "upper": "10s"}, "lower", "has no unit"),
        ({"lower": "-5x"}, "lower", "unknown unit 'x'"),
        ({"lower": ""}, "lower", "is not a duration"),
        ({"lower": "--5s"}, "lower", "is not a duration"),
        ({"lower": "5s", "upper": "4s"}, "upper", "ends before it begins"),
        ({"time_column": "k"}, "time_column", "'k' of its own"),
        ({"on": [{"left": "k", "right": "a"}]}, "on[0].right", "string.*int64"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make("std.interval_join", **{"on": ON, "lower": "0s", "upper": "10s", **config}).output_schema(STREAMS)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("right", "message"), [(ArroyoSchema(RIGHT.schema), "no event time"), (with_updating(RIGHT), "cannot take back")]
)
def test_inputs_that_do_not_fit_are_refused(make, right, message):
    with pytest.raises(ConfigError, match=message):
        make("std.interval_join", on=ON, lower="0s", upper="1s").output_schema([LEFT, right])


def test_an_interval_join_shows_its_interval(make):
    shown = dict(make("std.interval_join", on=ON, lower="-5s", upper="90s").display().fields)
    assert (shown["lower"], shown["upper"]) == ("-5s", "90s")


def test_a_row_whose_matches_are_past_already_comes_out_alone_at_once(make):
    """It would be forgotten if the epoch ended before the next watermark."""
    config = {"type": "left", "on": ON, "lower": text(-8), "upper": text(-3)}
    with ParallelHarness(lambda: make("std.interval_join", **config), inputs=STREAMS, parallelism=1) as harness:
        feed(harness, [Mark(0, 0), Mark(1, 0), Rows(0, (Row("a", 1, 0),)), EndOfEpoch(1), EndOfEpoch(2)])
        assert rows_of(harness.output) == {("a", 1, 0, None, None, None, 0): 1}
