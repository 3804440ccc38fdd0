"""std.window_function against DuckDB, which partitions by event time by itself."""

from __future__ import annotations

from functools import partial

import duckdb
import pyarrow as pa
import pytest
from arroyo_std.window_clauses import find_clauses
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ConfigError, OperatorError

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

RANK = "rank() over (partition by k order by v desc nulls last)"

#: What users write, and the same for all of a table, where windows have to name the time.
QUERIES = [
    (RANK, 'rank() over (partition by "at", k order by v desc nulls last)'),
    ("sum(v) over ()", 'sum(v) over (partition by "at")'),
    ("count(*) OVER (partition by k) + 1", 'count(*) over (partition by "at", k) + 1'),
    ("max(v) over (partition by (v % 2), k)", 'max(v) over (partition by "at", (v % 2), k)'),
    (
        "v - first_value(v) over (order by v nulls last, k nulls last)",
        'v - first_value(v) over (partition by "at" order by v nulls last, k nulls last)',
    ),
    (
        "sum(v) over (partition by k) + count(v) over (order by v nulls last range unbounded preceding)",
        'sum(v) over (partition by "at", k) + count(v) over '
        '(partition by "at" order by v nulls last range unbounded preceding)',
    ),
]


@pytest.mark.usefixtures("limits")
@settings(max_examples=60, deadline=None)
@given(steps=streams(), query=st.sampled_from(QUERIES), parallelism=st.integers(1, 3))
def test_duckdb_computes_the_same_of_rows_that_are_not_late(make, steps, query, parallelism):
    written, whole = query
    operator = partial(make, "std.window_function", expression=written, **{"as": "found"})
    with ParallelHarness(operator, inputs=[STREAM], parallelism=parallelism) as harness:
        feed(harness, steps)
        table = duckdb.from_arrow(pa.Table.from_batches([batch_of(timely(steps))]))
        expected = table.query("events", f'select k, v, epoch_us("at"), {whole} from events').fetchall()
        found = [tuple(row.values()) for row in as_rows(harness.output)]
        assert sorted(map(str, found)) == sorted(
            str((*row[:3], None if row[3] is None else int(row[3]))) for row in expected
        )


def test_rows_come_when_the_watermark_has_passed_their_time(make, run):
    subtask = run(make("std.window_function", expression="row_number() over (order by v)", **{"as": "n"}), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 2, "at": 5}, {"k": "b", "v": 1, "at": 5}, {"k": "c", "v": 0, "at": 6}]))
    subtask.watermark(Watermark.event_time(5))
    assert subtask.output.num_rows == 0
    subtask.watermark(Watermark.event_time(6))
    assert [(row["k"], row["n"]) for row in as_rows(subtask.output)] == [("a", 2), ("b", 1)]
    subtask.feed(batch_of([{"k": "late", "v": 2, "at": 5}]))
    assert subtask.counters == {"late_rows": 1}


def test_several_expressions_are_computed_in_the_order_written(make, run):
    config = {"z": "row_number() over (order by v desc)", "a": "sum(v) over ()"}
    operator = make("std.window_function", expressions=[{"name": name, "sql": sql} for name, sql in config.items()])
    subtask = run(operator, [STREAM]).feed(batch_of([{"k": "a", "v": value, "at": 0} for value in (1, 2)]))
    subtask.end_of_data()
    assert in_order(as_rows(subtask.output)) == in_order(
        [{"k": "a", "v": 1, "at": 0, "z": 2, "a": 3}, {"k": "a", "v": 2, "at": 0, "z": 1, "a": 3}]
    )
    assert subtask.output.column_names == ["k", "v", "at", "z", "a"]


def test_rows_that_no_order_tells_apart_get_the_same_numbers_in_any_order_of_arrival(make, run):
    rows = [{"k": key, "v": 1, "at": 0} for key in "bdac"]
    results = []
    for order in (rows, rows[::-1], rows[2:] + rows[:2]):
        operator = partial(make, "std.window_function", expression="row_number() over (order by v)", **{"as": "n"})
        subtask = run(operator, [STREAM]).feed(batch_of(order[:2]))
        subtask.checkpoint()
        subtask.restore()
        subtask.feed(batch_of(order[2:]))
        subtask.end_of_data()
        results.append(as_rows(subtask.output))
    assert results[0] == results[1] == results[2]


