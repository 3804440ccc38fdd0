"""std.deduplicate against slow and obvious models."""

from __future__ import annotations

from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.errors import ConfigError

from .support.row_streams import (
    COLUMNS,
    STREAM,
    TIME,
    Batch,
    Mark,
    Row,
    Step,
    apply_updates,
    as_rows,
    batch_of,
    feed,
    in_order,
    streams,
)


def timely(steps: list[Step], *, ttl: int | None) -> list[tuple[list[Row], int | None]]:
    """The rows of each batch that are not late, and the time before which keys are forgotten."""
    found: list[tuple[list[Row], int | None]] = []
    cutoff: int | None = None
    for step in steps:
        if isinstance(step, Mark) and ttl is not None:
            cutoff = step.time_us - ttl if cutoff is None else max(cutoff, step.time_us - ttl)
        if isinstance(step, Batch):
            found.append(([row for row in step.rows if cutoff is None or row["at"] >= cutoff], cutoff))
    return found


def first_rows(steps: list[Step], *, ttl: int | None) -> list[Row]:
    seen: dict[Any, int] = {}
    found = []
    for rows, cutoff in timely(steps, ttl=ttl):
        for row in sorted(rows, key=lambda row: row["at"]):
            known = row["k"] in seen and (cutoff is None or seen[row["k"]] >= cutoff)
            if not known:
                seen[row["k"]] = row["at"]
                found.append(row)
    return found


def last_rows(steps: list[Step]) -> list[Row]:
    last: dict[Any, Row] = {}
    for rows, _ in timely(steps, ttl=None):
        for row in rows:
            if row["k"] not in last or row["at"] >= last[row["k"]]["at"]:
                last[row["k"]] = row
    return in_order(list(last.values()))


@settings(max_examples=80, deadline=None)
@given(steps=streams(), ttl=st.sampled_from([0, 5, 15]), parallelism=st.integers(1, 3))
def test_the_first_row_of_a_key_comes_once_within_its_time_to_live(make, steps, ttl, parallelism):
    operator = partial(make, "std.deduplicate", keys=["k"], ttl=ttl)
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        expected = first_rows(steps, ttl=ttl or None)
        assert in_order(as_rows(harness.output)) == in_order(expected)
        fed = sum(len(step.rows) for step in steps if isinstance(step, Batch))
        dropped = harness.counters.get("duplicates", 0) + harness.counters.get("late_rows", 0)
        assert dropped == fed - len(expected)


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(steps=streams(), parallelism=st.integers(1, 3))
def test_the_last_row_of_a_key_is_what_is_left(make, steps, parallelism):
    operator = partial(make, "std.deduplicate", keys=["k"], keep="last", ttl=0)
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        assert apply_updates(as_rows(harness.output)) == last_rows(steps)


def test_duckdb_finds_the_same_last_rows(make, run):
    rows = [{"k": f"k{place % 7}", "v": place, "at": (place * 37) % 101} for place in range(101)]
    subtask = run(make("std.deduplicate", keys=["k"], keep="last", ttl=0), [STREAM])
    for start in range(0, 101, 10):
        subtask.feed(batch_of(rows[start : start + 10]))
    table = duckdb.from_arrow(pa.Table.from_batches([batch_of(rows)]))
    expected = table.query(
        "batch", 'select k, v from batch qualify row_number() over (partition by k order by "at" desc) = 1'
    )
    left = apply_updates(as_rows(subtask.output))
    assert sorted((row["k"], row["v"]) for row in left) == sorted(expected.fetchall())


def test_a_change_is_taken_back_before_it_is_added_and_keeps_its_id(make, run):
    subtask = run(make("std.deduplicate", keys=["k"], keep="last", ttl=0), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 1}]), batch_of([{"k": "a", "v": 2, "at": 1}]))
    rows = as_rows(subtask.output)
    assert [(row["v"], row["_updating_meta"]["is_retract"]) for row in rows] == [(1, False), (1, True), (2, False)]
    assert len({row["_updating_meta"]["id"] for row in rows}) == 1


def test_an_older_row_does_not_replace_the_last_one(make, run):
    subtask = run(make("std.deduplicate", keys=["k"], keep="last", ttl=0), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 9}]), batch_of([{"k": "a", "v": 2, "at": 3}]))
    assert [row["v"] for row in as_rows(subtask.output)] == [1]
    assert subtask.counters["duplicates"] == 1


def test_a_key_is_new_again_after_its_time_to_live_and_rows_before_that_are_late(make, run):
    subtask = run(lambda: make("std.deduplicate", keys=["k"], ttl=10), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}]))
    subtask.watermark(Watermark.event_time(10))
    subtask.feed(batch_of([{"k": "a", "v": 2, "at": 10}]))
    subtask.watermark(Watermark.event_time(11))
    subtask.checkpoint()
    subtask.restore()
    subtask.feed(batch_of([{"k": "a", "v": 3, "at": 0}, {"k": "a", "v": 4, "at": 11}]))
    assert [row["v"] for row in as_rows(subtask.output)] == [1, 4]
    assert subtask.counters["late_rows"] == 1


def test_a_stream_without_event_time_is_deduplicated_by_arrival(make, run):
    stream = ArroyoSchema(pa.schema({"k": pa.string(), "v": pa.int64()}))
    batches = [pa.RecordBatch.from_pydict({"k": ["a", "b", "a"], "v": [1, 2, 3]}, schema=stream.schema) for _ in "xy"]
    first = run(make("std.deduplicate", keys=["k"], ttl=0), [stream]).feed(*batches)
    assert first.output.column("v").to_pylist() == [1, 2]
    last = run(make("std.deduplicate", keys=["k"], keep="last", ttl=0), [stream]).feed(batches[0])
    assert last.output.column("v").to_pylist() == [2, 3]


def test_rows_without_event_time_are_counted_and_dropped(make, run):
    subtask = run(make("std.deduplicate", keys=["k"]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": None}, {"k": "a", "v": 2, "at": 1}]))
    assert subtask.output.column("v").to_pylist() == [2]
    assert subtask.counters == {"null_event_times": 1}


def test_the_output_is_keyed_and_only_the_last_row_makes_it_updating(make):
    first = make("std.deduplicate", keys=["k"]).output_schema([STREAM])
    assert first == STREAM.with_keys(("k",))
    last = make("std.deduplicate", keys=["k"], keep="last").output_schema([STREAM])
    assert last.key_columns == ("k",)
    assert last.names == [*COLUMNS.names, "_updating_meta"]


@pytest.mark.parametrize(
    ("config", "stream", "field"),
    [
        ({"keys": ["z"]}, STREAM, "keys[0]"),
        ({"keys": ["k", "k"]}, STREAM, "keys[1]"),
        ({"keys": []}, STREAM, "keys"),
        ({"keys": ["k"], "ttl": -1}, STREAM, "ttl"),
        ({"keys": ["k"]}, ArroyoSchema(COLUMNS), "ttl"),
        ({"keys": ["k"]}, ArroyoSchema(pa.schema({"k": pa.list_(pa.int64()), "at": TIME}), "at"), "keys[0]"),
    ],
)
def test_a_wrong_config_names_its_field(make, config, stream, field):
    with pytest.raises(ConfigError) as caught:
        make("std.deduplicate", **config).output_schema([stream])
    assert caught.value.field == field


def test_an_updating_input_is_refused(make):
    updating = make("std.deduplicate", keys=["k"], keep="last").output_schema([STREAM])
    with pytest.raises(ConfigError, match="updating"):
        make("std.deduplicate", keys=["k"]).output_schema([updating])
