"""std.process: state and timers by key against a slow and obvious model."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest
from arroyo_std import Process
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st
from process_examples import Countdown, CountUntilQuiet

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, Watermark
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ConfigError, OperatorError

from .support.row_streams import STREAM, Batch, Mark, Row, Step, as_rows, batch_of, feed, in_order, streams

QUIET = {"function": "process_examples:CountUntilQuiet", "arguments": {"wait_us": 7}, "keys": ["k"]}


def model(steps: list[Step], *, wait: int) -> list[Row]:
    counts: dict[Any, int] = {}
    timers: set[tuple[Any, int]] = set()
    found: list[Row] = []
    watermark = -(10**9)
    for step in [*steps, Mark(END_OF_TIME_US)]:
        if isinstance(step, Batch):
            for row in step.rows:
                counts[row["k"]] = counts.get(row["k"], 0) + 1
                timers.add((row["k"], row["at"] + wait))
        if isinstance(step, Mark) and step.time_us > watermark:
            watermark = step.time_us
            for key, at in sorted(timers, key=lambda timer: timer[1]):
                if at <= watermark:
                    found.append({"k": key, "rows": counts[key], "at": at})
                    timers.remove((key, at))
    return found


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(steps=streams(), parallelism=st.integers(1, 3), wait=st.sampled_from([0, 7]))
def test_state_and_timers_are_those_of_the_model_through_restarts_and_rescaling(make, steps, parallelism, wait):
    operator = partial(make, "std.process", **{**QUIET, "arguments": {"wait_us": wait}})
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        assert in_order(as_rows(harness.output)) == in_order(model(steps, wait=wait))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1),
    marks=st.lists(st.integers(0, 20), max_size=5).map(sorted),
    cut=st.integers(0, 5),
)
def test_timers_that_timers_set_fire_in_order_up_to_the_watermark(run, rows, marks, cut):
    subtask = run(lambda: Process(Countdown(), ["k"]), [STREAM])
    subtask.feed(batch_of([{"k": key, "v": left, "at": at} for key, (left, at) in rows.items()]))
    for place, mark in enumerate(marks):
        if place == cut:
            subtask.checkpoint()
            subtask.restore()
        subtask.watermark(Watermark.event_time(mark))
    last = marks[-1] if marks else -1
    for key, (left, at) in rows.items():
        found = [(row["left"], row["at"]) for row in as_rows(subtask.output) if row["k"] == key]
        assert found == [(left - step, at + step) for step in range(left) if at + step <= last]


def test_at_the_end_of_the_data_every_timer_fires_and_sets_no_more(run):
    subtask = run(lambda: Process(Countdown(), ["k"]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 10**9, "at": 3}, {"k": "b", "v": 1, "at": 10**15}]))
    subtask.end_of_data()
    assert in_order(as_rows(subtask.output)) == in_order(
        [{"k": "a", "left": 10**9, "at": 3}, {"k": "b", "left": 1, "at": 10**15}]
    )


def test_a_timer_fires_exactly_at_its_time_and_once(run):
    subtask = run(lambda: Process(CountUntilQuiet(0), ["k"]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 1_500_000}, {"k": "a", "v": 1, "at": 1_500_000}]))
    subtask.watermark(Watermark.event_time(1_499_999))
    assert subtask.output.num_rows == 0
    subtask.checkpoint()
    subtask.restore()
    subtask.watermark(Watermark.event_time(1_500_000))
    assert as_rows(subtask.output) == [{"k": "a", "rows": 2, "at": 1_500_000}]
    subtask.checkpoint()
    subtask.restore()
    subtask.watermark(Watermark.event_time(9_000_000))
    assert subtask.output.num_rows == 1


def test_rows_of_a_timer_come_before_its_watermark(run):
    subtask = run(lambda: Process(CountUntilQuiet(5), ["k"]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}]))
    subtask.watermark(Watermark.event_time(8))
    rows, watermark = subtask.events
    assert (rows.num_rows, watermark) == (1, Watermark.event_time(8))


def test_without_keys_there_is_one_state(run):
    class Total(CountUntilQuiet):
        def on_batch(self, batch, state, timers, ctx, collector):
            former = state.get_aligned(batch.slice(0, 1)).column("rows").fill_null(0)[0].as_py()
            state.put(pa.RecordBatch.from_pydict({"rows": [former + batch.num_rows]}, schema=state.schema))

    subtask = run(lambda: Process(Total(0)), [STREAM])
    for _ in range(3):
        subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}, {"k": "b", "v": 1, "at": 0}]))
        subtask.checkpoint()
        subtask.restore()
    assert subtask.operator._state._view.get_all().to_pylist() == [{"rows": 6}]


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"function": "CountUntilQuiet"}, "function", "package.module:ClassName"),
        ({"function": "nowhere.at_all:X"}, "function", "no module 'nowhere'"),
        ({"function": "process_examples:CountUntilQuite"}, "function", "is not there"),
        ({"function": "process_examples:NOT_A_CLASS"}, "function", "derives from arroyo_std.ProcessFunction"),
        ({"function": "process_examples:Unfinished", "arguments": {}}, "function", "lacks on_batch"),
        ({"function": "process_examples:Clashing"}, "function", "'k'"),
        ({"function": "process_examples:Failing", "arguments": {}}, "arguments", "no such host"),
        ({"arguments": {"wait": 7}}, "arguments", "wait_us"),
        ({"arguments": {}}, "arguments", "wait_us"),
        ({"arguments": {"wait_us": -1}}, "arguments.wait_us", "negative"),
        ({"keys": ["z"]}, "keys[0]", "no column"),
        ({"keys": ["k", "k"]}, "keys[1]", "twice"),
        ({"function": ""}, "function", "missing"),
    ],
)
def test_a_wrong_config_names_its_field(make, change, field, reason):
    with pytest.raises(ConfigError) as caught:
        make("std.process", **{**QUIET, **change}).output_schema([STREAM])
    assert caught.value.field == field
    assert reason in str(caught.value)


def test_a_misspelt_class_is_guessed(make):
    with pytest.raises(ConfigError) as caught:
        make("std.process", **{**QUIET, "function": "process_examples:CountUntilQuite"})
    assert caught.value.suggestion == "process_examples:CountUntilQuiet"
    assert "process_examples:Countdown" in caught.value.allowed


def test_an_updating_input_is_refused_unless_the_function_takes_it(run):
    class Knowing(Countdown):
        accepts_updating = True

    stream = with_updating(ArroyoSchema(STREAM.schema, "at"))
    with pytest.raises(ConfigError, match="Countdown"):
        Process(Countdown(), ["k"]).output_schema([stream])
    assert Process(Knowing(), ["k"]).output_schema([stream]).names == ["k", "left", "at"]


def test_times_and_keys_must_be_as_many(run):
    class Careless(Countdown):
        def on_batch(self, batch, state, timers, ctx, collector):
            timers.set(batch, batch.column("at").slice(1))

    subtask = run(lambda: Process(Careless(), ["k"]), [STREAM])
    with pytest.raises(OperatorError, match="1 times for 2 keys"):
        subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}] * 2))


def test_a_null_time_sets_no_timer(run):
    subtask = run(lambda: Process(Countdown(), ["k"]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": None}, {"k": "b", "v": 1, "at": 2}]))
    subtask.end_of_data()
    assert [row["k"] for row in as_rows(subtask.output)] == ["b"]
