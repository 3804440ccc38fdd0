"""std.async_udf: calls under way, their order, retries and failures; nothing goes past a watermark or a barrier."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from typing import Any

import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry, Watermark, with_defaults
from arroyo_core.errors import ConfigError, OperatorError
from arroyo_core.udf import async_udf, udf

from .support.waiting import wait_until

TIME = pa.timestamp("us", tz="UTC")
STREAM = ArroyoSchema(pa.schema({"n": pa.int64(), "name": pa.string(), "at": TIME}), "at", ("name",))


class Service:
    """What the coroutines call: counts calls under way, and fails as often as it is told."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.calls: list[int] = []
        self.failures: dict[int, int] = {}

    async def call(self, number: int, seconds: float) -> int:
        self.calls.append(number)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            # What a service takes; the operator under test waits for it.
            await asyncio.sleep(seconds)
            if self.failures.get(number, 0):
                self.failures[number] -= 1
                raise ConnectionError(f"no answer for {number}")
            return number * 10
        finally:
            self.now -= 1


SERVICE = Service()


@pytest.fixture(autouse=True)
def service():
    SERVICE.__init__()  # type: ignore[misc]
    return SERVICE


@async_udf(concurrency=5)
async def tenfold(number: int) -> int:
    return await SERVICE.call(number, 0.002)


@async_udf(concurrency=50, ordered=False)
async def slow_first(number: int) -> int:
    return await SERVICE.call(number, 0.5 if number == 0 else 0.001)


@async_udf
async def endless(number: int) -> int:
    return await SERVICE.call(number, 3600)


@async_udf(concurrency=50)
async def describe(number: int | None, name: str) -> str:
    await asyncio.sleep(0)
    return f"{number} {name}"


@async_udf(timeout="50ms")
async def late(number: int) -> int:
    await asyncio.sleep(5 if number == 0 else 0)
    return number


@async_udf(timeout="300ms")
async def stuck(number: int) -> int:
    # The event loop stands still for much longer than the timeout.
    time.sleep(4)
    return number


@async_udf
async def leave(number: int) -> int:
    sys.exit(number)


@async_udf
async def wrong(number: int) -> int:
    return "text" if number == 0 else number  # type: ignore[return-value]


@udf
def plain(number: int) -> int:
    return number


FUNCTIONS = [tenfold, slow_first, endless, describe, late, stuck, leave, wrong, plain]


@pytest.fixture(scope="module")
def make():
    registry = Registry()
    arroyo_register(registry)
    for function in FUNCTIONS:
        registry.add_udf(function)

    def make(function: str, **config: Any) -> Any:
        constructor = registry.constructors["std.async_udf"]
        full = {"function": function, "arguments": ["n"], "as": "x", **config}
        return constructor.with_config(with_defaults(ParseDict(full, constructor.config_type())), registry)

    return make


@pytest.fixture
def opened(make):
    harnesses = []

    def opened(function: str, **config: Any) -> OperatorHarness:
        harnesses.append(OperatorHarness(make(function, **config), inputs=[STREAM]))
        return harnesses[-1]

    yield opened
    for harness in harnesses:
        harness.close()


def batch(*numbers: int | None) -> pa.RecordBatch:
    names = [None if number == 13 else f"row {place}" for place, number in enumerate(numbers)]
    times = pa.array(range(len(numbers)), pa.int64()).cast(TIME)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array(names, pa.string()), times], schema=STREAM.schema
    )


def tick_until(harness: OperatorHarness, *, rows: int) -> None:
    """As the task does while no rows come, until so many have come out."""

    def are_out() -> bool:
        harness.tick()
        return harness.output.num_rows >= rows

    wait_until(are_out)


def run_to_end(harness: OperatorHarness, rows: pa.RecordBatch) -> None:
    harness.process(rows)
    harness.end_of_data()


