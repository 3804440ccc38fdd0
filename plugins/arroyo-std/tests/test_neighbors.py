"""std.neighbors against lag and lead of DuckDB, in random streams, and at its edges."""

from __future__ import annotations

from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from arroyo_std import event_groups
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ConfigError

from .support.row_streams import (
    COLUMNS,
    STREAM,
    as_rows,
    batch_of,
    feed,
    in_order,
    streams,
    timely,
)
from .support.small_arrow import shrink_arrow

ORDER = '"at", v nulls last'
LAG = {"function": "lag", "column": "v", "as": "before"}
LEAD = {"function": "lead", "column": "v", "as": "behind"}
VALUES = [
    [LAG],
    [LEAD],
    [LAG, LEAD],
    [{**LAG, "offset": 3, "default": "-9"}],
    [{**LEAD, "offset": 2, "default": "7"}, {**LAG, "offset": 2}, {**LEAD, "as": "next"}],
]


def sql(value: dict[str, Any], ttl_us: int) -> str:
    offset, default = value.get("offset", 1), value.get("default", "NULL")
    call, window = f"{value['function']}({{}}, {offset})", f"(partition by k order by {ORDER})"
    apart = f'abs(epoch_us({call.format(chr(34) + "at" + chr(34))} over {window}) - epoch_us("at"))'
    limit = f" and {apart} <= {ttl_us}" if ttl_us else ""
    found = f"{call.format('v')} over {window}"
    is_there = f"{call.format('1')} over {window} is not null{limit}"
    return f"case when {is_there} then {found} else {default} end"


@pytest.mark.usefixtures("limits")
@settings(max_examples=150, deadline=None)
@given(
    steps=streams(), values=st.sampled_from(VALUES), ttl=st.sampled_from([0, 1, 7, 1000]), parallelism=st.integers(1, 3)
)
def test_duckdb_computes_the_same_of_rows_that_are_not_late(make, steps, values, ttl, parallelism):
    operator = partial(make, "std.neighbors", keys=["k"], values=values, ttl=ttl)
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        table = duckdb.from_arrow(pa.Table.from_batches([batch_of(timely(steps))]))
        columns = ", ".join(sql(value, ttl) for value in values)
        expected = table.query("events", f'select k, v, epoch_us("at"), {columns} from events').fetchall()
        found = [tuple(row.values()) for row in as_rows(harness.output)]
        assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize("ttl", [0, 10, 1000])
def test_the_watermark_that_goes_on_never_overtakes_a_row_that_is_still_to_come(make, run, ttl):
    subtask = run(make("std.neighbors", keys=["k"], values=[LEAD], ttl=ttl), [STREAM])
    passed = None
    for time in range(0, 100, 7):
        before = subtask.output.num_rows
        subtask.feed(
            batch_of([{"k": "ab"[time % 2], "v": time, "at": time}, {"k": "once" + str(time), "v": 0, "at": time}])
        )
        subtask.watermark(Watermark.event_time(time))
        fresh = as_rows(subtask.output)[before:]
        assert passed is None or all(row["at"] >= passed for row in fresh)
        sent = [each.event_time_us for each in subtask.watermarks if each.event_time_us is not None]
        assert sent == [mark - ttl for mark in range(0, time + 1, 7)] if ttl else sent == []
        passed = max(sent, default=None)
    subtask.end_of_data()
    assert subtask.output.num_rows == 30


def test_a_row_waits_for_the_rows_behind_it_or_for_the_time_after_which_they_do_not_count(make, run):
    values = [{**LEAD, "offset": 2, "default": "-1"}]
    subtask = run(partial(make, "std.neighbors", keys=["k"], values=values, ttl=10), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}, {"k": "a", "v": 2, "at": 5}, {"k": "a", "v": 3, "at": 10}]))
    subtask.watermark(Watermark.event_time(10))
    assert subtask.output.num_rows == 0
    subtask.checkpoint()
    subtask.restore()
    subtask.watermark(Watermark.event_time(11))
    assert [(row["v"], row["behind"]) for row in as_rows(subtask.output)] == [(1, 3)]
    subtask.watermark(Watermark.event_time(15))
    assert subtask.output.num_rows == 1
    subtask.watermark(Watermark.event_time(16))
    assert [(row["v"], row["behind"]) for row in as_rows(subtask.output)] == [(1, 3), (2, -1)]
    subtask.end_of_data()
    assert [(row["v"], row["behind"]) for row in as_rows(subtask.output)] == [(1, 3), (2, -1), (3, -1)]


