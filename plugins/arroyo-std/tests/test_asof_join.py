"""std.asof_join against a slow and obvious model, and against DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

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
    many_rows,
    rows_of,
    side_by_side,
    sides_on_time,
    steps,
)


def model(left: list[Row], right: list[Row], *, kind: str, tolerance: int, direction: str) -> Counter[tuple[Any, ...]]:
    """For each left row the nearest right row in order of arrival: the last of those of one time."""
    sign = 1 if direction == "backward" else -1
    out: Counter[tuple[Any, ...]] = Counter()
    for row in left:
        best: Row | None = None
        for other in right:
            distance = sign * (row.time_us - other.time_us)
            is_match = row.key is not None and other.key == row.key and 0 <= distance <= tolerance
            if is_match and (best is None or distance <= sign * (row.time_us - best.time_us)):
                best = other
        if best is not None or kind == "left":
            out[side_by_side(row, best)] += 1
    return out


@pytest.mark.usefixtures("limits")
@settings(max_examples=120, deadline=None)
@given(
    stream=steps(),
    kind=st.sampled_from(["inner", "left"]),
    tolerance=st.sampled_from([0, 6, 100]),
    direction=st.sampled_from(["backward", "forward"]),
    parallelism=st.integers(1, 2),
)
def test_each_row_gets_the_nearest_row_there_was(make, stream, kind, tolerance, direction, parallelism):
    config = {"on": ON, "type": kind, "tolerance": tolerance, "direction": direction}
    with ParallelHarness(lambda: make("std.asof_join", **config), inputs=STREAMS, parallelism=parallelism) as harness:
        feed(harness, stream)
        (left, right), late = sides_on_time(stream, lambda time_us: time_us)
        assert rows_of(harness.output) == model(left, right, kind=kind, tolerance=tolerance, direction=direction)
        assert harness.counters.get("late_rows", 0) == late


@settings(max_examples=40, deadline=None)
@given(stream=steps(), direction=st.sampled_from(["backward", "forward"]))
def test_no_row_is_behind_the_watermark_that_went_before_it(make, run, stream, direction):
    subtask = run(lambda: make("std.asof_join", on=ON, tolerance=8, direction=direction), [*STREAMS])
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
            assert event.column("at").cast(pa.int64()).to_numpy().min() >= watermark_us


@pytest.mark.parametrize(("direction", "comparison"), [("backward", ">="), ("forward", "<=")])
def test_a_large_join_is_that_of_duckdb(make, direction, comparison):
    rows = many_rows()
    config = {"on": ON, "tolerance": 10_000, "direction": direction}
    with ParallelHarness(lambda: make("std.asof_join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, cut(rows))
        found = rows_of(harness.output)
    query = f"""
        SELECT l.k, l.a, epoch_us(l.at), r.key, r.a, epoch_us(r.seen)
        FROM left_rows l ASOF LEFT JOIN right_rows r ON l.k = r.key AND l.at {comparison} r.seen
    """
    assert found == duckdb_rows(query, rows)
    assert 0 < sum(row[3] is None for row in found) < 600


def test_a_row_waits_until_the_watermark_has_passed_its_time(make, run):
    subtask = run(make("std.asof_join", on=ON, tolerance=10), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 20), Row("b", 2, 20), Row(None, 3, 20)]))
    assert rows_of(subtask.take_output()) == {(None, 3, 20, None, None, None): 1}
    subtask.feed(batch_of(1, [Row("a", 4, 15), Row("a", 5, 21), Row("b", 6, 9)]), index=1)
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(20), index)
    assert subtask.output.num_rows == 0
    subtask.feed(batch_of(1, [Row("a", 7, 20), Row("a", 8, 20)]), index=1)
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(21), index)
    assert rows_of(subtask.output) == {("a", 1, 20, "a", 8, 20): 1, ("b", 2, 20, None, None, None): 1}
    assert subtask.output_schema.timestamp_column == "at"
    assert subtask.output_schema.key_columns == ("k",)


def test_event_time_follows_a_column_that_gets_a_prefix(make):
    right = ArroyoSchema(LEFT.schema, "at")
    found = make("std.asof_join", on=[{"left": "k"}], tolerance=1, prefixes={"left": "l_"}).output_schema([LEFT, right])
    assert found.timestamp_column == "l_at"
    assert found.key_columns == ("l_k",)


def test_a_row_that_came_out_does_not_come_again_after_a_restore(make):
    stream = [
        Rows(0, (Row("a", 1, 5), Row("b", 1, 6))),
        EndOfEpoch(2),
        Mark(0, 6),
        Mark(1, 6),
        EndOfEpoch(3),
        Mark(0, 7),
        Mark(1, 7),
        EndOfEpoch(1),
    ]
    with ParallelHarness(lambda: make("std.asof_join", on=ON, tolerance=5), inputs=STREAMS) as harness:
        feed(harness, stream)
        assert harness.output.num_rows == 2


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"tolerance": -1}, "tolerance", "negative"),
        ({"type": "full"}, "type", "do not come out by themselves"),
        ({"type": "right"}, "type", "do not come out by themselves"),
        ({"on": [{"left": "k", "right": "a"}]}, "on[0].right", "string.*int64"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make("std.asof_join", **{"on": ON, "tolerance": 10, **config}).output_schema(STREAMS)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("right", "message"), [(ArroyoSchema(RIGHT.schema), "no event time"), (with_updating(RIGHT), "cannot take back")]
)
def test_inputs_that_do_not_fit_are_refused(make, right, message):
    with pytest.raises(ConfigError, match=message):
        make("std.asof_join", on=ON, tolerance=1).output_schema([LEFT, right])
