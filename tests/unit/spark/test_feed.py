"""The rows of several DataFrames, taken apart for their sources, which read them in threads of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import GivenPosition
from arroyo_core.spark.feed import NO_INPUT, Feed, GivenInputs, InputColumns

LEFT = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
RIGHT = pa.schema([("word", pa.string())])
INPUTS = GivenInputs(
    columns=(InputColumns("left", 2, LEFT), InputColumns("right", 4, RIGHT)),
    ended=("over",),
    positions={"left": GivenPosition("q", 7)},
)


def batch(*rows):
    """As Spark sends it: times of the session's zone, and large strings."""
    return pa.record_batch(
        {
            "target": pa.array([0] * len(rows), pa.int32()),
            "input": pa.array([number for number, _ in rows], pa.int32()),
            "c0": pa.array([value if number == 0 else None for number, value in rows], pa.int64()),
            "c1": pa.array(
                [value if number == 0 else None for number, value in rows], pa.timestamp("us", "Asia/Tokyo")
            ),
            "c2": pa.array([str(value) if number == 1 else None for number, value in rows], pa.large_string()),
        }
    )


def test_each_source_gets_its_rows_with_the_declared_types_and_its_position():
    feed = Feed(iter([batch((NO_INPUT, None), (0, 1), (0, 2))]), INPUTS)
    given = feed.given()
    assert (given["left"].position, given["right"].position) == (GivenPosition("q", 7), GivenPosition())
    assert list(given["over"].batches) == []
    (rows,) = given["left"].batches
    assert rows.schema == LEFT
    assert rows.column("n").to_pylist() == [1, 2]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 9)), min_size=1, max_size=8), max_size=12))
def test_sources_in_threads_get_all_their_rows_in_order_whatever_the_mixture(batches):
    feed = Feed((batch(*rows) for rows in batches), INPUTS)
    given = feed.given()

    def values(name, column):
        return [value for part in given[name].batches for value in part.column(column).to_pylist()]

    with ThreadPoolExecutor(2) as threads:
        left, right = threads.submit(values, "left", "n"), threads.submit(values, "right", "word")
        assert left.result(10) == [value for rows in batches for number, value in rows if number == 0]
        assert right.result(10) == [str(value) for rows in batches for number, value in rows if number == 1]


def test_a_source_that_stops_reading_does_not_hold_up_the_others():
    feed = Feed(iter([batch((0, 1)), batch((0, 2)), batch((1, 3)), batch((0, 4))]), INPUTS)
    given = feed.given()
    found = []
    reader = threading.Thread(
        target=lambda: found.extend(part.column("word").to_pylist() for part in given["right"].batches)
    )
    next(given["left"].batches)
    reader.start()
    given["left"].batches.close()
    reader.join(10)
    assert found == [["3"]]


def test_what_nobody_has_read_is_read_at_the_end():
    batches = iter([batch((0, 1)), batch((0, 2))])
    assert list(Feed(batches, INPUTS).rest()) == []
    assert next(batches, None) is None
