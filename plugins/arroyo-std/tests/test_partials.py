"""Partial aggregates before a shuffle: the results are those of the rows themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids, with_updating

from .support.window_model import AGGREGATES, STREAM, EndOfEpoch, Mark, Row, Rows, as_rows, batch_of, feed, streams

#: Those whose states are smaller than the rows.
COMPACT = [each for each in AGGREGATES if each["function"] != "count_distinct"]
WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("std.tumbling_window", {"size": 10, "offset": 3}),
    ("std.sliding_window", {"size": 10, "slide": 5}),
    ("std.session_window", {"gap": 10}),
]


def feed_partials(run, operator, partial, steps) -> Any:
    """The operator behind a partial one, over a stream; made again with it at every epoch."""
    front = run(partial, [STREAM])
    back = run(operator, [front.output_schema])
    for step in steps:
        if isinstance(step, Rows):
            front.process(batch_of(step.rows))
            for batch in front.take_output().to_batches():
                back.process(batch)
        elif isinstance(step, Mark):
            for each in (front, back):
                each.watermark(Watermark.event_time(step.time_us))
        else:
            for each in (front, back):
                each.checkpoint()
                if step.is_restored:
                    each.restore()
    back.end_of_data()
    return front, back


@pytest.mark.parametrize(("operator", "shape"), WINDOWS)
@settings(max_examples=30, deadline=None)
@given(steps=streams(), keys=st.sampled_from([[], ["k"]]))
def test_windows_of_partial_aggregates_are_those_of_rows(make, run, operator, shape, steps, keys):
    def fresh():
        return make(operator, keys=keys, aggregates=COMPACT, allowed_lateness=2, **shape)

    with run(fresh, [STREAM]) as alone:
        feed(alone, steps)
        expected = as_rows(alone.output)
        front, back = feed_partials(run, fresh, lambda: fresh().partial([STREAM]), steps)
        assert as_rows(back.output) == expected
        if not any(isinstance(step, EndOfEpoch) and step.is_restored for step in steps):
            assert back.counters.get("late_rows", 0) == alone.counters.get("late_rows", 0)
            assert front.counters.get("null_event_times", 0) == alone.counters.get("null_event_times", 0)
    for harness in (front, back):
        harness.close()


def test_a_batch_becomes_one_row_for_each_key_and_window(make, run):
    partial = make("std.tumbling_window", size=10, keys=["k"], aggregates=COMPACT).partial([STREAM])
    front = run(partial, [STREAM])
    front.process(batch_of([Row("a", number, number) for number in range(20)] * 50))
    assert front.output.num_rows == 2
    assert front.output.column("_rows").to_pylist() == [500, 500]


def test_a_batch_becomes_one_row_for_each_session_but_for_rows_that_may_be_late(make, run):
    partial = make("std.session_window", gap=10, keys=["k"], aggregates=COMPACT).partial([STREAM])
    front = run(partial, [STREAM])
    front.watermark(Watermark.event_time(105))
    front.process(batch_of([Row("a", 1, time) for time in (90, 94, 95, 96, 99, 120, 121)]))
    # The sessions of 96 and 120 are open here, and so they are behind the shuffle.
    assert front.output.column("_rows").to_pylist() == [1, 1, 1, 2, 2]


def test_no_row_is_joined_while_it_is_not_known_what_may_be_late(make, run):
    partial = make("std.session_window", gap=10, keys=["k"], aggregates=COMPACT).partial([STREAM])
    front = run(partial, [STREAM])
    front.process(batch_of([Row("a", 1, time) for time in (1, 2, 3)]))
    assert front.output.column("_rows").to_pylist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("operator", "config"),
    [
        ("std.tumbling_window", {"size": 10, "aggregates": [{"function": "median", "column": "v"}]}),
        ("std.tumbling_window", {"size": 10, "aggregates": COMPACT, "time": "processing"}),
        ("std.tumbling_window", {"size": 10, "aggregates": COMPACT, "late": "side_output"}),
        ("std.session_window", {"gap": 10, "aggregates": COMPACT, "late": "side_output"}),
        ("std.updating_aggregate", {"aggregates": [{"function": "list", "column": "v"}]}),
    ],
)
def test_rows_themselves_are_shuffled_where_states_would_be_no_smaller_or_lose_something(make, operator, config):
    assert make(operator, **config).partial([STREAM]) is None


@pytest.mark.parametrize("is_updating", [False, True])
def test_changing_results_of_partial_aggregates_are_those_of_rows(make, run, is_updating):
    aggregates = [each for each in COMPACT if each["function"] in ("count", "sum")]
    stream = with_updating(STREAM) if is_updating else STREAM

    def fresh():
        return make("std.updating_aggregate", keys=["k"], aggregates=aggregates)

    def updates(rows: list[Row], *, is_retract: bool) -> pa.RecordBatch:
        batch = batch_of(rows)
        return make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["k"])) if is_updating else batch

    front = run(lambda: fresh().partial([stream]), [stream])
    back, alone = run(fresh, [front.output_schema]), run(fresh, [stream])
    rows = [Row("a", 1, 1), Row("b", 2, None), Row("a", None, 3)]
    batches = [updates(rows, is_retract=False), updates(rows[:2], is_retract=is_updating)]
    for batch in batches:
        alone.process(batch)
        front.process(batch)
        for part in front.take_output().to_batches():
            back.process(part)
        for each in (alone, front, back):
            each.checkpoint()
            each.restore()
    assert back.output.equals(alone.output)
    assert UPDATING_META in back.output.column_names


def test_the_type_of_the_rows_travels_with_the_partial_aggregates(make):
    stream = ArroyoSchema(pa.schema({"at": pa.timestamp("ns"), "v": pa.decimal128(9, 2)}), "at")
    operator = make("std.tumbling_window", size=10, aggregates=[{"function": "sum", "column": "v", "as": "total"}])
    partial = operator.partial([stream])
    assert operator.output_schema([partial.output_schema([stream])]) == operator.output_schema([stream])
