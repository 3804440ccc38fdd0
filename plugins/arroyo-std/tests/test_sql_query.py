"""std.sql: what it computes, what it refuses, and what stays of event time and keys."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from arroyo_std.sql_query import check_query
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError

COLUMNS = pa.schema({"x": pa.int64(), "s": pa.string()})


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"x": st.none() | st.integers(-5, 5), "s": st.none() | st.sampled_from(["a", "B", "", "cc"])}
        ),
        max_size=12,
    ),
    query=st.sampled_from(
        [
            "SELECT x * 2 AS y, s FROM input WHERE x > 0",
            "SELECT upper(s) AS t FROM input WHERE s IS NOT NULL AND x <> 0",
            "SELECT 10 / x AS q FROM input WHERE x <> 0",
            "SELECT y + 1 AS z FROM (SELECT x - 1 AS y, s FROM input WHERE x IS NOT NULL) AS i WHERE y >= 0",
            "SELECT x, CASE WHEN s = 'a' THEN 1 END AS is_a FROM input AS i WHERE i.x BETWEEN -1 AND 3",
            "SELECT coalesce(s, 'none') AS t, ifnull(x, 7) AS y FROM input WHERE coalesce(x, 1) > 0",
            "SELECT x, s FROM input WHERE coalesce(1 = 2, true)",
            "SELECT x + 1 AS y, x + 1 AS z FROM input WHERE x + 1 > 0",
            "SELECT 1 AS one FROM input WHERE x > 0",
            "SELECT s || '\nb' AS t FROM input WHERE s <> 'a\n  b'",
        ]
    ),
)
def test_duckdb_computes_the_same(make, run, rows, query):
    batch = pa.RecordBatch.from_pylist(rows, schema=COLUMNS)
    with run(make("std.sql", query=query), [ArroyoSchema(COLUMNS)]) as subtask:
        for cut in (batch.slice(0, 5), batch.slice(5)):
            subtask.process(cut)
        # DuckDB divides integers exactly with /.
        expected = duckdb.from_arrow(pa.Table.from_batches([batch])).query("input", query.replace("10 / x", "10 // x"))
        assert [tuple(row.values()) for row in subtask.output.to_pylist()] == expected.fetchall()


def test_a_condition_holds_before_columns_are_computed(make, run, events, events_schema):
    subtask = run(make("std.sql", query="SELECT 100 / (price - 10) AS q FROM input WHERE price > 10"), [events_schema])
    assert subtask.feed(events).output.column("q").to_pylist() == [10, 3, 2, 2]


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("SELECT x + 1 AS y FROM input WHERE 1 = 2", {"x"}),
        ("SELECT * FROM input WHERE false", {"x", "s"}),
        ("SELECT x FROM input WHERE s = 'a' AND null", {"x", "s"}),
    ],
)
def test_a_condition_that_is_never_true_leaves_a_query_what_it_reads(make, run, query, needed):
    operator = make("std.sql", query=query)
    (columns,) = operator.needed_columns([ArroyoSchema(COLUMNS)], set())
    assert columns >= needed
    subtask = run(operator, [ArroyoSchema(COLUMNS)])
    rows = pa.RecordBatch.from_pydict({"x": [1, 2], "s": ["a", "b"]}, schema=COLUMNS)
    assert subtask.feed(rows).output.num_rows == 0


def test_functions_that_are_known_when_planned_can_be_called(make, run):
    query = "SELECT x FROM input WHERE now() > TIMESTAMP '2020-01-01T00:00:00Z' AND current_date() > DATE '2020-01-01'"
    subtask = run(make("std.sql", query=query), [ArroyoSchema(COLUMNS)])
    rows = pa.RecordBatch.from_pydict({"x": [1, 2], "s": ["a", "b"]}, schema=COLUMNS)
    assert subtask.feed(rows).output.column("x").to_pylist() == [1, 2]


def test_large_batches_keep_their_order(make, run):
    rows = pa.RecordBatch.from_pydict({"x": list(range(100_000)), "s": ["a"] * 100_000}, schema=COLUMNS)
    subtask = run(make("std.sql", query="SELECT x FROM input WHERE x % 3 = 0"), [ArroyoSchema(COLUMNS)])
    assert subtask.feed(rows).output.column("x").to_pylist() == list(range(0, 100_000, 3))


def test_event_time_and_keys_follow_columns_that_are_copied(make, events_schema):
    query = 'SELECT i.time AS at, price AS p, "Name" FROM (SELECT * FROM input) AS i WHERE price > 1'
    output = make("std.sql", query=query).output_schema([events_schema])
    assert (output.names, output.timestamp_column, output.key_columns) == (["at", "p", "Name"], "at", ("p",))
    computed = make("std.sql", query="SELECT time + INTERVAL '1 second' AS time, price + 0 AS price FROM input")
    output = computed.output_schema([events_schema])
    assert (output.timestamp_column, output.key_columns) == (None, None)


def test_nested_and_quoted_columns_pass(make, run, events, events_schema):
    query = """SELECT tags, seller, seller['city'] AS city, "unit price" FROM input WHERE "Name" = 'a'"""
    found = run(make("std.sql", query=query), [events_schema]).feed(events).output.to_pylist()
    assert found == [
        {"tags": ["x", "y"], "seller": {"id": 1, "city": "Rome"}, "city": "Rome", "unit price": 1.5},
    ]


def test_an_updating_stream_stays_updating_and_may_not_lose_its_marks(make, run):
    stream = with_updating(ArroyoSchema(COLUMNS))
    rows = pa.RecordBatch.from_pydict({"x": [1, 2], "s": ["a", "b"]}, schema=COLUMNS)
    batch = make_updates(rows, is_retract=True, ids=row_ids(rows, ["x"]))
    subtask = run(make("std.sql", query="SELECT x + 1 AS y, _updating_meta FROM input WHERE x > 1"), [stream])
    (row,) = subtask.feed(batch).output.to_pylist()
    assert row["y"] == 3
    assert row["_updating_meta"] == {"is_retract": True, "id": row_ids(rows, ["x"])[1].as_py()}
    with pytest.raises(ConfigError, match="updating") as caught:
        make("std.sql", query="SELECT x FROM input").output_schema([stream])
    assert caught.value.field == "query"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*) AS n FROM input", "aggregates"),
        ("SELECT x FROM input GROUP BY x", "aggregates"),
        ("SELECT DISTINCT x FROM input", "DISTINCT"),
        ("SELECT x FROM input ORDER BY x", "ORDER BY"),
        ("SELECT x FROM input LIMIT 3", "LIMIT"),
        ("SELECT row_number() OVER (ORDER BY x) AS n FROM input", "std.window_function"),
        ("SELECT a.x FROM input a JOIN input b ON a.x = b.x", "one input"),
        ("SELECT a.x FROM input a, input b", "one input"),
        ("SELECT x FROM input UNION ALL SELECT x FROM input", "std.union"),
        ("SELECT unnest([x]) AS y FROM input", "std.unnest"),
        ("SELECT x FROM input WHERE x IN (SELECT x FROM input)", "subquery"),
        ("SELECT (SELECT max(x) FROM input) AS m FROM input", "subquery"),
        ("SELECT x FROM input WHERE EXISTS (SELECT 1)", "subquery"),
        ("SELECT 1 AS one", "FROM input"),
        ("VALUES (1)", "FROM input"),
        ("SELECT x FROM inputs", "'input'"),
        ("SELECT y FROM input", "no column 'y'"),
        ("SELECT nothing(x) AS y FROM input", "no function 'nothing'"),
        ("SELECT x + 1 FROM input", "AS"),
        ("SELECT NULL AS n FROM input", "without a type"),
        ("SELEC x FROM input", "not a SQL query"),
        ("SELECT x FROM input; SELECT s FROM input", "one SELECT"),
        ("CREATE TABLE t AS SELECT x FROM input", "only a SELECT"),
        ("SELECT x FROM input WHERE s", "non-boolean"),
        ("EXPLAIN SELECT x FROM input", "only a SELECT"),
        ("  ", "missing"),
    ],
)
def test_what_cannot_be_is_refused_when_the_pipeline_is_planned(make, query, reason):
    with pytest.raises(ConfigError) as caught:
        make("std.sql", query=query).output_schema([ArroyoSchema(COLUMNS)])
    assert caught.value.field == "query"
    assert reason in str(caught.value)


def test_a_row_that_cannot_be_computed_fails_with_the_query(make, run):
    subtask = run(make("std.sql", query="SELECT 1 / x AS y FROM input"), [ArroyoSchema(COLUMNS)])
    with pytest.raises(OperatorError, match="cannot compute 'SELECT 1 / x AS y FROM input': divide by zero"):
        subtask.feed(pa.RecordBatch.from_pydict({"x": [0], "s": ["a"]}, schema=COLUMNS))


def test_a_column_of_a_query_that_has_to_be_quoted_is_named_with_the_corrected_query():
    schema = pa.schema({"user": pa.struct({"id": pa.int64()}), "price": pa.int64()})
    with pytest.raises(ConfigError, match="column 'user' must be in double quotes") as caught:
        check_query("SELECT user.id AS id, price FROM input WHERE price > 1", schema, Registry())
    assert caught.value.suggestion == 'SELECT "user".id AS id, price FROM input WHERE price > 1'


def test_a_query_whose_condition_never_holds_is_planned_and_gives_no_rows(make, run):
    operator = make("std.sql", query="SELECT x FROM input WHERE x IS NULL AND x IS NOT NULL AND 1 = 2")
    assert operator.needed_columns([ArroyoSchema(COLUMNS)], {"x"}) == [{"x"}]
    subtask = run(operator, [ArroyoSchema(COLUMNS)])
    rows = pa.RecordBatch.from_pydict({"x": [1, None], "s": ["a", "b"]}, schema=COLUMNS)
    assert subtask.feed(rows).output.num_rows == 0
