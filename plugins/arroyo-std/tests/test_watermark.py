from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from arroyo_std.std_pb2 import WatermarkConfig
from arroyo_testing.conformance.configs import read_message

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, Watermark
from arroyo_core.errors import ConfigError

SECOND = 1_000_000
TIME = pa.timestamp("us", tz="UTC")
STREAM = ArroyoSchema(pa.schema({"id": pa.int64(), "at": TIME, "seen": TIME}), "at")


def rows(*seconds):
    times = [None if second is None else round(second * SECOND) for second in seconds]
    return pa.RecordBatch.from_pydict(
        {"id": range(len(times)), "at": pa.array(times, TIME), "seen": pa.array(times, TIME)}, schema=STREAM.schema
    )


def at(seconds):
    return Watermark.event_time(round(seconds * SECOND))


@pytest.fixture
def start(make, run):
    """Durations are given in seconds."""

    def start(inputs=STREAM, **config):
        for name in ("max_lateness", "period", "idle_time"):
            if name in config:
                config[name] = round(config[name] * SECOND)
        return run(lambda: make("std.watermark", **config), [inputs])

    return start


def test_the_watermark_is_the_greatest_time_less_the_lateness_and_follows_the_rows(start):
    batch = rows(10, 12, 11)
    assert start(max_lateness=3).feed(batch).events == [batch, at(9)]


def test_the_lateness_is_a_second_unless_given(start):
    assert start().feed(rows(10)).watermarks == [at(9)]


def test_older_rows_do_not_move_the_watermark_back(start):
    harness = start(max_lateness=0, period=0).feed(rows(10), rows(5), rows(11))
    assert harness.watermarks == [at(10), at(11)]


def test_the_watermark_is_sent_when_it_advanced_by_more_than_the_period(start):
    harness = start(max_lateness=0, period=5).feed(*(rows(second) for second in (0, 3, 5, 5.5, 10, 11)))
    assert harness.watermarks == [at(0), at(5.5), at(11)]


def test_at_a_barrier_nothing_is_held_back(start):
    harness = start(max_lateness=0, period=60).feed(rows(1), rows(2))
    harness.checkpoint()
    assert harness.watermarks == [at(1), at(2)]


def test_a_barrier_before_the_first_row_sends_nothing(start):
    harness = start()
    harness.checkpoint()
    assert harness.watermarks == []


def test_rows_without_event_time_pass_and_are_counted(start):
    harness = start(max_lateness=0).feed(rows(None, 4, None), rows(None))
    assert harness.watermarks == [at(4)]
    assert harness.output.num_rows == 4
    assert harness.counters["null_event_times"] == 3


def test_the_watermark_survives_a_restart(start):
    harness = start(max_lateness=0, period=5).feed(rows(100))
    harness.checkpoint()
    harness.restore()
    harness.feed(rows(50), rows(104))
    assert harness.watermarks == [at(100)]
    harness.feed(rows(106))
    assert harness.watermarks[-1] == at(106)


def test_an_idle_subtask_says_so_once_and_wakes_with_the_next_row(start):
    harness = start(max_lateness=0, idle_time=10).feed(rows(1))
    harness.clock.advance(9)
    harness.tick()
    assert harness.watermarks == [at(1)]
    harness.clock.advance(1)
    harness.tick()
    harness.tick()
    assert harness.watermarks == [at(1), Watermark.idle()]
    harness.feed(rows(1))
    assert harness.watermarks == [at(1), Watermark.idle(), at(1)]


def test_idleness_is_noticed_across_epochs(start):
    harness = start(max_lateness=0, idle_time=10).feed(rows(1))
    harness.clock.advance(6)
    harness.checkpoint()
    harness.restore()
    harness.clock.advance(4)
    harness.tick()
    assert harness.watermarks[-1] == Watermark.idle()


def test_a_subtask_that_gets_no_row_at_all_becomes_idle(start):
    harness = start(idle_time=10)
    harness.clock.advance(10)
    harness.checkpoint()
    assert harness.watermarks[-1] == Watermark.idle()


def test_without_an_idle_time_there_are_no_ticks_and_no_idleness(start):
    harness = start(max_lateness=0).feed(rows(1))
    harness.clock.advance(1e6)
    harness.tick()
    assert harness.operator.tick_interval() is None
    assert harness.watermarks == [at(1)]


@pytest.mark.parametrize(("idle_time", "interval"), [(0.002, 0.01), (2, 0.5), (3600, 1)])
def test_idleness_is_looked_for_often_enough(start, idle_time, interval):
    assert start(idle_time=idle_time).operator.tick_interval() == timedelta(seconds=interval)


