"""std.window_join against a slow and obvious model, and against DuckDB."""

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
    TIME,
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


@pytest.mark.usefixtures("limits")
@settings(max_examples=120, deadline=None)
@given(
    stream=steps(),
    kind=st.sampled_from(TYPES),
    offset=st.sampled_from([0, 3]),
    lateness=st.sampled_from([0, 7]),
    parallelism=st.integers(1, 2),
)
def test_joined_windows_hold_what_the_model_holds(make, stream, kind, offset, lateness, parallelism):
    def start(time_us: int) -> int:
        return (time_us - offset) // 10 * 10 + offset

    config = {"type": kind, "on": ON, "size": 10, "offset": offset, "allowed_lateness": lateness}
    with ParallelHarness(lambda: make("std.window_join", **config), inputs=STREAMS, parallelism=parallelism) as harness:
        feed(harness, stream)
        (left, right), late = sides_on_time(stream, lambda time_us: start(time_us) + 9 + lateness)
        expected = joined(
            left,
            right,
            kind=kind,
            is_match=lambda x, y: start(x.time_us) == start(y.time_us),
            added=lambda x, y: (begin := start((x or y).time_us), begin + 10, begin + 9),
        )
        assert rows_of(harness.output) == expected
        assert harness.counters.get("late_rows", 0) == late


@pytest.mark.parametrize("kind", TYPES)
def test_a_large_join_is_that_of_duckdb(make, kind):
    rows = many_rows()
    config = {"type": kind, "on": ON, "size": 500}
    with ParallelHarness(lambda: make("std.window_join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, cut(rows))
        found = rows_of(harness.output.drop_columns(["window_start", "window_end", "window_time"]))
    query = f"""
        SELECT l.k, l.a, epoch_us(l.at), r.key, r.a, epoch_us(r.seen) FROM left_rows l {kind} JOIN right_rows r
        ON l.k = r.key AND epoch_us(l.at) // 500 = epoch_us(r.seen) // 500
    """
    assert found == duckdb_rows(query, rows)
    assert found.total() > 500


def test_a_window_fires_when_the_watermarks_of_both_inputs_have_reached_its_end(make, run):
    subtask = run(make("std.window_join", on=ON, size=10), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 3)]))
    subtask.feed(batch_of(1, [Row("a", 2, 9)]), index=1)
    subtask.watermark(Watermark.event_time(10), 0)
    subtask.watermark(Watermark.event_time(9), 1)
    assert subtask.output.num_rows == 0
    subtask.watermark(Watermark.event_time(10), 1)
    assert rows_of(subtask.output) == {("a", 1, 3, "a", 2, 9, 0, 10, 9): 1}
    assert subtask.output.column_names == [
        "k",
        "a",
        "at",
        "key",
        "right_a",
        "seen",
        "window_start",
        "window_end",
        "window_time",
    ]
    assert subtask.output_schema.timestamp_column == "window_time"
    assert subtask.watermarks == [Watermark.event_time(9), Watermark.event_time(10)]


def windowed(name: str) -> ArroyoSchema:
    window = {"window_start": TIME, "window_end": TIME, "window_time": TIME}
    return ArroyoSchema(pa.schema({name: pa.string(), "n": pa.int64(), **window}), "window_time", (name,))


def windows_of(name: str, *rows: tuple[str | None, int, int | None, int]) -> pa.RecordBatch:
    def times(values: list[int | None]) -> pa.Array:
        return pa.array(values, pa.int64()).cast(TIME)

    ends = [row[3] for row in rows]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.string()),
            pa.array([row[1] for row in rows]),
            times([row[2] for row in rows]),
            times(ends),
            times([end - 1 for end in ends]),
        ],
        schema=windowed(name).schema,
    )


