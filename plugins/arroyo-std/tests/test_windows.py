"""std.tumbling_window and std.sliding_window against a slow and obvious model."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, Watermark
from arroyo_core.errors import ConfigError

from .support.window_model import (
    AGGREGATES,
    STREAM,
    TIME,
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

COUNT = [{"function": "count", "as": "n"}]


def model(
    steps, *, size: int, slide: int, offset: int, lateness: int, keys: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """Every window of every key with the rows that came before it fired."""

    def first_bin(time_us: int) -> int:
        return (time_us - offset) // slide * slide + offset

    windows: dict[tuple[Any, int], list[Row]] = {}
    watermark: int | None = None
    late = 0
    for step in steps:
        if isinstance(step, Mark):
            watermark = step.time_us if watermark is None else max(watermark, step.time_us)
        for row in step.rows if isinstance(step, Rows) else ():
            if row.time_us is None:
                continue
            ends = range(first_bin(row.time_us) + slide, first_bin(row.time_us) + size + 1, slide)
            open_ends = [end for end in ends if watermark is None or end + lateness > watermark]
            late += not open_ends
            for end in open_ends:
                windows.setdefault((row.key if keys else None, end), []).append(row)
    found = []
    for (key, end), rows in windows.items():
        times = {"window_start": end - size, "window_end": end, "window_time": end - 1}
        found.append({**({"k": key} if keys else {}), **times, **aggregate(rows)})
    return sorted(found, key=lambda row: (row["window_end"], row["window_start"], str(row.get("k")))), late


@pytest.mark.usefixtures("limits")
@settings(max_examples=100, deadline=None)
@given(
    steps=streams(),
    slide=st.sampled_from([10, 5, 2]),
    offset=st.sampled_from([0, 3]),
    lateness=st.sampled_from([0, 7]),
    keys=st.sampled_from([[], ["k"]]),
)
def test_windows_hold_what_the_model_holds(make, run, steps, slide, offset, lateness, keys):
    shape = {"size": 10, "offset": offset} | ({"slide": slide} if slide != 10 else {})
    operator = "std.tumbling_window" if slide == 10 else "std.sliding_window"
    config = {**shape, "keys": keys, "aggregates": AGGREGATES, "allowed_lateness": lateness}
    with run(lambda: make(operator, **config), [STREAM]) as harness:
        feed(harness, steps)
        expected, late = model(steps, size=10, slide=slide, offset=offset, lateness=lateness, keys=keys)
        assert as_rows(harness.output) == expected
        if not any(isinstance(step, EndOfEpoch) and step.is_restored for step in steps):
            assert harness.counters.get("late_rows", 0) == late
        check_order(harness)


def test_a_window_fires_when_the_watermark_reaches_its_end_and_not_before(make, run):
    subtask = run(make("std.tumbling_window", size=10, aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 0), Row("a", 1, 9), Row("a", 1, 10)]))
    subtask.watermark(Watermark.event_time(9))
    assert subtask.output.num_rows == 0
    subtask.watermark(Watermark.event_time(10))
    assert as_rows(subtask.output) == [{"window_start": 0, "window_end": 10, "window_time": 9, "n": 2}]
    assert subtask.watermarks == [Watermark.event_time(9), Watermark.event_time(10)]


def test_a_boundary_watermark_does_not_fire_a_window_again_after_a_restore(make, run):
    subtask = run(lambda: make("std.tumbling_window", size=10, aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 5)]))
    subtask.checkpoint()
    subtask.restore()
    subtask.watermark(Watermark.event_time(10))
    subtask.checkpoint()
    subtask.restore()
    subtask.feed(batch_of([Row("a", 1, 15), Row("a", 1, 5)]))
    subtask.end_of_data()
    assert [row["n"] for row in as_rows(subtask.output)] == [1, 1]
    assert subtask.counters["late_rows"] == 1


@pytest.mark.parametrize("has_watermark", [False, True])
def test_rows_are_not_late_when_event_time_starts_over(make, run, has_watermark):
    """A source that is read from its beginning again brings old rows, behind no watermark or an older one."""
    subtask = run(lambda: make("std.tumbling_window", size=10, keys=["k"], aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 5)]))
    subtask.end_of_data()
    subtask.checkpoint()
    subtask.restore_without_time()
    if has_watermark:
        subtask.watermark(Watermark.event_time(3))
    subtask.feed(batch_of([Row("a", 1, 6)]))
    subtask.end_of_data()
    assert subtask.counters.get("late_rows", 0) == 0
    assert [row["n"] for row in as_rows(subtask.output)] == [1, 1]


def test_rows_without_event_time_are_counted_and_dropped(make, run):
    subtask = run(make("std.tumbling_window", size=10, aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, None), Row("a", 1, 1)]))
    subtask.end_of_data()
    assert subtask.output.column("n").to_pylist() == [1]
    assert subtask.counters == {"null_event_times": 1}


def test_only_the_change_of_an_epoch_is_written_and_old_parts_are_merged(make, run):
    subtask = run(lambda: make("std.tumbling_window", size=1000, keys=["k"], aggregates=AGGREGATES), [STREAM])
    parts = []
    for epoch in range(1, 40):
        subtask.feed(batch_of([Row("a", epoch, epoch)]))
        parts.append(len(subtask.operator.store._view.get_batches(0)))
        subtask.checkpoint()
        subtask.restore()
    assert max(parts) <= 17
    subtask.end_of_data()
    (row,) = as_rows(subtask.output)
    assert (row["n"], row["total"], row["kinds"], row["newest"]) == (39, sum(range(1, 40)), 39, 39)


@pytest.mark.parametrize(
    ("operator", "shape"), [("std.tumbling_window", {"size": 10}), ("std.session_window", {"gap": 10})]
)
def test_late_rows_can_go_to_a_side_output(make, run, operator, shape):
    subtask = run(make(operator, aggregates=COUNT, late="side_output", **shape), [STREAM])
    subtask.watermark(Watermark.event_time(20))
    rows = [Row("a", 1, 5), Row("b", 2, 25), Row("c", 3, 9)]
    subtask.feed(batch_of(rows))
    subtask.end_of_data()
    assert subtask.side_output("late").to_batches()[0].equals(batch_of([rows[0], rows[2]]))
    assert subtask.output.column("n").to_pylist() == [1]
    assert subtask.counters["late_rows"] == 2


def test_idleness_passes_and_fires_nothing(make, run):
    subtask = run(make("std.tumbling_window", size=10, aggregates=COUNT), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 1)]))
    subtask.watermark(Watermark.idle())
    assert subtask.output.num_rows == 0
    assert subtask.watermarks == [Watermark.idle()]


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_event_times_of_every_unit_make_the_same_windows(make, run, unit, factor):
    schema = ArroyoSchema(pa.schema({"at": pa.timestamp(unit)}), "at")
    subtask = run(make("std.tumbling_window", size=10_000_000, aggregates=COUNT), [schema])
    times = pa.array([second * factor for second in (-1, 0, 9, 10)], pa.int64()).cast(pa.timestamp(unit))
    subtask.feed(pa.RecordBatch.from_arrays([times], schema=schema.schema))
    subtask.end_of_data()
    starts = [row["window_start"] // 1_000_000 for row in as_rows(subtask.output)]
    assert starts == [-10, 0, 10]
    assert subtask.output_schema.timestamp_column == "window_time"


def test_windows_of_windows_use_the_last_moment_of_each_window(make, run):
    inner = run(make("std.tumbling_window", size=10, keys=["k"], aggregates=COUNT), [STREAM])
    inner.feed(batch_of([Row("a", 1, 1), Row("b", 1, 2), Row("b", 1, 3)]))
    inner.watermark(Watermark.event_time(10))
    outer = run(
        make("std.tumbling_window", size=10, aggregates=[{"function": "max", "column": "n", "as": "most"}]),
        [inner.output_schema],
    )
    for event in inner.events:
        outer.watermark(event) if isinstance(event, Watermark) else outer.process(event)
    assert as_rows(outer.output) == [{"window_start": 0, "window_end": 10, "window_time": 9, "most": 2}]


def test_processing_time_windows_fire_by_the_clock(make, run):
    clock = FakeClock(now_us=1_000_000_003)
    schema = ArroyoSchema(STREAM.schema)
    subtask = run(
        lambda: make("std.tumbling_window", size=10, keys=["k"], aggregates=COUNT, time="processing"),
        [schema],
        clock=clock,
    )
    assert subtask.operator.tick_interval() is not None
    subtask.feed(batch_of([Row("a", 1, None), Row("a", 1, 7)]))
    clock.advance(6e-6)
    subtask.tick()
    assert subtask.output.num_rows == 0
    clock.advance(1e-6)
    subtask.tick()
    (row,) = as_rows(subtask.output)
    assert (row["window_start"], row["window_end"], row["n"]) == (1_000_000_000, 1_000_000_010, 2)
    assert subtask.watermarks[-1] == Watermark.event_time(1_000_000_010)
    subtask.feed(batch_of([Row("b", 1, 7)]))
    subtask.checkpoint()
    subtask.restore()
    subtask.end_of_data()
    assert subtask.output.num_rows == 2
    assert subtask.watermarks[-1] == Watermark.event_time(END_OF_TIME_US)


@pytest.mark.parametrize(
    ("operator", "config", "field", "message"),
    [
        ("std.tumbling_window", {"size": 0}, "size", "more than zero"),
        ("std.tumbling_window", {"size": -5}, "size", "more than zero"),
        ("std.tumbling_window", {"size": 10, "allowed_lateness": -1}, "allowed_lateness", "negative"),
        ("std.tumbling_window", {"size": 10, "late": "side_output", "time": "processing"}, "late", "never"),
        ("std.tumbling_window", {"size": 10, "time": "processing", "allowed_lateness": 1}, "allowed_lateness", "never"),
        ("std.tumbling_window", {"size": 10, "keys": ["kk"]}, "keys[0]", "no column 'kk'"),
        ("std.tumbling_window", {"size": 10, "keys": ["k", "k"]}, "keys[1]", "listed twice"),
        ("std.tumbling_window", {"size": 10, "aggregates": [*COUNT, *COUNT]}, "aggregates[1].as", "already"),
        (
            "std.tumbling_window",
            {"size": 10, "aggregates": [{"function": "count", "as": "window_end"}]},
            "aggregates[0].as",
            "already",
        ),
        (
            "std.tumbling_window",
            {"size": 10, "aggregates": [{"function": "sum", "column": "k"}]},
            "aggregates[0].column",
            "takes a number",
        ),
        ("std.sliding_window", {"size": 10, "slide": 0}, "slide", "more than zero"),
        ("std.sliding_window", {"size": 10, "slide": 3}, "slide", "3us does not divide 10us"),
        ("std.sliding_window", {"size": 10, "slide": 20}, "slide", "does not divide"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, operator, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make(operator, **config).output_schema([STREAM])
    assert raised.value.field == field


def test_a_stream_without_event_time_is_refused(make):
    with pytest.raises(ConfigError, match=r"std\.watermark"):
        make("std.tumbling_window", size=10).output_schema([ArroyoSchema(STREAM.schema)])


def test_a_key_called_like_a_column_of_the_window_is_refused(make):
    stream = ArroyoSchema(pa.schema({"window_start": TIME}), "window_start")
    with pytest.raises(ConfigError, match="rename the key"):
        make("std.tumbling_window", size=10, keys=["window_start"]).output_schema([stream])


def test_without_aggregates_there_is_one_row_for_each_key_and_window(make, run):
    subtask = run(make("std.tumbling_window", size=10, keys=["k"]), [STREAM])
    subtask.feed(batch_of([Row("a", 1, 1), Row("a", 1, 2), Row(None, 1, 3)]))
    subtask.end_of_data()
    assert [row["k"] for row in as_rows(subtask.output)] == [None, "a"]
