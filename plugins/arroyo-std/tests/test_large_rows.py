"""Rows of one key, window or event time that no batch can hold, with an Arrow that overflows at some hundred bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_std.joins.layout import JoinLayout, JoinSettings, JoinType, KeyPair
from arroyo_std.joins.pairs import Ranges
from arroyo_std.ranking import order_codes, sort_order
from arroyo_std.row_values import group_rows
from arroyo_testing import OperatorHarness
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import make_updates, row_ids, with_updating

from .support.row_streams import TIME, Row, apply_updates, as_rows, batch_of, in_order
from .support.small_arrow import LIMIT_BYTES, check_sizes, shrink_arrow

WIDE = pa.schema({"k": pa.string(), "v": pa.int64(), "at": TIME, "text": pa.string()})
STREAM = ArroyoSchema(WIDE, "at")
OTHER = ArroyoSchema(pa.schema({"key": pa.string(), "w": pa.int64(), "seen": TIME}), "seen")
DESCENDING = [{"column": "v", "descending": True}]


def wide_rows(count: int, *, keys: str = "a", at: int | None = None) -> list[Row]:
    """Rows of about 80 bytes, each with a value and a time of its own, unless that is given."""
    return [
        {
            "k": keys[number % len(keys)],
            "v": number,
            "at": number if at is None else at,
            "text": f"{number:03}" + "x" * 50,
        }
        for number in range(count)
    ]


def some_at_a_time(rows: Sequence[Row]) -> list[Sequence[Row]]:
    return [rows[start : start + 4] for start in range(0, len(rows), 4)]


def updates_of(rows: Sequence[Row], *, is_retract: bool = False, schema: pa.Schema = WIDE) -> pa.RecordBatch:
    batch = batch_of(rows, schema)
    return make_updates(batch, is_retract=is_retract, ids=row_ids(batch, [schema.names[0]]))


def first_rows(rows: Sequence[Row], n: int) -> list[Row]:
    return in_order(sorted(rows, key=lambda row: -row["v"])[:n])


def without_rank(rows: Sequence[Row]) -> list[Row]:
    return in_order([{name: row[name] for name in WIDE.names} for row in rows])


def restart(subtask: OperatorHarness) -> None:
    subtask.checkpoint()
    subtask.restore()


@pytest.mark.parametrize("rank", [{}, {"rank_column": "rank"}], ids=["no ranks", "ranks"])
def test_changes_of_a_group_of_any_size_are_ranked(make, run, monkeypatch, rank):
    shrink_arrow(monkeypatch)
    config = {"n": 20, "partition_by": ["k"], "order_by": DESCENDING, **rank}
    subtask = run(partial(make, "std.top_n", **config), [with_updating(ArroyoSchema(WIDE))])
    rows = wide_rows(60)
    # The least of them is there several times, more often than a batch could hold it.
    copies = [rows[0]] * 12
    for some in some_at_a_time([*rows[::2], *copies, *rows[1::2]]):
        subtask.feed(updates_of(some))
    restart(subtask)
    for some in some_at_a_time(rows[12:]):
        subtask.feed(updates_of(some, is_retract=True))
    found = apply_updates(as_rows(subtask.output))
    assert without_rank(found) == first_rows([*rows[:12], *copies], 20)
    if rank:
        assert sorted(row["rank"] for row in found) == list(range(1, 21))
    check_sizes(subtask.output)


@pytest.mark.parametrize("rank", [{}, {"rank_column": "rank"}], ids=["no ranks", "ranks"])
def test_the_first_rows_of_a_group_may_be_of_any_size(make, run, monkeypatch, rank):
    shrink_arrow(monkeypatch)
    config = {"n": 20, "partition_by": ["k"], "order_by": DESCENDING, **rank}
    subtask = run(partial(make, "std.top_n", **config), [ArroyoSchema(WIDE)])
    hot, cold = wide_rows(150), wide_rows(2, keys="b")
    subtask.feed(batch_of(cold[:1], WIDE))
    for number, some in enumerate(some_at_a_time(hot)):
        subtask.feed(batch_of(some, WIDE))
        if number % 8 == 3:
            restart(subtask)
    subtask.feed(batch_of([hot[10], cold[1], hot[149]], WIDE))
    found = apply_updates(as_rows(subtask.output))
    assert without_rank(found) == in_order([*first_rows([*hot, hot[149]], 20), *cold])
    # What is not among the first is not kept for ever.
    log = subtask.operator._strategy._logged._view.get_all_parts()
    assert 20 <= sum(part.num_rows for part in log) < 120
    check_sizes(subtask.output)


def test_many_groups_may_be_of_any_size_together(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    config = {"n": 2, "partition_by": ["k"], "order_by": DESCENDING}
    subtask = run(partial(make, "std.top_n", **config), [ArroyoSchema(WIDE)])
    keys = "abcdefghijklmnopqrst"
    rows = wide_rows(60, keys=keys)
    for start in range(0, 60, 20):
        subtask.feed(batch_of(rows[start : start + 20], WIDE))
        restart(subtask)
    assert apply_updates(as_rows(subtask.output)) == in_order(rows[20:])


def joined(left: Sequence[Row], right: Sequence[Row], *, kind: str) -> Counter[tuple[Any, ...]]:
    """The values of all pairs, as all rows have one key."""
    pairs = [(mine["v"], theirs["w"]) for mine in left for theirs in right]
    if not right and kind in ("left", "full"):
        pairs = [(mine["v"], None) for mine in left]
    if not left and kind in ("right", "full"):
        pairs = [(None, theirs["w"]) for theirs in right]
    return Counter(pairs)


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("has_time", [True, False], ids=["event time", "no event time"])
def test_rows_of_a_key_of_any_size_are_taken_back_of_a_join(make, run, monkeypatch, kind, has_time):
    shrink_arrow(monkeypatch)
    inputs = [with_updating(stream if has_time else ArroyoSchema(stream.schema)) for stream in (STREAM, OTHER)]
    on = [{"left": "k", "right": "key"}]
    subtask = run(partial(make, "std.join", type=kind, on=on, ttl=0), inputs)
    left = wide_rows(40)
    right = [{"key": "a", "w": number, "seen": number} for number in range(3)]

    def what_is_out() -> Counter[tuple[Any, ...]]:
        return Counter((row["v"], row["w"]) for row in apply_updates(as_rows(subtask.output)))

    def change(rows: Sequence[Row], *, is_retract: bool) -> None:
        for some in some_at_a_time(rows):
            subtask.process(updates_of(some, is_retract=is_retract), 0)

    change([*left, left[7]], is_retract=False)
    subtask.process(updates_of(right, schema=OTHER.schema), 1)
    restart(subtask)
    change([*left[20:], left[7], {**left[0], "text": left[1]["text"]}], is_retract=True)
    assert subtask.counters["unknown_retractions"] == 1
    assert what_is_out() == joined(left[:20], right, kind=kind)
    subtask.process(updates_of(right, schema=OTHER.schema, is_retract=True), 1)
    assert what_is_out() == joined(left[:20], [], kind=kind)
    restart(subtask)
    subtask.process(updates_of(right, schema=OTHER.schema), 1)
    change(left[:20], is_retract=True)
    assert what_is_out() == joined([], right, kind=kind)
    check_sizes(subtask.output)


@pytest.mark.parametrize("keys", ["a", "abcdefghijklmnopqrstuvwxyz"], ids=["one key", "many keys"])
@pytest.mark.parametrize("size", [40, 4])
def test_sliding_windows_may_be_of_any_size(make, run, monkeypatch, keys, size):
    shrink_arrow(monkeypatch)
    aggregates = [{"function": "max", "column": "text", "as": "top"}, {"function": "count", "as": "n"}]
    config = {"size": size, "slide": 1 if size == 40 else 2, "keys": ["k"], "aggregates": aggregates}
    subtask = run(partial(make, "std.sliding_window", **config), [STREAM])
    rows = wide_rows(60, keys=keys)
    for number, some in enumerate(some_at_a_time(rows)):
        subtask.feed(batch_of(some, WIDE))
        if number % 5 == 4:
            subtask.watermark(Watermark.event_time(some[0]["at"]))
            restart(subtask)
    subtask.end_of_data()
    expected = []
    for end in range(config["slide"], 60 + size, config["slide"]):
        inside = [row for row in rows if end - size <= row["at"] < end]
        for key in sorted({row["k"] for row in inside}):
            own = [row for row in inside if row["k"] == key]
            expected.append({"k": key, "window_end": end, "top": max(row["text"] for row in own), "n": len(own)})
    found = [{name: row[name] for name in ("k", "window_end", "top", "n")} for row in as_rows(subtask.output)]
    assert in_order(found) == in_order(expected)
    check_sizes(subtask.output)


def test_a_tumbling_window_of_one_key_may_be_of_any_size(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    aggregates = [{"function": "max", "column": "text", "as": "top"}]
    subtask = run(partial(make, "std.tumbling_window", size=100, keys=["k"], aggregates=aggregates), [STREAM])
    rows = wide_rows(40)
    for row in rows:
        subtask.feed(batch_of([row], WIDE))
        restart(subtask)
    subtask.end_of_data()
    assert [row["top"] for row in as_rows(subtask.output)] == [rows[-1]["text"]]


def test_window_functions_see_all_rows_of_a_time_of_any_size(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    expressions = {
        "place": "row_number() over (partition by k order by v desc)",
        "next": "lag(text) over (partition by k order by v desc)",
        "top": "max(text) over (partition by k)",
        "length": "character_length(first_value(text) over (partition by k order by v))",
    }
    named = [{"name": name, "sql": sql} for name, sql in expressions.items()]
    subtask = run(partial(make, "std.window_function", expressions=named), [STREAM])
    rows = wide_rows(40, at=5)
    for some in some_at_a_time(rows[::3] + rows[1::3] + rows[2::3]):
        subtask.feed(batch_of(some, WIDE))
    restart(subtask)
    subtask.feed(batch_of([{**rows[0], "k": "b"}], WIDE))
    subtask.end_of_data()
    texts = [row["text"] for row in rows]
    expected = [
        {**row, "place": 40 - row["v"], "next": text, "top": texts[-1], "length": 53}
        for row, text in zip(rows, [*texts[1:], None], strict=True)
    ]
    alone = {**rows[0], "k": "b", "place": 1, "next": None, "top": texts[0], "length": 53}
    assert in_order(as_rows(subtask.output)) == in_order([*expected, alone])
    assert subtask.output.schema.field("next").type == pa.string()
    check_sizes(subtask.output)


def test_the_first_rows_of_a_window_may_be_of_any_size(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    config = {"n": 30, "partition_by": ["k", "at"], "order_by": DESCENDING, "rank_column": "rank"}
    subtask = run(partial(make, "std.top_n", **config), [STREAM])
    rows = wide_rows(40, at=5)
    for some in some_at_a_time(rows):
        subtask.feed(batch_of(some, WIDE))
    restart(subtask)
    subtask.end_of_data()
    assert as_rows(subtask.output) == [{**row, "rank": 40 - row["v"]} for row in rows[:9:-1]]
    check_sizes(subtask.output)


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
def test_windows_of_a_join_may_be_of_any_size(make, run, monkeypatch, kind):
    shrink_arrow(monkeypatch)
    on = [{"left": "k", "right": "key"}]
    subtask = run(partial(make, "std.window_join", type=kind, on=on, size=100), [STREAM, OTHER])
    left = wide_rows(40)
    right = [{"key": "a", "w": number, "seen": number} for number in range(3)]
    for some in some_at_a_time(left):
        subtask.process(batch_of([*some, {**some[0], "k": "nobody"}], WIDE), 0)
    subtask.process(batch_of(right, OTHER.schema), 1)
    subtask.end_of_data()
    expected = joined(left, right, kind=kind)
    if kind in ("left", "full"):
        expected += joined(left[::4], [], kind=kind)
    assert Counter((row["v"], row["w"]) for row in as_rows(subtask.output)) == expected
    check_sizes(subtask.output)


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_table_to_look_rows_up_in_may_be_of_any_size(make, run, monkeypatch, tmp_path, kind):
    shrink_arrow(monkeypatch)
    rows = [{"key": key, "n": number, "text": f"{number:03}" + "x" * 50} for number, key in enumerate("abcd" * 10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table.parquet", row_group_size=4)
    config = {"type": kind, "on": [{"left": "k", "right": "key"}], "table": {"path": str(tmp_path / "table.parquet")}}
    subtask = run(make("std.lookup_join", **config), [STREAM])
    left = [{**row, "k": key} for row, key in zip(wide_rows(3), "abz", strict=True)]
    subtask.feed(batch_of(left, WIDE))
    expected = [(row["v"], each["n"]) for row in left for each in rows if row["k"] == each["key"]]
    if kind == "left":
        expected.append((2, None))
    assert Counter((row["v"], row["n"]) for row in as_rows(subtask.output)) == Counter(expected)
    check_sizes(subtask.output)


def test_a_wide_row_may_be_in_any_number_of_windows(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    subtask = run(make("std.assign_window", size=20, slide=1), [STREAM])
    rows = wide_rows(3)
    subtask.feed(batch_of(rows, WIDE))
    found = [(row["v"], row["window_start"]) for row in as_rows(subtask.output)]
    assert found == [(row["v"], row["at"] + start) for row in rows for start in range(-19, 1)]
    check_sizes(subtask.output)


@pytest.mark.parametrize("outer", [False, True])
def test_a_wide_row_may_have_any_number_of_elements(make, run, monkeypatch, outer):
    shrink_arrow(monkeypatch)
    schema = pa.schema({"text": pa.string(), "list": pa.list_(pa.int64()), "v": pa.int64()})
    rows = [{"text": f"{number}" + "x" * 50, "list": [*range(10 * number)], "v": number} for number in range(4)]
    config = {"column": "list", "outer": outer, "ordinality": "place"}
    subtask = run(make("std.unnest", **config), [ArroyoSchema(schema)])
    subtask.feed(pa.RecordBatch.from_pylist(rows, schema=schema))
    found = [(row["v"], row["text"][0], row["list"], row["place"]) for row in subtask.output.to_pylist()]
    expected = [(row["v"], str(row["v"]), each, each + 1) for row in rows for each in row["list"]]
    assert found == [*([(0, "0", None, None)] if outer else []), *expected]
    check_sizes(subtask.output)


def test_the_last_rows_of_keys_may_be_of_any_size(make, run, monkeypatch):
    shrink_arrow(monkeypatch)
    subtask = run(partial(make, "std.deduplicate", keys=["k"], keep="last", ttl=0), [STREAM])
    rows = wide_rows(26, keys="abcdefghijklmnopqrstuvwxyz")
    for some in some_at_a_time(rows):
        subtask.feed(batch_of(some, WIDE))
    restart(subtask)
    # Narrow rows in the place of wide ones; one of them is older, and changes nothing.
    narrow = [{**row, "at": 100, "text": "y"} for row in rows]
    subtask.feed(batch_of([{**narrow[0], "at": -1}, *narrow[1:]], WIDE))
    assert apply_updates(as_rows(subtask.output)) == in_order([rows[0], *narrow[1:]])
    assert subtask.counters["duplicates"] == 1
    check_sizes(subtask.output)


def test_pairs_that_no_batch_holds_come_in_several(monkeypatch):
    streams = [STREAM, OTHER]
    layout = JoinLayout(JoinSettings(type=JoinType.INNER, on=(KeyPair("k", "key"),), prefixes=("l_", "r_")), streams)
    original = JoinLayout._take

    def limited(self: JoinLayout, index: int, side: Any, rows: Any) -> list[pa.Array]:
        if len(rows) > 3:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return original(self, index, side, rows)

    monkeypatch.setattr(JoinLayout, "_take", limited)
    left = batch_of(wide_rows(2), WIDE)
    right = batch_of([{"key": "a", "w": number, "seen": 0} for number in range(5)], OTHER.schema)
    mine, theirs = np.repeat([0, 1], 5), np.tile(np.arange(5), 2)
    parts = list(layout.matched(left, mine, right, theirs, []))
    assert len(parts) == 4
    found = [(row["v"], row["w"]) for part in parts for row in part.to_pylist()]
    assert found == list(zip(mine.tolist(), theirs.tolist(), strict=True))


@given(counts=st.lists(st.integers(0, 5), max_size=8), limit=st.integers(1, 7))
def test_pairs_are_the_same_at_any_limit(counts, limit):
    first = np.arange(len(counts), dtype=np.int64) * 10
    parts = list(Ranges(first, np.array(counts, dtype=np.int64)).chunks(limit))
    pairs = [pair for rows, matches in parts for pair in zip(rows.tolist(), matches.tolist(), strict=True)]
    assert pairs == [(row, row * 10 + place) for row, count in enumerate(counts) for place in range(count)]
    assert all(len(rows) == limit for rows, _ in parts[:-1])


VALUES = st.fixed_dictionaries(
    {
        "number": st.none() | st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
        "text": st.none() | st.sampled_from(["", "ab", "cd", "efg"]),
        "list": st.none() | st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "struct": st.none() | st.fixed_dictionaries({"a": st.none() | st.sampled_from(["p", "q"])}),
        "map": st.none() | st.lists(st.tuples(st.sampled_from(["m"]), st.sampled_from([1, 2])), max_size=1),
    }
)
KINDS = pa.schema(
    {
        "number": pa.float64(),
        "text": pa.string(),
        "list": pa.list_(pa.string()),
        "struct": pa.struct({"a": pa.string()}),
        "map": pa.map_(pa.string(), pa.int64()),
    }
)


@given(rows=st.lists(VALUES, max_size=12), data=st.data())
def test_rows_are_sorted_by_the_columns_one_after_the_other(rows, data):
    names = data.draw(st.lists(st.sampled_from(KINDS.names), max_size=3))
    whole = pa.RecordBatch.from_pylist(rows, schema=KINDS)
    cut = data.draw(st.integers(0, len(rows)))
    table = pa.Table.from_batches([whole.slice(0, cut), whole.slice(cut)])
    codes = [code for name in names for code in order_codes(whole.column(name))]
    expected = np.lexsort(codes[::-1]).tolist() if codes else list(range(len(rows)))
    assert sort_order([whole.column(name) for name in names], len(rows)).tolist() == expected
    assert sort_order([table.column(name) for name in names], len(rows)).tolist() == expected


@given(rows=st.lists(VALUES, max_size=12), data=st.data())
def test_equal_rows_are_found_in_chunked_columns_as_in_arrays(rows, data):
    names = data.draw(st.lists(st.sampled_from(KINDS.names), min_size=1, unique=True))
    schema = pa.schema([KINDS.field(name) for name in names])
    whole = pa.RecordBatch.from_pylist(rows, schema=schema)
    cut = data.draw(st.integers(0, len(rows)))
    table = pa.Table.from_batches([whole.slice(0, cut), whole.slice(cut)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arroyo_core.state.chunks.MAX_CHUNK_BYTES", LIMIT_BYTES // 10)
        found = group_rows(table.columns, table.num_rows)
    expected = group_rows(whole.columns, whole.num_rows)
    assert (found.codes.tolist(), found.count) == (expected.codes.tolist(), expected.count)
