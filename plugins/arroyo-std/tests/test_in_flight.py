"""Calls of coroutines that are under way: results, failures, and the event loop they share."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading

import pyarrow as pa
import pytest
from arroyo_std import in_flight
from arroyo_std.event_loop import abandon, event_loop
from arroyo_std.in_flight import InFlight, to_column

from arroyo_core import udf as udf_package
from arroyo_core.errors import UdfError
from arroyo_core.udf import async_udf

from .support.waiting import wait_until

LOOPS = []


@async_udf(concurrency=3)
async def halved(number: int) -> int:
    LOOPS.append(asyncio.get_running_loop())
    # Calls come back in another order, and some are under way for long enough to be given up.
    await asyncio.sleep(0.01 * (number % 3))
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


@async_udf(concurrency=2)
async def as_text(number: int) -> int:
    return str(number) if number == 3 else number  # type: ignore[return-value]


def test_results_and_errors_are_those_of_their_rows():
    calls_of = InFlight(halved, is_fatal=False)
    calls = calls_of.submit([pa.array([4, None, 3, 8])])
    calls_of.wait(0)
    assert calls.unfinished == calls_of.unfinished == 0
    column, errors = to_column(halved, calls, range(4))
    assert column.equals(pa.array([2, None, None, 4]))
    assert {row: error.message for row, error in errors.items()} == {2: "ValueError: 3 is odd"}
    assert errors[2].sample == "number=3"
    assert "raise ValueError" in errors[2].traceback
    assert "arroyo_core/udf/in_flight.py" not in errors[2].traceback


def test_rows_are_told_once_when_they_are_finished():
    calls_of = InFlight(halved, is_fatal=False)
    calls = calls_of.submit([pa.array([None, 2, 4], pa.int64())])
    taken = calls.take_finished()
    calls_of.wait(0)
    assert sorted(taken + calls.take_finished()) == [0, 1, 2]
    assert calls.take_finished() == []


def test_a_fatal_failure_ends_the_others():
    calls_of = InFlight(halved, is_fatal=True)
    calls_of.submit([pa.array([2, 3] * 500)])
    with pytest.raises(UdfError, match="UDF 'halved': ValueError: 3 is odd"):
        calls_of.wait(0)
    wait_until(lambda: not asyncio.all_tasks(event_loop()))
    assert calls_of.unfinished > 900


def test_results_that_do_not_fit_are_errors_of_their_rows():
    calls_of = InFlight(as_text, is_fatal=False)
    calls = calls_of.submit([pa.array([1, 3, 5])])
    calls_of.wait(0)
    column, errors = to_column(as_text, calls, [0, 1, 2])
    assert column.to_pylist() == [1, None, 5]
    assert errors[1].message == "it gave '3' (str), which is not int64"


def test_all_calls_of_a_process_share_one_loop():
    LOOPS.clear()
    for _ in range(3):
        calls_of = InFlight(halved, is_fatal=False)
        calls_of.submit([pa.array([2])])
        calls_of.wait(0)
    assert len(set(LOOPS)) == 1
    assert LOOPS[0] is event_loop()
    threads = [thread for thread in threading.enumerate() if thread.name == "udf-event-loop"]
    assert threads
    assert all(thread.daemon for thread in threads)


def test_a_loop_that_stands_still_is_not_used_again():
    first = event_loop()
    abandon(first)
    second = event_loop()
    assert second is not first
    abandon(first)
    assert event_loop() is second
    first.call_soon_threadsafe(first.stop)


def _call_in_child(found: multiprocessing.SimpleQueue) -> None:
    calls_of = InFlight(halved, is_fatal=False)
    calls = calls_of.submit([pa.array([6])])
    calls_of.wait(0)
    found.put(calls.results)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_a_loop_of_its_own():
    event_loop()
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    child = context.Process(target=_call_in_child, args=(found,))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert found.get() == [3]


@pytest.mark.parametrize("name", ["Calls", "InFlight", "to_column"])
def test_the_former_place_of_a_name_is_known_for_one_version(name):
    with pytest.warns(
        DeprecationWarning, match=f"arroyo_core.udf.{name} has moved: import it from arroyo_std.in_flight"
    ):
        assert getattr(udf_package, name) is getattr(in_flight, name)