def test_a_null_of_a_neighbor_is_a_value_and_not_the_default(make, run):
    subtask = run(make("std.neighbors", keys=["k"], values=[{**LAG, "default": "0"}]), [STREAM])
    subtask.feed(batch_of([{"k": None, "v": None, "at": 0}, {"k": None, "v": 4, "at": 1}, {"k": "a", "v": 5, "at": 2}]))
    subtask.end_of_data()
    assert [(row["k"], row["v"], row["before"]) for row in as_rows(subtask.output)] == [
        (None, None, 0),
        (None, 4, None),
        ("a", 5, 0),
    ]


def test_rows_of_one_time_are_in_the_order_asked_for_in_any_order_of_arrival(make, run):
    rows = [{"k": "a", "v": value, "at": 0} for value in (3, None, 1, 2)]
    for orders, expected in [
        ([{"column": "v", "descending": True}], [(3, None), (2, 3), (1, 2), (None, 1)]),
        ([{"column": "v", "nulls_last": False}], [(None, None), (1, None), (2, 1), (3, 2)]),
        ([], [(1, None), (2, 1), (3, 2), (None, 3)]),
    ]:
        for turn in range(4):
            operator = partial(make, "std.neighbors", keys=["k"], values=[LAG], order_by=orders)
            turned = rows[turn:] + rows[:turn]
            subtask = run(operator, [STREAM]).feed(batch_of(turned[:2]))
            subtask.checkpoint()
            subtask.restore()
            subtask.feed(batch_of(turned[2:]))
            subtask.end_of_data()
            assert [(row["v"], row["before"]) for row in as_rows(subtask.output)] == expected


def test_late_rows_and_rows_without_a_time_are_counted_and_no_neighbors(make, run):
    subtask = run(make("std.neighbors", keys=["k"], values=[LAG]), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 5}, {"k": "a", "v": 9, "at": None}]))
    subtask.watermark(Watermark.event_time(8))
    subtask.feed(batch_of([{"k": "a", "v": 2, "at": 7}, {"k": "a", "v": 3, "at": 8}]))
    subtask.end_of_data()
    assert [(row["v"], row["before"]) for row in as_rows(subtask.output)] == [(1, None), (3, 1)]
    assert subtask.counters == {"late_rows": 1, "null_event_times": 1}


def test_values_may_be_lists_and_structs(make, run):
    kinds = {"tags": pa.list_(pa.string()), "point": pa.struct({"x": pa.int64()})}
    schema = pa.schema([*COLUMNS, *(pa.field(name, kind) for name, kind in kinds.items())])
    values = [{"function": "lag", "column": name, "as": f"old_{name}"} for name in kinds]
    subtask = run(partial(make, "std.neighbors", keys=["k"], values=values), [ArroyoSchema(schema, "at")])
    rows = [{"k": "a", "v": at, "at": at, "tags": ["x", str(at)], "point": {"x": at}} for at in range(3)]
    for row in rows:
        subtask.feed(batch_of([row], schema))
        subtask.watermark(Watermark.event_time(row["at"] + 1))
        subtask.checkpoint()
        subtask.restore()
    subtask.end_of_data()
    found = as_rows(subtask.output)
    assert [row["old_tags"] for row in found] == [None, *(row["tags"] for row in rows[:2])]
    assert [row["old_point"] for row in found] == [None, *(row["point"] for row in rows[:2])]


@pytest.mark.parametrize("ttl", [0, 2])
def test_many_due_rows_are_taken_in_parts_that_do_not_matter(make, run, monkeypatch, ttl):
    rows = [{"k": "ab"[place % 2], "v": place % 5, "at": place * 7 % 11} for place in range(60)]
    results = []
    for limit in (1_000, 7, 1):
        monkeypatch.setattr(event_groups, "FINISH_ROWS", limit)
        subtask = run(make("std.neighbors", keys=["k"], values=VALUES[-1], ttl=ttl), [STREAM]).feed(batch_of(rows))
        subtask.end_of_data()
        results.append(in_order(as_rows(subtask.output)))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("values", [[LAG], [LAG, LEAD]])