def test_watermarks_of_the_input_end_here(start):
    harness = start(max_lateness=0).feed(rows(1))
    harness.watermark(at(500))
    assert harness.watermarks == [at(1)]


def test_an_idle_input_is_idle_here_too(start):
    harness = start(max_lateness=0).feed(rows(1))
    harness.watermark(Watermark.idle())
    assert harness.watermarks == [at(1), Watermark.idle()]
    harness.feed(rows(1))
    assert harness.watermarks[-1] == at(1)


def test_the_end_of_time_passes_and_is_the_last_word(start):
    harness = start(max_lateness=0, idle_time=1).feed(rows(1))
    harness.end_of_data()
    harness.clock.advance(5)
    harness.checkpoint()
    assert harness.watermarks == [at(1), Watermark.event_time(END_OF_TIME_US)]


def test_a_row_of_the_far_future_does_not_end_the_stream(start):
    batch = pa.RecordBatch.from_pydict({"id": [1], "at": [END_OF_TIME_US], "seen": [None]}, schema=STREAM.schema)
    assert start(max_lateness=0).feed(batch).watermarks == [Watermark.event_time(END_OF_TIME_US - 1)]


def test_a_column_becomes_the_event_time(start):
    harness = start(inputs=ArroyoSchema(STREAM.schema, None, ("id",)), column="seen", max_lateness=0)
    assert harness.output_schema == ArroyoSchema(STREAM.schema, "seen", ("id",))
    assert harness.feed(rows(7)).watermarks == [at(7)]


@pytest.mark.parametrize(
    ("data_type", "value", "expected_us"),
    [
        (pa.timestamp("s"), 5, 5_000_000),
        (pa.timestamp("ms", tz="Europe/Rome"), 5, 5_000),
        (pa.timestamp("us"), 5, 5),
        (pa.timestamp("ns", tz="UTC"), 5_999, 5),
        (pa.timestamp("ns"), -1, -1),
    ],
)
def test_timestamps_of_every_unit_are_accepted_and_rounded_down(start, data_type, value, expected_us):
    batch = pa.RecordBatch.from_pydict({"at": pa.array([value], data_type)})
    harness = start(inputs=ArroyoSchema(batch.schema), column="at", max_lateness=0)
    assert harness.feed(batch).watermarks == [Watermark.event_time(expected_us)]


def test_an_expression_gives_the_watermark_itself(start):
    harness = start(expression="case when id = 0 then at - interval '5 seconds' end").feed(rows(20, 99))
    assert harness.watermarks == [at(15)]
    assert harness.counters["null_event_times"] == 1


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"column": "att"}, "column", "no column 'att'"),
        ({"column": "id"}, "column", "column 'id' is int64, not a timestamp"),
        ({"expression": "id + 1"}, "expression", "the expression is int64, not a timestamp"),
        ({"expression": "att"}, "expression", "no column 'att'"),
        ({"period": -1}, "period", "must not be negative"),
        ({"max_lateness": -1}, "max_lateness", "must not be negative"),
        ({"idle_time": 0}, "idle_time", "more than zero"),
    ],
)
def test_wrong_configs_name_the_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make("std.watermark", **config).output_schema([STREAM])
    assert caught.value.field == field


def test_a_stream_without_event_time_needs_a_column(make):
    with pytest.raises(ConfigError, match="give its column") as caught:
        make("std.watermark").output_schema([ArroyoSchema(STREAM.schema)])
    assert caught.value.field == "column"
    assert caught.value.allowed == ("at", "seen")


def test_the_plan_shows_what_was_decided(make):
    fields = dict(make("std.watermark", column="at", idle_time=5 * SECOND).display().fields)
    assert fields == {"column": "at", "max lateness": "0:00:01", "period": "0:00:01", "idle time": "0:00:05"}


@pytest.mark.parametrize(
    ("config", "kind", "lateness_us"),
    [
        ({}, "max_lateness", 1_000_000),
        ({"expression": ""}, "max_lateness", 1_000_000),
        ({"expression": "", "max_lateness": "5s"}, "max_lateness", 5_000_000),
        ({"expression": "at"}, "expression", 0),
    ],
)
def test_an_expression_that_is_empty_is_none(config, kind, lateness_us):
    message = read_message("std.watermark", config, WatermarkConfig)
    assert (message.WhichOneof("lateness"), message.max_lateness) == (kind, lateness_us)
