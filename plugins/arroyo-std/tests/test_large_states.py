"""Aggregates of one key or window that no batch can hold, with an Arrow that overflows at some hundred bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from arroyo_std.windows import session_store
from arroyo_testing import FakeClock, OperatorHarness

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import OperatorError

from .support.row_streams import TIME, Row, apply_updates, as_rows, batch_of, in_order
from .support.small_arrow import check_sizes, shrink_arrow

WIDE = pa.schema({"k": pa.string(), "v": pa.int64(), "at": TIME, "text": pa.string()})
STREAM = ArroyoSchema(WIDE, "at")
TOP = [{"function": "max", "column": "text", "as": "top"}, {"function": "count", "as": "n"}]
MANY_KEYS = "abcdefghijklmnopqrstuvwxyz"
GAP = 5
TOO_LARGE = "are needed at once, and a (batch holds 2 GiB of a column|column holds 2 GiB)"


@pytest.fixture(autouse=True)
def _small_arrow(monkeypatch):
    shrink_arrow(monkeypatch)


def wide_row(number: int, *, key: str = "a", at: int = 0) -> Row:
    """About 80 bytes."""
    return {"k": key, "v": number, "at": at, "text": f"{number:03}" + "x" * 50}


def some_at_a_time(rows: Sequence[Row]) -> list[Sequence[Row]]:
    return [rows[start : start + 4] for start in range(0, len(rows), 4)]


def restart(subtask: OperatorHarness) -> None:
    subtask.checkpoint()
    subtask.restore()


def feed(subtask: OperatorHarness, rows: Sequence[Row]) -> None:
    """Rows in small batches, with some restarts between them."""
    for number, some in enumerate(some_at_a_time(rows)):
        subtask.feed(batch_of(some, WIDE))
        if number % 5 == 4:
            restart(subtask)


def aggregate(rows: Sequence[Row]) -> dict[str, Any]:
    return {"top": max(row["text"] for row in rows), "n": len(rows)}


def by_key(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {key: [row for row in rows if row["k"] == key] for key in sorted({row["k"] for row in rows})}


def chosen(rows: Sequence[Row], *names: str) -> list[Row]:
    return in_order([{name: row[name] for name in names} for row in rows])


def session_window(make, run, aggregates=TOP) -> OperatorHarness:
    return run(partial(make, "std.session_window", gap=GAP, keys=["k"], aggregates=aggregates), [STREAM])


def sessions_of(rows: Sequence[Row]) -> list[Row]:
    found = []
    for key, own in by_key(rows).items():
        sessions: list[list[Row]] = []
        for row in sorted(own, key=lambda row: row["at"]):
            if sessions and row["at"] - sessions[-1][-1]["at"] < GAP:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        found += [{"k": key, "window_start": each[0]["at"], **aggregate(each)} for each in sessions]
    return found


def apart(subtask: OperatorHarness) -> int:
    """How many sessions are of keys that have more than a row can hold."""
    return sum(part.num_rows for part in subtask.operator.store._apart.get_all_parts())


@pytest.mark.parametrize("others", ["", "bcd"], ids=["one key", "other keys"])
def test_the_open_sessions_of_a_key_may_be_of_any_size(make, run, others):
    subtask = session_window(make, run)
    rows = [wide_row(number, at=10 * number) for number in range(40)]
    rows += [wide_row(number, key=key, at=10 * number) for key in others for number in range(3)]
    feed(subtask, rows)
    restart(subtask)
    assert apart(subtask) == 40
    # Some are lengthened, two become one, and half of them end.
    more = [
        wide_row(900, at=3),
        wide_row(901, at=104),
        wide_row(902, at=107),
        *(wide_row(1, at=10 * n) for n in (5, 6)),
    ]
    feed(subtask, more)
    subtask.watermark(Watermark.event_time(200))
    restart(subtask)
    assert 0 < apart(subtask) < 25
    expected = sessions_of([*rows, *more])
    names = ("k", "window_start", "top", "n")
    assert chosen(as_rows(subtask.output), *names) == in_order([row for row in expected if row["window_start"] < 196])
    subtask.end_of_data()
    assert chosen(as_rows(subtask.output), *names) == in_order(expected)
    assert apart(subtask) == 0
    assert subtask.operator.store._sessions.get_all().num_rows == 0
    check_sizes(subtask.output)


def test_sessions_that_fit_into_a_row_again_are_put_back_there(make, run):
    subtask = session_window(make, run)
    feed(subtask, [wide_row(number, at=10 * number) for number in range(20)])
    restart(subtask)
    assert apart(subtask) == 20
    subtask.watermark(Watermark.event_time(190))
    subtask.feed(batch_of([wide_row(7, at=192)], WIDE))
    restart(subtask)
    assert apart(subtask) == 0
    (stored,) = subtask.operator.store._sessions.get_all().to_pylist()
    assert [(each["first_us"], each["last_us"]) for each in stored["_sessions"]] == [(190, 192)]
    subtask.end_of_data()
    assert subtask.output.num_rows == 20


@pytest.mark.parametrize("keys", ["a", MANY_KEYS], ids=["one key", "many keys"])
def test_the_rows_of_sessions_may_be_of_any_size(make, run, keys):
    subtask = session_window(make, run)
    rows = [wide_row(number, key=keys[number % len(keys)], at=number // len(keys)) for number in range(104)]
    # Sessions of many keys wait in memory, and are stored, and end together.
    subtask.feed(batch_of(rows[::2], WIDE))
    restart(subtask)
    feed(subtask, rows[1::2])
    subtask.end_of_data()
    assert chosen(as_rows(subtask.output), "k", "window_start", "top", "n") == in_order(sessions_of(rows))
    check_sizes(subtask.output)


def test_keys_of_sessions_may_be_wide(make, run, monkeypatch):
    monkeypatch.setattr(session_store, "SETTLED_KEYS", 8)
    subtask = session_window(make, run)
    rows = [wide_row(number, key=f"{number % 12:03}" + "k" * 120, at=100 * (number // 12)) for number in range(60)]
    feed(subtask, rows)
    restart(subtask)
    subtask.end_of_data()
    assert chosen(as_rows(subtask.output), "k", "window_start", "top", "n") == in_order(sessions_of(rows))


def test_a_session_that_no_batch_can_hold_is_an_error_that_says_so(make, run):
    subtask = session_window(make, run, [{"function": "list", "column": "text", "as": "all"}])
    with pytest.raises(OperatorError, match=TOO_LARGE):
        feed(subtask, [wide_row(number, at=number) for number in range(60)])


def early_window(make, run, aggregates=TOP) -> OperatorHarness:
    config = {"size": 100, "keys": ["k"], "aggregates": aggregates, "early": 50}
    return run(partial(make, "std.tumbling_window", **config), [STREAM], clock=FakeClock())


def send_early(subtask: OperatorHarness) -> None:
    subtask.clock.advance(1)
    subtask.tick()


@pytest.mark.parametrize("keys", ["a", "abcd", MANY_KEYS], ids=["one key", "some keys", "many keys"])
def test_windows_with_early_results_may_be_of_any_size(make, run, keys):
    subtask = early_window(make, run)
    rows = [wide_row(number, key=keys[number % len(keys)], at=5 * number) for number in range(104)]
    for number, some in enumerate(some_at_a_time(rows)):
        subtask.feed(batch_of(some, WIDE))
        if number % 3 == 2:
            send_early(subtask)
        if number % 5 == 4:
            restart(subtask)
    send_early(subtask)
    expected = []
    for start in range(0, 600, 100):
        inside = [row for row in rows if start <= row["at"] < start + 100]
        expected += [{"k": key, "window_start": start, **aggregate(own)} for key, own in by_key(inside).items()]
    names = ("k", "window_start", "top", "n")
    assert chosen(apply_updates(as_rows(subtask.output)), *names) == in_order(expected)
    subtask.watermark(Watermark.event_time(200))
    subtask.feed(batch_of([wide_row(999, key="zz", at=600)], WIDE))
    subtask.end_of_data()
    expected.append({"k": "zz", "window_start": 600, **aggregate([wide_row(999)])})
    assert chosen(apply_updates(as_rows(subtask.output)), *names) == in_order(expected)
    check_sizes(subtask.output)


def test_early_results_of_a_window_may_be_all_that_a_batch_holds(make, run):
    """Each of some states is as large as may be: two of them are too much for a batch."""
    subtask = early_window(make, run, [{"function": "list", "column": "text", "as": "all"}])
    rows = [wide_row(number, key=key) for number in range(8) for key in "abcdef"]
    for some in some_at_a_time(rows):
        subtask.feed(batch_of(some, WIDE))
        send_early(subtask)
    restart(subtask)
    subtask.end_of_data()
    found = {row["k"]: sorted(row["all"]) for row in apply_updates(as_rows(subtask.output))}
    assert found == {key: [row["text"] for row in own] for key, own in by_key(rows).items()}


def test_an_early_result_that_no_batch_can_hold_is_an_error_that_says_so(make, run):
    subtask = early_window(make, run, [{"function": "list", "column": "text", "as": "all"}])
    with pytest.raises(OperatorError, match=TOO_LARGE):
        feed(subtask, [wide_row(number) for number in range(40)])


def updating(make, run, aggregates=TOP, *, is_updating: bool = False, ttl: int = 0) -> OperatorHarness:
    stream = with_updating(STREAM) if is_updating else STREAM
    config = {"keys": ["k"], "aggregates": aggregates, "ttl": ttl, "flush_interval": 10}
    return run(partial(make, "std.updating_aggregate", **config), [stream], clock=FakeClock())


def updates_of(rows: Sequence[Row], *, is_retract: bool = False) -> pa.RecordBatch:
    batch = batch_of(rows, WIDE)
    return make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["k"]))


@pytest.mark.parametrize("keys", ["a", MANY_KEYS], ids=["one key", "many keys"])
def test_updating_aggregates_may_be_of_any_size(make, run, keys):
    subtask = updating(make, run)
    rows = [wide_row(number, key=keys[number % len(keys)]) for number in range(104)]
    # All groups change between two flushes.
    for part in (rows[:52], rows[52:]):
        for some in some_at_a_time(part):
            subtask.feed(batch_of(some, WIDE))
        restart(subtask)
    expected = [{"k": key, **aggregate(own)} for key, own in by_key(rows).items()]
    assert apply_updates(as_rows(subtask.output)) == in_order(expected)
    check_sizes(subtask.output)


@pytest.mark.parametrize("keys", ["a", "ab", MANY_KEYS], ids=["one key", "two keys", "many keys"])
def test_rows_of_groups_of_any_size_are_taken_back(make, run, keys):
    functions = [*TOP, {"function": "count_distinct", "column": "v", "as": "kinds"}]
    subtask = updating(make, run, functions, is_updating=True)
    rows = [wide_row(number % 78, key=keys[number % len(keys)]) for number in range(104 if len(keys) > 2 else 8)]
    back, left = rows[: len(rows) * 2 // 3], rows[len(rows) * 2 // 3 :]
    for some in some_at_a_time(rows):
        subtask.feed(updates_of(some))
    restart(subtask)
    for some in some_at_a_time(back):
        subtask.feed(updates_of(some, is_retract=True))
    restart(subtask)
    expected = [
        {"k": key, **aggregate(own), "kinds": len({row["v"] for row in own})} for key, own in by_key(left).items()
    ]
    assert apply_updates(as_rows(subtask.output)) == in_order(expected)
    assert "unknown_retractions" not in subtask.counters
    check_sizes(subtask.output)


def test_a_value_that_may_be_taken_back_may_come_any_number_of_times(make, run):
    functions = [*TOP, {"function": "last", "column": "v", "as": "newest"}]
    subtask = updating(make, run, functions, is_updating=True)
    rows = [wide_row(number, key=key, at=number) for number in range(2) for key in "ab"]
    for _ in range(30):
        subtask.feed(updates_of(rows))
    subtask.checkpoint()
    expected = [{"k": key, "top": rows[-1]["text"], "n": 60, "newest": 1} for key in "ab"]
    assert apply_updates(as_rows(subtask.output)) == in_order(expected)


def test_groups_of_any_size_are_forgotten_after_their_time_to_live(make, run):
    subtask = updating(make, run, ttl=1_000_000)
    rows = [wide_row(number, key=key + "k" * 40) for number, key in enumerate(MANY_KEYS)]
    for some in some_at_a_time(rows):
        subtask.feed(batch_of(some, WIDE))
    restart(subtask)
    subtask.clock.advance(0.5)
    subtask.feed(batch_of(rows[:3], WIDE))
    restart(subtask)
    subtask.clock.advance(0.6)
    subtask.tick()
    expected = [{"k": row["k"], "top": row["text"], "n": 2} for row in rows[:3]]
    assert apply_updates(as_rows(subtask.output)) == in_order(expected)
    assert subtask.counters["expired_keys"] == len(rows) - 3
    check_sizes(subtask.output)


def test_an_aggregate_that_no_batch_can_hold_is_an_error_that_says_so(make, run):
    subtask = updating(make, run, [{"function": "list", "column": "text", "as": "all"}])
    with pytest.raises(OperatorError, match=TOO_LARGE):
        feed(subtask, [wide_row(number) for number in range(40)])