def test_windowed_inputs_are_joined_by_start_and_end_of_their_windows(make, run):
    subtask = run(
        make("std.window_join", type="full", on=[{"left": "k", "right": "key"}]), [windowed("k"), windowed("key")]
    )
    subtask.feed(
        windows_of("k", ("a", 1, 0, 10), ("a", 2, 5, 10), ("b", 3, 0, 10), (None, 4, 0, 10), ("c", 5, None, 10))
    )
    subtask.feed(windows_of("key", ("a", 6, 0, 10), ("b", 7, 10, 20), (None, 8, 0, 10), ("c", 9, None, 10)), index=1)
    subtask.end_of_data()
    assert rows_of(subtask.output) == {
        ("a", 1, "a", 6, 0, 10, 9): 1,
        ("a", 2, None, None, 5, 10, 9): 1,
        ("b", 3, None, None, 0, 10, 9): 1,
        (None, 4, None, None, 0, 10, 9): 1,
        ("c", 5, None, None, None, 10, 9): 1,
        (None, None, "b", 7, 10, 20, 19): 1,
        (None, None, None, 8, 0, 10, 9): 1,
        (None, None, "c", 9, None, 10, 9): 1,
    }
    assert subtask.output.column_names == ["k", "n", "key", "right_n", "window_start", "window_end", "window_time"]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windowed_inputs_without_keys_are_joined_by_their_windows_alone(make, parallelism):
    """Also over a restore: rows of one window meet, whatever their keys."""
    streams = (windowed("k"), windowed("key"))
    with ParallelHarness(
        lambda: make("std.window_join", type="full"), inputs=streams, parallelism=parallelism
    ) as harness:
        harness.process(windows_of("k", ("a", 1, 0, 10), ("b", 2, 0, 10), ("c", 3, 5, 10), ("d", 4, None, 10)), index=0)
        harness.checkpoint()
        harness.restore(parallelism=2)
        harness.process(windows_of("key", ("x", 5, 0, 10), (None, 6, 0, 10), ("y", 7, 10, 20)), index=1)
        harness.end_of_data()
        assert rows_of(harness.output) == {
            ("a", 1, "x", 5, 0, 10, 9): 1,
            ("a", 1, None, 6, 0, 10, 9): 1,
            ("b", 2, "x", 5, 0, 10, 9): 1,
            ("b", 2, None, 6, 0, 10, 9): 1,
            ("c", 3, None, None, 5, 10, 9): 1,
            ("d", 4, None, None, None, 10, 9): 1,
            (None, None, "y", 7, 10, 20, 19): 1,
        }


def test_without_keys_the_output_is_not_partitioned_by_columns_that_it_has(make):
    operator = make("std.window_join")
    assert operator.output_schema((windowed("k"), windowed("key"))).key_columns is None
    with pytest.raises(ConfigError, match="the left input has no windows"):
        operator.output_schema(STREAMS)


def test_windowed_inputs_are_late_when_their_own_window_has_fired(make, run):
    subtask = run(make("std.window_join", on=[{"left": "k"}]), [windowed("k"), windowed("k")])
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(10), index)
    subtask.feed(windows_of("k", ("a", 1, 0, 10), ("a", 1, 5, 15)))
    assert subtask.counters["late_rows"] == 1


def test_a_fired_window_does_not_fire_again_after_a_restore_at_another_parallelism(make):
    stream = [
        Rows(0, (Row("a", 1, 5), Row("b", 1, 5))),
        Mark(0, 10),
        Mark(1, 10),
        EndOfEpoch(3),
        Rows(1, (Row("a", 2, 5), Row("b", 2, 6))),
        EndOfEpoch(1),
    ]
    with ParallelHarness(lambda: make("std.window_join", type="full", on=ON, size=10), inputs=STREAMS) as harness:
        feed(harness, stream)
        assert harness.output.num_rows == 2
        assert harness.counters["late_rows"] == 2


def test_late_rows_go_to_their_side_output_on_request(make, run):
    subtask = run(make("std.window_join", on=ON, size=10, late="side_output"), [*STREAMS])
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(20), index)
    subtask.feed(batch_of(0, [Row("a", 1, 5), Row("a", 2, 25)]))
    subtask.feed(batch_of(1, [Row("b", 3, 19)]), index=1)
    assert rows_of(subtask.side_output("late_left")) == {("a", 1, 5): 1}
    assert rows_of(subtask.side_output("late_right")) == {("b", 3, 19): 1}
    assert subtask.counters["late_rows"] == 2


