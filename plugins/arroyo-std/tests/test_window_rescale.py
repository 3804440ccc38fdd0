"""Windows and updating aggregates when the parallelism changes: the rows are those of one subtask."""

from __future__ import annotations

from typing import Any

import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Watermark
from arroyo_core.api.updating import UPDATING_META

from .support.window_model import AGGREGATES, STREAM, EndOfEpoch, Mark, Row, Rows, as_rows, batch_of, feed

COUNT = [{"function": "count", "as": "n"}]
NAMES = [None, "", *(f"key-{number}" for number in range(9))]
ROWS = st.lists(
    st.builds(Row, st.sampled_from(NAMES), st.none() | st.integers(-3, 3), st.integers(-20, 60)), max_size=12
).map(lambda rows: Rows(tuple(rows)))
STEPS = st.lists(ROWS | ROWS | st.builds(Mark, st.integers(-30, 60)) | st.just(EndOfEpoch(True)), max_size=12)
WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("std.tumbling_window", {"size": 10}),
    ("std.sliding_window", {"size": 10, "slide": 5}),
    ("std.session_window", {"gap": 10}),
]


@pytest.mark.parametrize(("operator", "shape"), WINDOWS)
@settings(max_examples=20, deadline=None)
@given(steps=STEPS, widths=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_windows_are_the_same_at_any_parallelism(make, run, operator, shape, steps, widths):
    def fresh():
        return make(operator, keys=["k"], aggregates=AGGREGATES, **shape)

    with run(fresh, [STREAM]) as alone:
        feed(alone, steps)
        expected = as_rows(alone.output)
    with ParallelHarness(fresh, inputs=[STREAM], parallelism=widths[0]) as many:
        feed(many, steps, widths=widths)
        assert as_rows(many.output) == expected


@pytest.fixture
def subtasks(make):
    opened = []

    def subtasks(operator: str, *, parallelism: int, **config: Any) -> ParallelHarness:
        opened.append(
            ParallelHarness(lambda: make(operator, keys=["k"], **config), inputs=[STREAM], parallelism=parallelism)
        )
        return opened[-1]

    yield subtasks
    for each in opened:
        each.close()


@pytest.mark.parametrize(("operator", "shape"), WINDOWS)
@pytest.mark.parametrize("widths", [(2, 3, 1), (2, 1, 3), (3, 2, 2)])
def test_subtasks_that_disagree_on_time_lose_and_repeat_no_window(subtasks, operator, shape, widths):
    """Each subtask may have watermarks of its own: then keys differ in how far their windows have fired."""
    many = subtasks(operator, parallelism=widths[0], aggregates=COUNT, **shape)
    many.process(batch_of([Row(name, 1, time) for name in NAMES for time in (1, 6, 11)]))
    many.watermark(Watermark.event_time(4), subtask=0)
    many.watermark(Watermark.event_time(16), subtask=1)
    many.checkpoint()
    many.restore(widths[1])
    many.watermark(Watermark.event_time(12))
    many.checkpoint()
    many.restore(widths[2])
    many.end_of_data()
    alone = subtasks(operator, parallelism=1, aggregates=COUNT, **shape)
    alone.process(batch_of([Row(name, 1, time) for name in NAMES for time in (1, 6, 11)]))
    alone.end_of_data()
    assert as_rows(many.output) == as_rows(alone.output)


def test_a_late_row_of_a_fast_subtask_stays_late_after_a_rescale(subtasks):
    many = subtasks("std.tumbling_window", parallelism=2, size=10, aggregates=COUNT)
    rows = batch_of([Row(name, 1, 5) for name in NAMES])
    many.process(rows)
    many.watermark(Watermark.event_time(4), subtask=0)
    many.watermark(Watermark.event_time(10), subtask=1)
    fast = many.output.num_rows
    assert 0 < fast < len(NAMES)
    many.checkpoint()
    many.restore(3)
    many.process(rows)
    many.checkpoint()
    many.restore(1)
    assert many.counters["late_rows"] == fast
    many.end_of_data()
    found = {row["k"]: row["n"] for row in as_rows(many.output)}
    assert len(as_rows(many.output)) == len(NAMES)
    assert sorted(found.values()) == sorted([1] * fast + [2] * (len(NAMES) - fast))


@settings(max_examples=20, deadline=None)
@given(epochs=st.lists(ROWS, max_size=6), widths=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_changing_results_are_the_same_at_any_parallelism(make, epochs, widths):
    aggregates = [each for each in AGGREGATES if each["function"] != "last"]

    def fresh():
        return make("std.updating_aggregate", keys=["k"], aggregates=aggregates)

    many = ParallelHarness(fresh, inputs=[STREAM], parallelism=widths[0])
    try:
        for epoch, step in enumerate(epochs, start=1):
            many.process(batch_of(step.rows))
            many.checkpoint()
            many.restore(widths[epoch % len(widths)])
        many.end_of_data()
        live: dict[Any, Any] = {}
        for row in many.output.to_pylist():
            is_retract = row.pop(UPDATING_META)["is_retract"]
            key = row.pop("k")
            if is_retract:
                assert live.pop(key) == row
            else:
                assert key not in live
                live[key] = row
    finally:
        many.close()
    alone = ParallelHarness(fresh, inputs=[STREAM])
    for step in epochs:
        alone.process(batch_of(step.rows))
    alone.end_of_data()
    expected = {row.pop("k"): row for row in alone.output.drop_columns([UPDATING_META]).to_pylist()}
    alone.close()
    assert live == expected
