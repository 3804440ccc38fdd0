"""What all joins promise about keys that meet, and about subtasks that had come to different times."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.hashing import hash_columns, subtasks_of
from arroyo_core.api.updating import UPDATING_META

from .support.join_model import LEFT, ON, RIGHT, STREAMS, TIME, Row, batch_of

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
CONFIGS = {
    "std.window_join": {"type": "left", "on": ON, "size": 10},
    "std.join": {"type": "left", "on": ON, "ttl": 10},
    "std.interval_join": {"type": "left", "on": ON, "lower": "-5us", "upper": "5us"},
    "std.asof_join": {"type": "left", "on": ON, "tolerance": 10},
}


@pytest.mark.parametrize("is_dictionary", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("operator", CONFIGS)
def test_equal_keys_meet_whether_or_not_their_text_is_in_a_dictionary(make, operator, is_dictionary):
    streams = [
        ArroyoSchema(stream.schema.set(0, pa.field(stream.names[0], kind)), stream.timestamp_column)
        for stream, kind in zip(STREAMS, (DICTIONARY if each else pa.string() for each in is_dictionary), strict=True)
    ]
    names = [f"key {place}" for place in range(40)]
    with ParallelHarness(lambda: make(operator, **CONFIGS[operator]), inputs=streams, parallelism=3) as harness:
        for index in (0, 1):
            batch = batch_of(index, [Row(name, 1, 5) for name in names])
            harness.process(batch.cast(streams[index].schema), index)
            harness.checkpoint()
            harness.restore(2)
        harness.end_of_data()
        found = harness.output.filter(pc.is_valid(harness.output.column("key")))
    pairs = list(zip(found.column("k").to_pylist(), found.column("key").to_pylist(), strict=True))
    assert sorted(pairs) == sorted((name, name) for name in names)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int32()),
        pa.array([0.0, float("nan"), 1.5]),
        pa.array([b"x", b"y", b""]),
        pa.array([True, False, None]),
        pa.array([0, 1, 2], pa.int64()).cast(TIME),
        pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 2, "b": None}]),
        pa.array([1, 2, 3]).cast(pa.decimal128(22, 2)),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("operator", CONFIGS)
def test_keys_of_every_type_are_joined(make, operator, values):
    streams = [
        ArroyoSchema(stream.schema.set(0, pa.field(stream.names[0], values.type)), stream.timestamp_column)
        for stream in STREAMS
    ]
    with ParallelHarness(lambda: make(operator, **CONFIGS[operator]), inputs=streams, parallelism=2) as harness:
        for index, keys in enumerate((values, values.take(pa.array([2, 1, 0])))):
            batch = batch_of(index, [Row(None, place, 5) for place in range(3)])
            harness.process(batch.set_column(0, streams[index].schema.field(0), keys), index)
            harness.checkpoint()
            harness.restore(1)
        harness.end_of_data()
        rows = [row for row in harness.output.to_pylist() if row["right_a"] is not None]
    expected = Counter((x, 2 - y) for x in range(3) for y in range(3) if _same(values[x].as_py(), values[y].as_py()))
    assert Counter((row["a"], row["right_a"]) for row in rows) == expected


def _same(x: object, y: object) -> bool:
    """NULL equals nothing, and NaN itself."""
    return x is not None and (x == y or (x != x and y != y))


def keys_of_subtasks() -> tuple[str, str]:
    """A key of subtask 0 and one of subtask 1, of two."""
    names = [f"key {place}" for place in range(20)]
    owners = subtasks_of(hash_columns([pa.array(names)]), 2)
    return names[int(np.flatnonzero(owners == 0)[0])], names[int(np.flatnonzero(owners == 1)[0])]


@pytest.mark.parametrize("operator", CONFIGS)
def test_keys_whose_subtask_was_ahead_stay_ahead_when_the_subtasks_become_one(make, operator):
    """The watermark of subtask 1 is at 200, that of subtask 0 at 100; the one that takes over starts at 100."""
    behind, ahead = keys_of_subtasks()
    with ParallelHarness(lambda: make(operator, **CONFIGS[operator]), inputs=STREAMS, parallelism=2) as harness:
        harness.process(batch_of(0, [Row(key, 1, 150) for key in (behind, ahead)]))
        for index in (0, 1):
            harness.watermark(Watermark.event_time(100), index)
        for index in (0, 1):
            harness.watermark(Watermark.event_time(200), index, subtask=1)
        before = Counter(harness.output.column("k").to_pylist())
        assert before == ({behind: 1, ahead: 1} if operator == "std.join" else {ahead: 1})
        harness.checkpoint()
        harness.restore(1)
        for key in (behind, ahead):
            harness.process(batch_of(0, [Row(key, 2, 160)]))
            harness.process(batch_of(1, [Row(key, 3, 160)]), 1)
        assert harness.counters["late_rows"] == 2
        harness.checkpoint()
        harness.restore(3)
        harness.end_of_data()
        output = harness.output
        if UPDATING_META in output.column_names:
            output = output.filter(pc.invert(pc.struct_field(output.column(UPDATING_META).combine_chunks(), [0])))
        assert [row["a"] for row in output.to_pylist() if row["k"] == ahead] == [1]
        assert {row["a"] for row in output.to_pylist() if row["k"] == behind} == {1, 2}


def test_the_sides_of_the_model_have_different_names():
    """So that no test passes because a side took the other's columns."""
    assert set(LEFT.names) & set(RIGHT.names) == {"a"}
