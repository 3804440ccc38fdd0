"""std.assign_window: the windows of each row, and what its stream is from there on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_testing import OperatorHarness
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError

STREAM = ArroyoSchema(pa.schema({"at": pa.timestamp("ms", tz="UTC"), "n": pa.int64()}), "at", ("n",))


def windows_of(make, times_ms, **config):
    rows = {"at": pa.array(times_ms, STREAM.schema.field("at").type), "n": list(range(len(times_ms)))}
    with OperatorHarness(make("std.assign_window", **config), inputs=[STREAM]) as harness:
        harness.process(pa.RecordBatch.from_pydict(rows, schema=STREAM.schema))
        found = harness.output
    columns = [
        found.column(name).cast(pa.int64()).to_pylist() for name in ("window_start", "window_end", "window_time")
    ]
    return list(zip(found.column("n").to_pylist(), *columns, strict=True))


def test_a_window_has_its_start_and_not_its_end(make):
    assert windows_of(make, [0, 9, 10, -1], size=10_000) == [
        (0, 0, 10_000, 9_999),
        (1, 0, 10_000, 9_999),
        (2, 10_000, 20_000, 19_999),
        (3, -10_000, 0, -1),
    ]


def test_a_row_without_time_has_no_window(make):
    assert windows_of(make, [None, 5], size=10_000) == [(0, None, None, None), (1, 0, 10_000, 9_999)]


@given(
    times=st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=30),
    slide=st.integers(1, 50),
    times_slide=st.integers(1, 5),
    offset=st.integers(-100, 100),
)
def test_a_row_is_in_every_window_around_it(make, times, slide, times_slide, offset):
    size = slide * times_slide
    found = windows_of(make, times, size=size * 1000, slide=slide * 1000, offset=offset * 1000)
    for row, time in enumerate(times):
        starts = [start // 1000 for number, start, _, _ in found if number == row]
        assert starts == [s for s in range(time - size, time + 1) if (s - offset) % slide == 0 and s <= time < s + size]


def test_the_last_moment_of_the_window_is_the_event_time(make):
    output = make("std.assign_window", size=10).output_schema([STREAM])
    assert output.timestamp_column == "window_time"
    assert output.key_columns == ("n",)
    assert output.names == ["at", "n", "window_start", "window_end", "window_time"]


def test_it_asks_for_the_columns_that_others_need_and_the_time(make):
    assert make("std.assign_window", size=10).needed_columns([STREAM], {"window_start"}) == [{"at"}]
    assert make("std.assign_window", size=10).needed_columns([STREAM], {"n", "window_end"}) == [{"at", "n"}]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"size": 0}, "size", "more than zero"),
        ({"size": 10, "slide": 0}, "slide", "more than zero"),
        ({"size": 10, "slide": 3}, "slide", "must divide the size"),
    ],
)
def test_windows_that_cannot_be_are_refused(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make("std.assign_window", **config)
    assert caught.value.field == field


def test_a_stream_needs_a_time_and_no_windows_of_its_own(make):
    with pytest.raises(ConfigError, match="need an event time"):
        make("std.assign_window", size=10).output_schema([ArroyoSchema(STREAM.schema)])
    windowed = pa.schema([*STREAM.schema, pa.field("window_start", pa.int64())])
    with pytest.raises(ConfigError, match="'window_start' of its own"):
        make("std.assign_window", size=10).output_schema([ArroyoSchema(windowed, "at")])
