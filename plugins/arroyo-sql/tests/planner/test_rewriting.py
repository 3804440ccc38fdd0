"""Queries that DataFusion cannot parse keep their places when they are written again."""

from __future__ import annotations

import pytest
from arroyo_sql.planner.rewriting import QueryText, rewrite
from arroyo_sql.script import Text

from arroyo_core.errors import Location, PipelineError

AT = Location("q.sql", 5, 3)


def rewritten(sql: str) -> QueryText:
    return rewrite(Text(sql, AT), name_of=lambda index: f"__w{index}")


def test_a_query_without_extensions_stays_as_it_is() -> None:
    sql = "SELECT window, \"TABLE\" FROM t -- TABLE(TUMBLE(\nWHERE x = 'TABLE('"

    assert rewritten(sql).sql == sql


def test_a_table_function_becomes_a_table() -> None:
    text = rewritten("SELECT * FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '1' MINUTE)) AS w")
    (function,) = text.table_functions

    assert text.sql == "SELECT * FROM __w0 AS w"
    assert (function.table, function.time) == ("t", "ts")
    assert function.window.spec == ("hop", 60_000_000, 5_000_000)


def test_a_table_function_needs_no_table_around_it() -> None:
    text = rewritten(
        "SELECT * FROM HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, "
        "SIZE => INTERVAL '1' MINUTE) w JOIN TUMBLE(TABLE u, DESCRIPTOR(ts), INTERVAL '1' MINUTE) v"
    )

    assert text.sql == "SELECT * FROM __w0 w JOIN __w1 v"
    assert [function.table for function in text.table_functions] == ["t", "u"]
    assert rewritten("SELECT tumble(x), hop FROM t GROUP BY tumble(INTERVAL '1 s')").table_functions == ()


def test_places_behind_a_table_function_are_those_that_were_written() -> None:
    sql = "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))\nWHERE nothing = 1"
    text = rewritten(sql)

    assert text.locate(text.sql.index("nothing")) == Location("q.sql", 6, 7)
    assert text.locate_in_lines(2, 7) == Location("q.sql", 6, 7)


def test_a_lookup_in_time_is_dropped_and_remembered() -> None:
    text = rewritten("SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF a.proctime AS x ON a.k = x.k")

    assert text.sql == "SELECT * FROM a JOIN b  AS x ON a.k = x.k"
    assert [name for name, _ in text.lookups] == ["b"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("items[1].sku", "items[1]['sku']"),
        ("(a).b.c", "(a)['b']['c']"),
        ('f(x)[1]."It\'s"', "f(x)[1]['It''s']"),
        ("items[1].SKU", "items[1]['sku']"),
        ("t.a.b", "t.a.b"),
        ("`It's` . `a``b`", '"It\'s" . "a`b"'),
        ("items[1].`SKU`", "items[1]['SKU']"),
        ("')'.x", "')'.x"),
    ],
)
def test_fields_of_what_is_computed_are_read_by_their_names(written: str, read: str) -> None:
    assert rewritten(f"SELECT {written} FROM t").sql == f"SELECT {read} FROM t"


def test_places_behind_such_a_field_are_those_that_were_written() -> None:
    sql = "SELECT items[1].sku, nothing FROM t"
    text = rewritten(sql)

    assert text.locate(text.sql.index("nothing")) == Location("q.sql", 5, 3 + sql.index("nothing"))


@pytest.mark.parametrize(
    ("written", "name"),
    [("window(ts, '10 seconds')", "spark_window"), ("window(f(a, b), '10 seconds', '5 seconds')", "spark_hop")],
)
def test_windows_of_spark_are_told_apart_by_their_arguments(written: str, name: str) -> None:
    assert rewritten(f"SELECT {written} FROM t").sql.startswith(f"SELECT {name}(")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM TABLE(TUMBLE(t, DESCRIPTOR(ts), INTERVAL '5' SECOND))",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, ts, INTERVAL '5' SECOND))",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), 5))",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MONTH))",
        "SELECT * FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
    ],
)
def test_a_table_function_that_is_written_in_a_wrong_way_has_a_place(sql: str) -> None:
    with pytest.raises(PipelineError) as caught:
        rewritten(sql)

    assert caught.value.at is not None
    assert caught.value.at.line == 5
