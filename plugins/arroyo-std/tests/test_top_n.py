"""std.top_n against slow and obvious models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from arroyo_std.ranking import OrderBy, Ranking
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

from .support.row_streams import (
    COLUMNS,
    STREAM,
    TIME,
    Batch,
    EndOfEpoch,
    Row,
    apply_updates,
    as_rows,
    batch_of,
    feed,
    in_order,
    streams,
    timely,
)

DESCENDING = [{"column": "v", "descending": True}]
UPDATING = with_updating(ArroyoSchema(COLUMNS))


def sort_key(row: Row, *, descending: bool, nulls_last: bool) -> Any:
    """By `v` as asked for, then by all columns, nulls last."""
    value = row["v"]
    null_place = (value is None) == nulls_last
    first = (null_place, 0 if value is None else -value if descending else value)
    return first, [(value is None, 0 if value is None else value) for value in (row["k"], row["v"], row["at"])]


def first_rows(rows: Sequence[Row], n: int, *, descending: bool = True, nulls_last: bool = True) -> list[Row]:
    key = partial(sort_key, descending=descending, nulls_last=nulls_last)
    return [{**row, "rank": place + 1} for place, row in enumerate(sorted(rows, key=key)[:n])]


def grouped(rows: Sequence[Row], *names: str) -> list[list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(groups.values())


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(
    steps=streams(),
    n=st.integers(1, 3),
    parallelism=st.integers(1, 3),
    partition=st.sampled_from([["at"], ["k", "at"]]),
    descending=st.booleans(),
    nulls_last=st.booleans(),
)
def test_every_event_time_has_its_first_rows_once(make, steps, n, parallelism, partition, descending, nulls_last):
    order = [{"column": "v", "descending": descending, "nulls_last": nulls_last}]
    operator = partial(make, "std.top_n", n=n, partition_by=partition, order_by=order, rank_column="rank")
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        expected = [
            row
            for group in grouped(timely(steps), *partition)
            for row in first_rows(group, n, descending=descending, nulls_last=nulls_last)
        ]
        assert in_order(as_rows(harness.output)) == in_order(expected)


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(
    steps=streams(),
    n=st.integers(1, 3),
    parallelism=st.integers(1, 3),
    partition=st.sampled_from([[], ["k"]]),
    has_rank=st.booleans(),
)
def test_what_is_left_of_added_rows_are_the_first(make, steps, n, parallelism, partition, has_rank):
    config = {
        "n": n,
        "partition_by": partition,
        "order_by": DESCENDING,
        **({"rank_column": "rank"} if has_rank else {}),
    }
    with ParallelHarness(partial(make, "std.top_n", **config), inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        rows = [row for step in steps if isinstance(step, Batch) for row in step.rows]
        expected = [row for group in grouped(rows, *partition) for row in first_rows(group, n)]
        if not has_rank:
            expected = [{name: row[name] for name in COLUMNS.names} for row in expected]
        assert apply_updates(as_rows(harness.output)) == in_order(expected)


CHANGES = st.fixed_dictionaries(
    {
        "k": st.none() | st.sampled_from(["a", "b"]),
        "v": st.none() | st.integers(0, 2),
        "at": st.sampled_from([0, 1]),
        "is_retract": st.booleans(),
    }
)


def updates_of(rows: Sequence[Row]) -> pa.RecordBatch:
    batch = batch_of(rows)
    mask = np.array([row["is_retract"] for row in rows], dtype=np.bool_)
    return make_updates(batch, is_retract=mask, ids=row_ids(batch, ["k"]))


@pytest.mark.usefixtures("limits")
@settings(max_examples=100, deadline=None)
@given(
    steps=streams(CHANGES),
    n=st.integers(1, 3),
    parallelism=st.integers(1, 3),
    partition=st.sampled_from([[], ["k"]]),
    has_rank=st.booleans(),
)
def test_what_is_left_of_added_and_taken_back_rows_are_the_first(make, steps, n, parallelism, partition, has_rank):
    """Also where a row is taken back before it is added: it counts once it has been added once more."""
    config = {
        "n": n,
        "partition_by": partition,
        "order_by": DESCENDING,
        **({"rank_column": "rank"} if has_rank else {}),
    }
    with ParallelHarness(partial(make, "std.top_n", **config), inputs=[UPDATING], parallelism=parallelism) as harness:
        counts: dict[tuple[Any, ...], int] = {}
        for step in steps:
            if isinstance(step, Batch) and step.rows:
                harness.process(updates_of(step.rows))
                for row in step.rows:
                    values = tuple(row[name] for name in COLUMNS.names)
                    counts[values] = counts.get(values, 0) + (-1 if row["is_retract"] else 1)
            if isinstance(step, EndOfEpoch):
                harness.checkpoint()
                if step.parallelism:
                    harness.restore(step.parallelism)
        rows = [dict(zip(COLUMNS.names, values, strict=True)) for values, count in counts.items() for _ in range(count)]
        expected = [row for group in grouped(rows, *partition) for row in first_rows(group, n)]
        if not has_rank:
            expected = [{name: row[name] for name in COLUMNS.names} for row in expected]
        assert apply_updates(as_rows(harness.output)) == in_order(expected)


def test_a_long_log_of_changes_is_rewritten_and_means_the_same(make, run):
    subtask = run(
        partial(make, "std.top_n", n=1, partition_by=["k"], order_by=DESCENDING, rank_column="rank"), [UPDATING]
    )
    row = {"k": "a", "at": 0}
    subtask.feed(updates_of([{**row, "v": 0, "is_retract": False}, {**row, "v": -1, "is_retract": False}]))
    for value in range(1, 150):
        changes = [{**row, "v": value - 1, "is_retract": True}, {**row, "v": value, "is_retract": False}]
        subtask.feed(updates_of(changes))
        if value % 20 == 0:
            subtask.checkpoint()
            subtask.restore()
    log = subtask.operator._strategy._logged._view.get_all()
    assert log.num_rows < 90
    assert apply_updates(as_rows(subtask.output)) == [{"k": "a", "v": 149, "at": 0, "rank": 1}]


def test_windows_and_top_n_agree_with_duckdb(make, run):
    rows = [{"k": f"k{place % 5}", "v": place * place % 23, "at": place} for place in range(200)]
    window = run(
        make("std.tumbling_window", size=40, keys=["k"], aggregates=[{"function": "sum", "column": "v"}]), [STREAM]
    )
    window.feed(batch_of(rows))
    window.end_of_data()
    hot = run(
        make(
            "std.top_n",
            n=2,
            partition_by=["window_start"],
            order_by=[{"column": "sum_v", "descending": True}, {"column": "k"}],
            rank_column="rank",
        ),
        [window.output_schema],
    )
    for batch in window.output.to_batches():
        hot.feed(batch)
    hot.watermark(Watermark.event_time(80))
    assert hot.output.column("rank").to_pylist() == [1, 2, 1, 2]
    hot.end_of_data()
    table = duckdb.from_arrow(pa.Table.from_batches([batch_of(rows)]))
    expected = table.query(
        "events",
        """with sums as (select k, epoch_us("at") // 40 * 40 as start, sum(v) as total from events group by all)
           select start, k, total, row_number() over (partition by start order by total desc, k) as place
           from sums qualify place <= 2 order by start, place""",
    ).fetchall()
    found = [(row["window_start"], row["k"], row["sum_v"], row["rank"]) for row in as_rows(hot.output)]
    assert found == [(start, key, int(total), place) for start, key, total, place in expected]


def test_a_place_that_changes_is_taken_back_and_added_under_one_id(make, run):
    subtask = run(make("std.top_n", n=2, order_by=DESCENDING, rank_column="rank"), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 0}]), batch_of([{"k": "b", "v": 5, "at": 0}]))
    rows = as_rows(subtask.output)
    found = [(row["k"], row["rank"], row["_updating_meta"]["is_retract"]) for row in rows]
    assert found == [("a", 1, False), ("a", 1, True), ("b", 1, False), ("a", 2, False)]
    first, *_, fourth = (row["_updating_meta"]["id"] for row in rows)
    assert [row["_updating_meta"]["id"] for row in rows] == [first, first, first, fourth]
    assert first != fourth


def test_a_row_that_is_not_among_the_first_changes_nothing_and_is_not_kept(make, run):
    subtask = run(make("std.top_n", n=1, partition_by=["k"], order_by=DESCENDING), [STREAM])
    subtask.feed(*(batch_of([{"k": "a", "v": -value, "at": 0}]) for value in range(50)))
    assert subtask.output.num_rows == 1
    lists = subtask.operator._strategy._view.get_all().column("_rows")
    assert [len(rows) for rows in lists.to_pylist()] == [1]


def test_late_rows_and_rows_without_time_are_counted_and_dropped(make, run):
    subtask = run(make("std.top_n", n=1, partition_by=["at"], order_by=DESCENDING), [STREAM])
    subtask.watermark(Watermark.event_time(10))
    subtask.feed(batch_of([{"k": "a", "v": 1, "at": 9}, {"k": "a", "v": 1, "at": None}, {"k": "b", "v": 1, "at": 10}]))
    subtask.end_of_data()
    assert [row["k"] for row in as_rows(subtask.output)] == ["b"]
    assert subtask.counters == {"late_rows": 1, "null_event_times": 1}


def test_many_epochs_of_one_window_keep_few_rows(make, run):
    subtask = run(partial(make, "std.top_n", n=2, partition_by=["at"], order_by=DESCENDING), [STREAM])
    parts = []
    for epoch in range(1, 50):
        subtask.feed(batch_of([{"k": "a", "v": value * epoch % 41, "at": 5} for value in range(10)]))
        parts.append(len(subtask.operator._strategy._groups._rows._view.get_batches(5)))
        subtask.checkpoint()
        subtask.restore()
    assert max(parts) <= 17
    subtask.end_of_data()
    assert subtask.output.column("v").to_pylist() == [40, 40]


def test_rows_are_reduced_before_the_shuffle_and_mean_the_same(make, run):
    rows = [{"k": "ab"[place % 2], "v": place % 13, "at": place % 3} for place in range(60)]
    config = {"n": 2, "partition_by": ["k", "at"], "order_by": DESCENDING, "rank_column": "rank"}
    reduced = run(make("std.top_n", **config).partial([STREAM]), [STREAM]).feed(batch_of(rows)).output
    assert reduced.num_rows == 12
    whole, parts = (run(make("std.top_n", **config), [STREAM]) for _ in range(2))
    whole.feed(batch_of(rows)).end_of_data()
    parts.feed(*reduced.to_batches()).end_of_data()
    assert as_rows(whole.output) == as_rows(parts.output)
    assert make("std.top_n", **config).partial([UPDATING]) is None


@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.string(), pa.decimal128(12, 2), pa.date32(), pa.bool_(), pa.binary()]
)
def test_columns_of_many_types_have_an_order_with_nan_the_greatest(make, run, kind):
    values = {
        pa.float64(): [0.5, None, float("nan"), -0.0],
        pa.string(): ["a", None, "é", ""],
        pa.bool_(): [False, None, True, False],
        pa.binary(): [b"a", None, b"\xff", b""],
    }.get(kind) or pa.array([1, None, 7, 0], pa.int32()).cast(kind).to_pylist()
    stream = ArroyoSchema(pa.schema([pa.field("v", kind)]))
    subtask = run(make("std.top_n", n=3, order_by=[{"column": "v", "descending": True, "nulls_last": False}]), [stream])
    subtask.feed(pa.RecordBatch.from_arrays([pa.array(values, kind)], schema=stream.schema))
    found = subtask.output.column("v").to_pylist()
    assert repr(found) == repr([values[1], values[2], values[0]])


def test_rows_with_lists_structs_and_maps_are_told_apart(make, run):
    kinds = {
        "v": pa.int64(),
        "tags": pa.list_(pa.string()),
        "more": pa.struct({"x": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}),
    }
    stream = with_updating(ArroyoSchema(pa.schema(kinds)))
    rows = [
        {"v": 1, "tags": ["a", "b"], "more": {"x": [1], "m": [("p", 1)]}},
        {"v": 1, "tags": ["b", "a"], "more": {"x": [1], "m": [("p", 1)]}},
        {"v": 1, "tags": ["a", "b"], "more": {"x": [1], "m": [("p", 2)]}},
        {"v": 1, "tags": None, "more": None},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(kinds))
    ids = row_ids(batch, ["v"])
    subtask = run(make("std.top_n", n=4, order_by=[{"column": "v"}]), [stream])
    subtask.feed(make_updates(batch, is_retract=False, ids=ids))
    gone = make_updates(batch.slice(1, 2), is_retract=True, ids=ids.slice(1, 2))
    subtask.feed(gone)
    assert apply_updates(as_rows(subtask.output)) == in_order([rows[0], rows[3]])


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"n": 0, "order_by": DESCENDING}, "n"),
        ({"n": 1}, "order_by"),
        ({"n": 1, "order_by": [{"column": "w"}]}, "order_by[0].column"),
        ({"n": 1, "order_by": [{"column": "v"}, {"column": "v"}]}, "order_by[1].column"),
        ({"n": 1, "order_by": [{"column": "l"}]}, "order_by[0].column"),
        ({"n": 1, "partition_by": ["w"], "order_by": DESCENDING}, "partition_by[0]"),
        ({"n": 1, "partition_by": ["l"], "order_by": DESCENDING}, "partition_by[0]"),
        ({"n": 1, "order_by": DESCENDING, "rank_column": "v"}, "rank_column"),
    ],
)
def test_a_wrong_config_names_its_field(make, config, field):
    stream = ArroyoSchema(pa.schema({"v": pa.int64(), "l": pa.list_(pa.int64()), "at": TIME}), "at")
    with pytest.raises(ConfigError) as caught:
        make("std.top_n", **config).output_schema([stream])
    assert caught.value.field == field


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 5),
    groups=st.integers(1, 40),
    rows=st.sampled_from([0, 7, 3_000]),
    values=st.sampled_from([3, 1_000]),
    descending=st.booleans(),
    keeps_ties=st.booleans(),
    seed=st.integers(0, 1_000),
)
def test_many_rows_of_few_groups_are_ranked_as_a_sort_would(n, groups, rows, values, descending, keeps_ties, seed):
    random = np.random.default_rng(seed)
    codes, amounts = random.integers(0, groups, rows), random.integers(0, values, rows)
    order = (OrderBy(column="v", field="order_by[0]", is_descending=descending),)
    ranking = Ranking(n=n, partition_by=(), order_by=order, keeps_ties=keeps_ties)
    found = ranking.first_rows(pa.record_batch({"v": amounts, "row": np.arange(rows)}), codes)
    expected = []
    for group in range(groups):
        members = sorted(np.flatnonzero(codes == group), key=lambda row: -amounts[row] if descending else amounts[row])
        for place, row in enumerate(members):
            before = sum(
                amounts[other] > amounts[row] if descending else amounts[other] < amounts[row]
                for other in members[:place]
            )
            if keeps_ties and before < n:
                expected.append((row, before))
            elif not keeps_ties and place < n:
                expected.append((row, place))
    assert sorted(zip(found.rows, found.ranks, strict=True)) == sorted(expected)


def test_ties_are_kept_only_where_groups_end(make):
    operator = make("std.top_n", n=1, ties=True, order_by=DESCENDING)
    with pytest.raises(ConfigError, match="groups that end") as caught:
        operator.output_schema([ArroyoSchema(STREAM.schema)])
    assert caught.value.field == "ties"