def numbers_of(harness: OperatorHarness) -> list[tuple[int | None, Any]]:
    table = harness.output
    return list(zip(table.column("n").to_pylist(), table.column("x").to_pylist(), strict=True))


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(st.lists(st.none() | st.integers(0, 99), max_size=12), max_size=5),
    is_ordered=st.booleans(),
    width=st.integers(1, 8),
)
def test_every_row_gets_its_result(make, batches, is_ordered, width):
    SERVICE.most = 0
    with OperatorHarness(make("tenfold", ordered=is_ordered, concurrency=width), inputs=[STREAM]) as harness:
        for numbers in batches:
            if numbers:
                harness.process(batch(*numbers))
        harness.end_of_data()
        expected = [(n, None if n is None else n * 10) for numbers in batches for n in numbers]
        if is_ordered:
            assert numbers_of(harness) == expected
        assert sorted(numbers_of(harness), key=str) == sorted(expected, key=str)
        assert SERVICE.most <= width


def test_calls_are_under_way_together_but_no_more_than_allowed(opened, service):
    harness = opened("tenfold", concurrency=20)
    harness.process(batch(*range(100)))
    harness.end_of_data()
    assert service.most == 20


def test_calls_of_several_batches_are_under_way_together(opened, service):
    harness = opened("slow_first", ordered=True)
    for _ in range(20):
        harness.process(batch(0))
    harness.end_of_data()
    assert service.most > 10
    assert numbers_of(harness) == [(0, 0)] * 20


def test_arguments_that_take_no_null_are_not_called_with_one(opened):
    harness = opened("describe", arguments=["n", "name"])
    harness.process(batch(1, None, 13))
    harness.end_of_data()
    assert harness.output.column("x").to_pylist() == ["1 row 0", "None row 1", None]


def test_rows_come_as_their_calls_come_back_if_order_does_not_matter(opened):
    harness = opened("slow_first")
    harness.process(batch(0, 1, 2))
    tick_until(harness, rows=2)
    assert sorted(numbers_of(harness)) == [(1, 10), (2, 20)]
    harness.end_of_data()
    assert sorted(numbers_of(harness)) == [(0, 0), (1, 10), (2, 20)]


def test_a_slow_stream_does_not_wait_for_its_next_row(opened):
    harness = opened("tenfold")
    harness.process(batch(1))
    assert harness.operator.tick_interval() is not None
    tick_until(harness, rows=1)
    assert numbers_of(harness) == [(1, 10)]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_all_is_finished_before_a_watermark_and_a_barrier(opened, is_ordered):
    harness = opened("slow_first", ordered=is_ordered)
    harness.process(batch(0, 1))
    assert (0, 0) not in numbers_of(harness)
    harness.watermark(Watermark.event_time(5))
    assert sorted(numbers_of(harness)) == [(0, 0), (1, 10)]
    harness.process(batch(0))
    harness.checkpoint()
    assert sorted(numbers_of(harness)) == [(0, 0), (0, 0), (1, 10)]


def test_calls_that_fail_are_tried_again_later_and_later(opened, service):
    service.failures = {7: 3}
    harness = opened("tenfold", retries=3, backoff=20_000)
    start = time.monotonic()
    harness.process(batch(7))
    harness.end_of_data()
    assert numbers_of(harness) == [(7, 70)]
    assert service.calls == [7] * 4
    assert time.monotonic() - start >= 0.02 + 0.04 + 0.08


def test_a_call_that_fails_for_good_fails_the_job(opened, service):
    service.failures = {7: 9}
    harness = opened("tenfold", retries=1, backoff=0)
    with pytest.raises(OperatorError, match=r"'tenfold': ConnectionError: no answer for 7 \(2 attempts\); called with"):
        harness.process(batch(*range(200)))
    wait_until(lambda: service.now == 0)
    assert len(service.calls) < 100


def test_a_call_that_fails_for_good_gives_null(opened, service):
    service.failures = {7: 9}
    harness = opened("tenfold", onError="null")
    harness.process(batch(6, 7, 8))
    harness.end_of_data()
    assert numbers_of(harness) == [(6, 60), (7, None), (8, 80)]
    assert harness.counters["failed_rows"] == 1


