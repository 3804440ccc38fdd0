"""Rows that all have event times of their own cost no step of Python each, in whichever epoch they come and go."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from arroyo_std import event_groups
from arroyo_testing.steps import count_steps

from arroyo_core.api import Watermark

from .support.row_streams import COLUMNS, STREAM, as_rows, batch_of

LAST = "last_value(v) over (partition by k order by v)"
OPERATORS = {
    "window_function": ("std.window_function", {"expression": LAST, "as": "found"}),
    "top_n": ("std.top_n", {"n": 2, "partition_by": ["at"], "order_by": [{"column": "v"}]}),
    "neighbors": (
        "std.neighbors",
        {
            "keys": ["k"],
            "values": [
                {"function": "lag", "column": "v", "as": "before"},
                {"function": "lead", "column": "v", "as": "behind"},
            ],
            "ttl": 1,
        },
    ),
    "process": ("std.process", {"function": "process_examples:CountUntilQuiet", "keys": ["k"]}),
    "window_join": ("std.window_join", {"on": [{"left": "k", "right": "k"}], "size": 1}),
}


def distinct(start: int, count: int) -> pa.RecordBatch:
    """Rows of `count` times from `start` on, in no order; every row has a key of its own."""
    times = start + np.random.default_rng(7).permutation(count)
    columns = [pa.array(times).cast(pa.string()), pa.array(times), pa.array(times)]
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, COLUMNS, strict=True)], schema=COLUMNS
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_the_steps_of_an_epoch_do_not_grow_with_the_times_in_it(make, run, name):
    operator, config = OPERATORS[name]
    if name == "process":
        config = {**config, "arguments": {"wait_us": 0}}
    inputs = 2 if name == "window_join" else 1

    def steps(times: int) -> int:
        subtask = run(partial(make, operator, **config), [STREAM] * inputs)

        def mark(time_us: int) -> None:
            for index in range(inputs):
                subtask.watermark(Watermark.event_time(time_us), index=index)

        def live() -> None:
            for epoch in range(2):
                for index in range(inputs):
                    subtask.feed(distinct(epoch * times // 2, times), index=index)
                mark(epoch * times // 2 + times // 4)
                subtask.checkpoint()
                if epoch == 0:
                    subtask.restore()
            mark(2 * times + 1)

        counted = count_steps(live)
        assert subtask.output.num_rows >= times
        return counted

    assert steps(8_000) < 1.5 * steps(80)


@pytest.mark.parametrize("name", ["window_function", "top_n"])
def test_many_due_rows_are_finished_in_parts_of_whole_times(make, run, monkeypatch, name):
    operator, config = OPERATORS[name]
    rows = [{"k": "ab"[place % 2], "v": place % 5, "at": place * 7 % 11} for place in range(60)]
    results = []
    for limit in (1_000, 7, 1):
        monkeypatch.setattr(event_groups, "FINISH_ROWS", limit)
        subtask = run(make(operator, **config), [STREAM]).feed(batch_of(rows))
        subtask.end_of_data()
        results.append(as_rows(subtask.output))
    assert results[0] == results[1] == results[2]


def test_rows_that_wait_for_many_watermarks_come_in_the_order_of_time(make, run):
    operator, config = OPERATORS["window_function"]
    subtask = run(partial(make, operator, **config), [STREAM])
    for start in range(0, 400, 40):
        subtask.feed(distinct(start, 100))
        subtask.watermark(Watermark.event_time(start + 10))
        if start % 160 == 0:
            subtask.checkpoint()
            subtask.restore()
    subtask.end_of_data()
    times = [row["at"] for row in as_rows(subtask.output)]
    assert times == sorted(times)
    assert set(times) == set(range(460))
