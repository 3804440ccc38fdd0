"""std.updating_aggregate against a slow and obvious model of changing results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

from .support.window_model import AGGREGATES, KEYS, STREAM, Row, aggregate, batch_of

COUNT = [{"function": "count", "as": "n"}]
TTL_US = 100
FLUSH_US = 10
UPDATING = with_updating(STREAM)
#: Which of two rows of one time is the last is not known of rows that may be taken back.
RETRACTABLE = [each for each in AGGREGATES if each["function"] != "last"]


@dataclass(frozen=True)
class Add:
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class TakeBack:
    """Take back some of the rows that are there, by their numbers among them."""

    picks: tuple[int, ...]


@dataclass(frozen=True)
class Wait:
    time_us: int


@dataclass(frozen=True)
class Epoch:
    is_restored: bool


ROW = st.builds(Row, KEYS, st.none() | st.integers(-2, 2), st.integers(-5, 5))
ADDS = st.lists(ROW, min_size=1, max_size=5).map(lambda rows: Add(tuple(rows)))
TAKES = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(lambda picks: TakeBack(tuple(picks)))
OTHERS = st.builds(Wait, st.sampled_from([5, 10, 60, 120])) | st.builds(Epoch, st.booleans())


@dataclass
class Model:
    """Rows by key; what was last sent; and when a key last had rows."""

    names: list[str]
    keys: list[str]
    rows: dict[Any, list[Row]] = field(default_factory=dict)
    sent: dict[Any, dict[str, Any]] = field(default_factory=dict)
    updated_us: dict[Any, int] = field(default_factory=dict)
    touched: set[Any] = field(default_factory=set)

    def key(self, row: Row) -> Any:
        return row.key if self.keys else None

    def add(self, row: Row) -> None:
        self.rows.setdefault(self.key(row), []).append(row)
        self.touched.add(self.key(row))

    def take_back(self, row: Row) -> None:
        self.rows[self.key(row)].remove(row)
        self.touched.add(self.key(row))

    def flush(self, now_us: int) -> list[tuple[bool, Any, dict[str, Any]]]:
        """What must be sent: whether it is taken back, the key, the result."""
        changes = []
        for key in self.touched:
            rows = self.rows.get(key, [])
            new = {name: value for name, value in aggregate(rows).items() if name in self.names} if rows else None
            old = self.sent.pop(key, None)
            if old is not None and old != new:
                changes.append((True, key, old))
            if new is not None:
                if old != new:
                    changes.append((False, key, new))
                self.sent[key] = new
                self.updated_us[key] = now_us
        self.touched.clear()
        for key, old in list(self.sent.items()):
            if self.updated_us[key] + TTL_US <= now_us:
                changes.append((True, key, old))
                del self.sent[key], self.rows[key]
        return changes


def updates(rows: list[Row], *, is_retract: bool) -> pa.RecordBatch:
    batch = batch_of(rows)
    return make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["k"]))


def sent(table: pa.Table) -> list[tuple[bool, Any, dict[str, Any]]]:
    found = []
    for row in table.to_pylist():
        meta = row.pop(UPDATING_META)
        found.append((meta["is_retract"], row.pop("k", None), row))
    return found


def check(harness, model: Model) -> None:
    expected = model.flush(harness.clock.now_us())
    found = sent(harness.take_output())
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    for key in {key for _, key, _ in found}:
        # Taken back first, then added.
        flags = [is_retract for is_retract, found_key, _ in found if found_key == key]
        assert flags in ([True], [False], [True, False])


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(ADDS | ADDS | TAKES | OTHERS, max_size=12),
    keys=st.sampled_from([[], ["k"]]),
    is_updating=st.booleans(),
)
def test_changes_are_those_of_the_model(make, run, steps, keys, is_updating):
    aggregates = RETRACTABLE if is_updating else AGGREGATES
    config = {"keys": keys, "aggregates": aggregates, "ttl": TTL_US, "flush_interval": FLUSH_US}
    model = Model([each["as"] for each in aggregates], keys)
    clock = FakeClock()
    flushed_us = clock.now_us()
    stream = UPDATING if is_updating else STREAM
    with run(lambda: make("std.updating_aggregate", **config), [stream], clock=clock) as harness:
        for step in [*steps, Epoch(False)]:
            if isinstance(step, Add):
                harness.process(updates(list(step.rows), is_retract=False) if is_updating else batch_of(step.rows))
                for row in step.rows:
                    model.add(row)
            elif isinstance(step, TakeBack) and is_updating:
                for pick in step.picks:
                    there = [row for rows in model.rows.values() for row in rows]
                    if there:
                        row = there[pick % len(there)]
                        harness.process(updates([row], is_retract=True))
                        model.take_back(row)
            elif isinstance(step, Wait):
                clock.advance(step.time_us / 1e6)
                harness.tick()
                if clock.now_us() - flushed_us >= FLUSH_US:
                    flushed_us = clock.now_us()
                    check(harness, model)
            elif isinstance(step, Epoch):
                harness.checkpoint()
                flushed_us = clock.now_us()
                check(harness, model)
                if step.is_restored:
                    harness.restore()
        harness.end_of_data()
        check(harness, model)


@pytest.fixture
def totals(make, run):
    def totals(stream: ArroyoSchema = STREAM, aggregates: Any = COUNT, **config: Any):
        return run(
            lambda: make("std.updating_aggregate", keys=["k"], aggregates=aggregates, **config),
            [stream],
            clock=FakeClock(),
        )

    return totals


def test_a_time_to_live_alone_takes_back_results(totals):
    """No group needs to change for it."""
    subtask = totals(ttl=TTL_US, flush_interval=FLUSH_US)
    subtask.process(batch_of([Row("a", 1, 1)]))
    subtask.checkpoint()
    assert sent(subtask.take_output()) == [(False, "a", {"n": 1})]
    subtask.restore()
    subtask.clock.advance(TTL_US / 1e6)
    subtask.tick()
    assert sent(subtask.take_output()) == [(True, "a", {"n": 1})]
    assert subtask.counters["expired_keys"] == 1


def test_a_group_that_comes_back_after_its_end_starts_anew(totals):
    subtask = totals(ttl=TTL_US, flush_interval=FLUSH_US)
    for _ in range(3):
        subtask.process(batch_of([Row("a", 1, 1)]))
        subtask.checkpoint()
        subtask.restore()
        subtask.clock.advance(TTL_US / 1e6)
        subtask.checkpoint()
        subtask.restore()
    assert sent(subtask.output) == [(False, "a", {"n": 1}), (True, "a", {"n": 1})] * 3


def test_a_result_that_did_not_change_is_not_sent(totals):
    subtask = totals(aggregates=[{"function": "max", "column": "v", "as": "top"}])
    subtask.process(batch_of([Row("a", 5, 1)]))
    subtask.checkpoint()
    subtask.process(batch_of([Row("a", 3, 2)]))
    subtask.checkpoint()
    assert sent(subtask.output) == [(False, "a", {"top": 5})]


def test_taking_back_the_greatest_value_brings_back_the_second(totals):
    subtask = totals(UPDATING, [{"function": name, "column": "v", "as": name} for name in ("max", "median", "list")])
    subtask.process(updates([Row("a", 5, 1), Row("a", 3, 2), Row("a", 3, 3)], is_retract=False))
    subtask.checkpoint()
    subtask.restore()
    subtask.process(updates([Row("a", 5, 1)], is_retract=True))
    subtask.checkpoint()
    assert sent(subtask.output)[-1] == (False, "a", {"max": 3, "median": 3.0, "list": [3, 3]})


@pytest.mark.parametrize("name", ["_rows", "_updated_us", "_timer_us", "_is_retract", "k__count", "select", "id"])
def test_a_result_may_have_any_name_also_those_of_the_state(make, run, name):
    config = {"keys": ["k"], "aggregates": [{"function": "count", "as": name}, {"function": "sum", "column": "v"}]}
    subtask = run(lambda: make("std.updating_aggregate", **config), [STREAM])
    subtask.process(batch_of([Row("a", 5, 1)]))
    subtask.checkpoint()
    subtask.restore()
    subtask.process(batch_of([Row("a", 3, 2)]))
    subtask.checkpoint()
    assert sent(subtask.output)[-1] == (False, "a", {name: 2, "sum_v": 8})


def test_a_key_may_have_the_name_of_a_state_column(make, run):
    stream = ArroyoSchema(pa.schema({"n__count": pa.string()}), None)
    subtask = run(lambda: make("std.updating_aggregate", keys=["n__count"], aggregates=COUNT), [stream])
    subtask.process(pa.RecordBatch.from_pydict({"n__count": ["a", "a"]}, schema=stream.schema))
    subtask.checkpoint()
    subtask.restore()
    subtask.process(pa.RecordBatch.from_pydict({"n__count": ["a"]}, schema=stream.schema))
    subtask.checkpoint()
    assert sent(subtask.output)[-1] == (False, None, {"n__count": "a", "n": 3})


def test_a_result_cannot_have_the_name_of_a_key_or_of_the_column_of_changes(make, run):
    for name in ("k", UPDATING_META):
        with pytest.raises(ConfigError, match=r"there is a column .* already: give another name") as caught:
            run(make("std.updating_aggregate", keys=["k"], aggregates=[{"function": "count", "as": name}]), [STREAM])
        assert caught.value.field == "aggregates[0].as"


@pytest.mark.parametrize(("function", "left"), [("first", 3), ("last", 5)])
def test_first_and_last_follow_event_time_when_rows_are_taken_back(totals, function, left):
    subtask = totals(UPDATING, [{"function": function, "column": "v", "as": "v"}])
    rows = [Row("a", 1, 1), Row("a", 3, 2), Row("a", 5, 3), Row("a", 7, 4)]
    subtask.process(updates(rows, is_retract=False))
    subtask.process(updates([rows[0], rows[3]], is_retract=True))
    subtask.checkpoint()
    assert sent(subtask.output) == [(False, "a", {"v": left})]


def test_a_retraction_of_a_row_never_seen_is_counted_and_changes_nothing(totals):
    subtask = totals(UPDATING)
    subtask.process(updates([Row("a", 1, 1), Row("a", 1, 2)], is_retract=True))
    subtask.process(updates([Row("b", 1, 1)], is_retract=False))
    subtask.checkpoint()
    assert sent(subtask.take_output()) == [(False, "b", {"n": 1})]
    assert subtask.counters["unknown_retractions"] == 2
    subtask.process(updates([Row("b", 1, 1), Row("b", 1, 1)], is_retract=True))
    subtask.checkpoint()
    assert sent(subtask.take_output()) == [(True, "b", {"n": 1})]
    assert subtask.counters["unknown_retractions"] == 3


def test_results_feed_another_aggregate_as_changes(make, run, totals):
    counts = totals()
    outer = run(
        make("std.updating_aggregate", keys=["n"], aggregates=[{"function": "count", "as": "keys"}]),
        [counts.output_schema],
    )
    for rows in ([Row("a", 1, 1), Row("b", 1, 1)], [Row("a", 1, 1)], [Row("b", 1, 1)]):
        counts.process(batch_of(rows))
        counts.checkpoint()
        for batch in counts.take_output().to_batches():
            outer.process(batch)
        outer.checkpoint()
    live: dict[int, int] = {}
    for row in outer.output.to_pylist():
        if row[UPDATING_META]["is_retract"]:
            assert live.pop(row["n"]) == row["keys"]
        else:
            assert row["n"] not in live
            live[row["n"]] = row["keys"]
    assert live == {2: 2}


def test_without_a_time_to_live_nothing_is_forgotten(totals):
    subtask = totals(ttl=0, flush_interval=FLUSH_US)
    subtask.process(batch_of([Row("a", 1, 1)]))
    subtask.checkpoint()
    subtask.clock.advance(1e9)
    subtask.tick()
    assert sent(subtask.output) == [(False, "a", {"n": 1})]


def test_ids_are_those_of_the_keys(totals):
    subtask = totals()
    subtask.process(batch_of([Row("a", 1, 1), Row(None, 1, 1)]))
    subtask.checkpoint()
    found = {row["k"]: row[UPDATING_META]["id"] for row in subtask.output.to_pylist()}
    keys = pa.RecordBatch.from_pydict({"k": ["a", None]}, schema=pa.schema({"k": pa.string()}))
    assert [found["a"], found[None]] == row_ids(keys, ["k"]).to_pylist()


def test_windows_refuse_updating_input(make):
    with pytest.raises(ConfigError, match="cannot take back rows"):
        make("std.tumbling_window", size=10).output_schema([UPDATING])


def test_a_projection_keeps_what_tells_taken_back_rows(make, run):
    subtask = run(make("std.project", expressions=[{"name": "w", "sql": "v + 1"}]), [UPDATING])
    subtask.feed(updates([Row("a", 1, 1)], is_retract=True))
    assert subtask.output.column_names == [UPDATING_META, "w"]
    assert subtask.output.column(UPDATING_META).to_pylist()[0]["is_retract"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"aggregates": COUNT, "ttl": -1}, "ttl"),
        ({"aggregates": COUNT, "flush_interval": 0}, "flush_interval"),
        ({}, "aggregates"),
        ({"aggregates": COUNT, "keys": ["x"]}, "keys[0]"),
        ({"aggregates": [{"function": "count", "as": "k"}], "keys": ["k"]}, "aggregates[0].as"),
        ({"aggregates": [{"function": "sum", "column": UPDATING_META}]}, "aggregates[0].column"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, config, field):
    with pytest.raises(ConfigError) as raised:
        make("std.updating_aggregate", **config).output_schema([UPDATING])
    assert raised.value.field == field


def without_ids(table: pa.Table) -> list[tuple[bool, int, int | None]]:
    return [(row[UPDATING_META]["is_retract"], row["n"], row["total"]) for row in table.to_pylist()]


def test_without_keys_there_is_a_result_before_the_first_row_if_asked_for(make, run):
    total = {"function": "sum", "column": "v", "as": "total", "filter": "v > 0"}
    aggregates = [{"function": "count", "as": "n"}, total]

    def operator():
        return make("std.updating_aggregate", aggregates=aggregates, empty_group=True, ttl=60, flush_interval=10)

    harness = run(operator, [with_updating(STREAM)])
    harness.checkpoint()
    assert without_ids(harness.output) == [(False, 0, None)]
    harness.restore()
    harness.checkpoint()
    rows = [Row("a", 1, 0), Row("b", 2, 0)]
    harness.process(updates(rows, is_retract=False))
    harness.checkpoint()
    harness.process(updates(rows, is_retract=True))
    harness.checkpoint()
    found = without_ids(harness.output)
    assert found[-4:] == [(True, 0, None), (False, 2, 3), (True, 2, 3), (False, 0, None)]
    assert len(found) == 5


@pytest.mark.parametrize("condition", [{}, {"filter": "v > 0"}], ids=["all rows", "filtered"])
def test_what_was_sent_of_no_rows_is_taken_back_as_it_was(make, run, condition):
    functions = (
        "count",
        "sum",
        "mean",
        "max",
        "stddev_samp",
        "median",
        "count_distinct",
        "approx_count_distinct",
        "list",
    )
    aggregates = [{"function": name, "column": "v", "as": name, **condition} for name in functions]
    aggregates.append({"function": "count", "as": "rows", **condition})

    def operator():
        return make("std.updating_aggregate", aggregates=aggregates, empty_group=True)

    harness = run(operator, [STREAM])
    harness.checkpoint()
    harness.restore()
    harness.process(updates([Row("a", 1, 0)], is_retract=False).select(STREAM.names))
    harness.checkpoint()
    sent, back, new = ({name: row[name] for name in (*functions, "rows")} for row in harness.output.to_pylist())
    assert back == sent
    assert (sent["rows"], sent["count_distinct"], new["rows"]) == (0, 0, 1)


def test_partial_aggregates_meet_an_empty_group(make, run):
    counted = {"function": "count", "as": "n", "filter": "v > 0"}
    operator = make("std.updating_aggregate", aggregates=[counted], empty_group=True)
    partial = operator.partial([STREAM])
    assert partial is not None
    rows = partial.output_schema([STREAM])
    harness = run(lambda: make("std.updating_aggregate", aggregates=[counted], empty_group=True), [rows])
    harness.end_of_data()
    assert [row["n"] for row in harness.output.to_pylist()] == [0]


def test_an_empty_group_has_no_keys(make):
    with pytest.raises(ConfigError) as raised:
        make("std.updating_aggregate", keys=["k"], aggregates=[{"function": "count"}], empty_group=True)
    assert raised.value.field == "empty_group"