@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_call_that_fails_for_good_becomes_a_dead_letter(opened, service, is_ordered):
    service.failures = {7: 9}
    harness = opened("tenfold", onError="dead_letter", ordered=is_ordered)
    harness.process(batch(6, 7, 8))
    harness.end_of_data()
    assert sorted(numbers_of(harness)) == [(6, 60), (8, 80)]
    (letter,) = harness.side_output("errors").to_pylist()
    assert (letter["n"], letter["name"]) == (7, "row 1")
    assert letter["_error"] == "UDF 'tenfold': ConnectionError: no answer for 7; called with number=7"


def test_each_attempt_has_its_time(opened):
    harness = opened("late", onError="dead_letter")
    harness.process(batch(0, 1))
    harness.end_of_data()
    assert numbers_of(harness) == [(1, 1)]
    (error,) = harness.side_output("errors").column("_error").to_pylist()
    assert error == "UDF 'late': it did not come back within 50ms; called with number=0"


def test_a_coroutine_that_keeps_the_loop_does_not_hang_the_job(opened):
    harness = opened("stuck", onError="null")
    start = time.monotonic()
    with pytest.raises(OperatorError, match="UDF 'stuck': it has kept the event loop for more than 300ms"):
        run_to_end(harness, batch(1, 2))
    assert time.monotonic() - start < 3.5
    other = opened("tenfold")
    other.process(batch(1))
    other.end_of_data()
    assert numbers_of(other) == [(1, 10)]


def test_a_coroutine_cannot_end_the_process(opened):
    harness = opened("leave", onError="null")
    harness.process(batch(3))
    harness.end_of_data()
    assert numbers_of(harness) == [(3, None)]
    failing = opened("leave")
    with pytest.raises(OperatorError, match=r"UDF 'leave': it called sys.exit\(3\)"):
        run_to_end(failing, batch(3))


def test_results_that_do_not_fit_are_caught(opened):
    harness = opened("wrong", onError="null")
    harness.process(batch(1, 0, 2))
    harness.end_of_data()
    assert numbers_of(harness) == [(1, 1), (0, None), (2, 2)]
    failing = opened("wrong")
    with pytest.raises(OperatorError, match=r"UDF 'wrong': it gave 'text' \(str\), which is not int64"):
        run_to_end(failing, batch(0))


def test_calls_of_an_operator_that_is_gone_are_given_up(make, service):
    operator = make("endless", concurrency=1).operator
    harness = OperatorHarness(operator, inputs=[STREAM])
    operator._in_flight.submit([pa.array([0] * 50)])
    wait_until(lambda: service.now == 1)
    harness.close()
    del harness, operator
    gc.collect()
    wait_until(lambda: service.now == 0)
    assert len(service.calls) == 1


def test_event_time_and_keys_stay(make):
    stream = make("tenfold").operator.output_schema([STREAM])
    assert (stream.timestamp_column, stream.key_columns) == ("at", ("name",))
    assert make("tenfold").operator.needed_columns([STREAM], {"x", "at"}) == [{"n", "at"}]
    assert make("tenfold", onError="dead_letter").operator.needed_columns([STREAM], {"x"}) == [None]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"function": "tenfolt"}, "function", "no user function 'tenfolt'"),
        ({"function": "plain"}, "function", "function 'plain' is not declared with @async_udf"),
        (
            {"arguments": ["name"]},
            "arguments[0]",
            r"tenfold\(number: int64\) -> int64 cannot be called with \(string\)",
        ),
        ({"arguments": ["n", "n"]}, "arguments[0]", r"cannot be called with \(int64, int64\)"),
        ({"arguments": ["m"]}, "arguments[0]", "no column 'm'"),
        ({"as": "name"}, "as", "there is a column 'name' already"),
        ({"as": ""}, "as", "'as' is missing"),
        ({"concurrency": 0}, "concurrency", "'concurrency' must be more than zero"),
        ({"timeout": 0}, "timeout", "'timeout' must be more than zero"),
        ({"retries": -1}, "retries", "'retries' must not be negative"),
    ],
)
def test_a_mistake_is_named_at_its_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make(**{"function": "tenfold", **config}).operator.output_schema([STREAM])
    assert caught.value.field == field