def test_a_popular_key_comes_in_batches_of_bounded_size(make, run):
    subtask = run(make("std.window_join", on=ON, size=10), [*STREAMS])
    for index in (0, 1):
        subtask.feed(batch_of(index, [Row("a", value, 1) for value in range(600)]), index=index)
    subtask.end_of_data()
    assert subtask.output.num_rows == 360_000
    sizes = [event.num_rows for event in subtask.events if isinstance(event, pa.RecordBatch)]
    assert max(sizes) <= 65_536


@pytest.mark.parametrize(("kind", "keys"), [("inner", ("k",)), ("left", ("k",)), ("right", ("key",)), ("full", None)])
def test_the_output_is_keyed_by_the_side_whose_rows_are_all_there(make, kind, keys):
    assert make("std.window_join", type=kind, on=ON, size=10).output_schema(STREAMS).key_columns == keys


def test_columns_that_both_inputs_have_get_the_prefixes(make):
    operator = make("std.window_join", on=ON, size=10, prefixes={"left": "l_", "right": "r_"})
    assert operator.output_schema(STREAMS).names[:6] == ["k", "l_a", "at", "key", "r_a", "seen"]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"on": [{"right": "key"}]}, "on[0].left", "missing"),
        ({"on": [{"left": "kk", "right": "key"}]}, "on[0].left", "no column 'kk'"),
        ({"on": [{"left": "k", "right": "kye"}]}, "on[0].right", "no column 'kye'"),
        ({"on": [{"left": "k"}]}, "on[0].right", "no column 'k'"),
        ({"on": [{"left": "k", "right": "a"}]}, "on[0].right", "'k' on the left is string, 'a' on the right is int64"),
        ({"on": [*ON, {"left": "k", "right": "a"}]}, "on[1].left", "listed twice"),
        ({"on": [*ON, {"left": "a", "right": "key"}]}, "on[1].right", "listed twice"),
        ({"size": 0}, "size", "more than zero"),
        ({"size": -1}, "size", "more than zero"),
        ({"allowed_lateness": -1}, "allowed_lateness", "negative"),
        ({"prefixes": {"right": ""}}, "prefixes", "two columns 'a'"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make("std.window_join", **{"on": ON, "size": 10, **config}).output_schema(STREAMS)
    assert raised.value.field == field


def test_a_misspelt_column_is_answered_with_the_nearest(make):
    with pytest.raises(ConfigError) as raised:
        make("std.window_join", on=[{"left": "k", "right": "kye"}], size=10).output_schema(STREAMS)
    assert raised.value.suggestion == "key"


def test_inputs_without_windows_need_a_size(make):
    with pytest.raises(ConfigError, match="left input has no windows") as raised:
        make("std.window_join", on=ON).output_schema(STREAMS)
    assert raised.value.field == "size"
    with pytest.raises(ConfigError, match="cannot be moved"):
        make("std.window_join", on=ON, offset=5)


def test_inputs_without_event_time_are_refused(make):
    with pytest.raises(ConfigError, match=r"right input has no event time.*std\.watermark"):
        make("std.window_join", on=ON, size=10).output_schema([LEFT, ArroyoSchema(RIGHT.schema)])


def test_a_column_with_the_name_of_a_window_column_is_refused(make):
    taken = ArroyoSchema(LEFT.schema.append(pa.field("window_end", TIME)), "at")
    with pytest.raises(ConfigError, match="'window_end' of its own"):
        make("std.window_join", on=ON, size=10).output_schema([taken, RIGHT])


def test_keys_that_cannot_be_compared_are_refused(make):
    lists = [ArroyoSchema(pa.schema({"k": pa.list_(pa.int64()), "at": TIME}), "at")] * 2
    with pytest.raises(ConfigError, match="cannot be compared") as raised:
        make("std.window_join", on=[{"left": "k"}], size=10).output_schema(lists)
    assert raised.value.field == "on[0].left"


def test_an_updating_input_is_refused(make):
    with pytest.raises(ConfigError, match="cannot take back rows"):
        make("std.window_join", on=ON, size=10).output_schema([LEFT, with_updating(RIGHT)])