def test_rows_of_a_key_may_be_more_than_a_batch_can_hold(make, run, monkeypatch, values):
    shrink_arrow(monkeypatch)
    wide = pa.schema([*COLUMNS, pa.field("text", pa.string())])
    named = [{**value, "column": "text", "offset": 2} for value in values]
    subtask = run(partial(make, "std.neighbors", keys=["k"], values=named, ttl=0), [ArroyoSchema(wide, "at")])
    texts = [f"{at:03}" + "x" * 50 for at in range(40)]
    rows = [{"k": "a", "v": at, "at": at, "text": texts[at]} for at in range(40)]
    for start in range(0, 40, 8):
        subtask.feed(batch_of(rows[start : start + 8][::-1], wide))
        if start == 16:
            subtask.watermark(Watermark.event_time(17))
        subtask.checkpoint()
        subtask.restore()
    subtask.end_of_data()
    found = {row["v"]: row for row in as_rows(subtask.output)}
    assert len(found) == 40
    assert [found[at]["before"] for at in range(40)] == [None, None, *texts[:-2]]
    if len(values) > 1:
        assert [found[at]["behind"] for at in range(40)] == [*texts[2:], None, None]
    assert subtask.output.schema.field("before").type == pa.string()


def test_what_is_kept_of_a_key_does_not_grow_and_goes_with_its_time(make, run):
    subtask = run(make("std.neighbors", keys=["k"], values=[{**LAG, "offset": 2}, LEAD], ttl=20), [STREAM])
    for time in range(0, 2000, 5):
        subtask.feed(batch_of([{"k": "a", "v": time, "at": time}]))
        subtask.watermark(Watermark.event_time(time + 1))
        kept = subtask.operator._tails._view.get_all()
        assert kept.num_rows <= 3
    subtask.feed(batch_of([{"k": "b", "v": 0, "at": 9000}]))
    subtask.watermark(Watermark.event_time(9001))
    assert subtask.operator._tails._view.get_all().column("k").to_pylist() == ["b"]


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        ({"keys": ["kk"], "values": [LAG]}, "keys[0]", "no column 'kk'"),
        ({"keys": ["k", "k"], "values": [LAG]}, "keys[1]", "twice"),
        ({"values": []}, "values", "missing"),
        ({"values": [{**LAG, "column": "w"}]}, "values[0].column", "no column 'w'"),
        ({"values": [{**LAG, "as": "v"}]}, "values[0].as", "already"),
        ({"values": [LAG, {**LEAD, "as": "before"}]}, "values[1].as", "already"),
        ({"values": [{"column": "v", "as": "x"}]}, "values[0].function", "missing"),
        ({"values": [{**LAG, "offset": 0}]}, "values[0].offset", "from 1"),
        ({"values": [{**LAG, "default": "'none'"}]}, "values[0].default", "is no int64"),
        ({"values": [{**LAG, "default": "v"}]}, "values[0].default", "no column 'v'"),
        ({"values": [LAG], "order_by": [{"column": "w"}]}, "order_by[0].column", "no column 'w'"),
        ({"values": [LAG], "ttl": -1}, "ttl", "negative"),
    ],
)
def test_mistakes_are_named_with_their_place(make, config, field, reason):
    with pytest.raises(ConfigError, match=reason) as error:
        make("std.neighbors", **config).output_schema([STREAM])
    assert error.value.field == field


def test_rows_that_are_kept_for_ever_are_told_to_the_linter(make):
    operator = make("std.neighbors", keys=["k"], values=[LAG], ttl=0)
    found = operator.unbounded_state([STREAM])
    assert "the last rows of every key" in found.reason
    assert "ttl" in found.fix
    assert operator.needs_watermark([STREAM])


def test_rows_that_are_taken_back_or_have_no_time_are_refused(make):
    operator = make("std.neighbors", keys=["k"], values=[LAG])
    with pytest.raises(ConfigError, match="updating"):
        operator.output_schema([with_updating(STREAM)])
    with pytest.raises(ConfigError, match=r"std\.watermark"):
        operator.output_schema([ArroyoSchema(COLUMNS)])