def test_rows_are_brought_together_by_what_all_windows_partition_by(make):
    def keys(*expressions: str) -> tuple[str, ...] | None:
        named = [{"name": f"n{place}", "sql": sql} for place, sql in enumerate(expressions)]
        operator = make("std.window_function", expressions=named)
        (found,) = operator.routing_keys([STREAM])
        assert operator.output_schema([STREAM]).key_columns == found
        return found

    assert keys(RANK) == ("k",)
    assert keys('sum(v) over (partition by v, "k" order by v)') == ("k", "v")
    assert keys(RANK, "sum(v) over (partition by v, k)") == ("k",)
    assert keys(RANK, "sum(v) over (partition by v)") == ("at",)
    assert keys("sum(v) over (partition by upper(k))") == ("at",)


def test_clauses_are_found_among_texts_comments_and_columns_of_like_names():
    sql = """coalesce('over (', "over") /* sum(x) over () */ || lag(x) IGNORE NULLS over ( -- here
        Partition By "a""b", f(c, d), e ORDER BY g) || count(*) Over(rows 1 preceding) || over"""
    clauses = find_clauses(sql, field="expression")
    assert clauses.partitions == (frozenset({'a"b', "e"}), frozenset())
    added = clauses.partitioned_by("t")
    assert 'Partition By "t", "a""b", f(c, d), e ORDER BY g)' in added
    assert 'Over(PARTITION BY "t" rows 1 preceding)' in added
    assert added.replace(' "t",', "").replace('PARTITION BY "t" ', "") == sql


def test_a_text_of_an_expression_may_have_lines(make):
    operator = make("std.window_function", expression="'a\nb' || rank() over (order by v)", **{"as": "n"})
    assert operator.output_schema([STREAM]).schema.field("n").type == pa.string()


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        ({"expression": RANK}, "as", "missing"),
        ({"as": "n"}, "expression", "missing"),
        ({"expression": RANK, "as": "v"}, "as", "already"),
        ({"expression": RANK, "as": "n", "expressions": [{"name": "m", "sql": RANK}]}, "expressions", "exclude"),
        ({"expressions": [{"name": "k", "sql": RANK}]}, "expressions.k", "already"),
        ({"expressions": [{"name": "m", "sql": RANK}], "as": "n"}, "as", "names"),
        ({"expression": "v + 1", "as": "n"}, "expression", "std.project"),
        ({"expression": "rank() over w", "as": "n"}, "expression", "named"),
        ({"expression": "rank() over (w order by v)", "as": "n"}, "expression", "named"),
        ({"expression": "rank() over (partition by w)", "as": "n"}, "expression", "no column 'w'"),
        ({"expression": "rnak() over ()", "as": "n"}, "expression", "no function"),
        ({"expression": "rank() over (order by v", "as": "n"}, "expression", "not a SQL expression"),
        ({"expression": "rank() over () + (select 1)", "as": "n"}, "expression", "subquery"),
    ],
)
def test_a_wrong_config_names_its_field(make, config, field, reason):
    with pytest.raises(ConfigError) as caught:
        make("std.window_function", **config).output_schema([STREAM])
    assert caught.value.field == field
    assert reason in str(caught.value)


def test_streams_without_event_time_and_updating_streams_are_refused(make):
    operator = make("std.window_function", expression=RANK, **{"as": "n"})
    with pytest.raises(ConfigError, match=r"std\.watermark"):
        operator.output_schema([ArroyoSchema(COLUMNS)])
    with pytest.raises(ConfigError, match="updating"):
        operator.output_schema([with_updating(STREAM)])


def test_a_row_that_cannot_be_computed_fails_with_the_expression(make, run):
    subtask = run(make("std.window_function", expression="sum(1 / v) over ()", **{"as": "n"}), [STREAM])
    subtask.feed(batch_of([{"k": "a", "v": 0, "at": 0}]))
    with pytest.raises(OperatorError, match=r"cannot compute .*divide by zero"):
        subtask.end_of_data()
