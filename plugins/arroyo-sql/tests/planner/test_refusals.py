"""What is refused, where, and what to write instead."""

from __future__ import annotations

import pytest

from .support.scripts import FIRST_LINE, plan

CASES = [
    ("SELECT nothing FROM orders", 8, "there is no column 'nothing'"),
    ("SELECT id FROM nowhere", 16, "there is no table 'nowhere'"),
    ("SELECT foo(id) FROM orders", 8, "there is no function 'foo'"),
    ("SELECT id FORM orders", 16, "not a query of SQL"),
    ("SELECT id FROM orders ORDER BY id", 23, "a stream has no end, so it has no ORDER BY"),
    ("SELECT id FROM orders LIMIT 3", 23, "no LIMIT"),
    ("SELECT DISTINCT ON (id) id, price FROM orders", 8, "DISTINCT ON is not planned"),
    ("SELECT o.id FROM orders o, returns r WHERE o.id < r.id", 13, "needs an equality"),
    ("SELECT id FROM orders WHERE id NOT IN (SELECT id FROM returns)", 32, "write NOT EXISTS"),
    ("SELECT id, tumble(INTERVAL '1 minute') FROM orders", 12, "tumble() stands in GROUP BY"),
    ("SELECT id, rank() OVER (ORDER BY price) FROM orders", 12, "rank() over a stream"),
    ("SELECT id, count(*) FROM orders GROUP BY ROLLUP(id)", 42, "write one query for each set"),
    ("SELECT o.id FROM orders o RIGHT JOIN returns r USING (id)", 48, "USING in a RIGHT or FULL JOIN"),
    (
        "SELECT id FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(price), INTERVAL '1' MINUTE))",
        54,
        "event time of 'orders'",
    ),
    ("SELECT id FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' MINUTE))", 22, "CUMULATE()"),
    ("SELECT count(*) FROM orders GROUP BY tumble(INTERVAL '1 month')", 38, "days or less, not months"),
    ("SELECT count(*) FROM orders GROUP BY hop(INTERVAL '3 seconds', INTERVAL '10 seconds')", 38, "multiple"),
    ("SELECT id FROM orders EXCEPT ALL SELECT id FROM returns", 23, "EXCEPT ALL is not planned"),
    ("SELECT id FROM orders TABLESAMPLE BERNOULLI (50)", 23, "TABLESAMPLE is not planned"),
    ("SELECT id AS _updating_meta FROM orders", 14, "a name of the engine's own"),
    ("SELECT sum(item) FROM orders", 8, "sum"),
]


@pytest.mark.parametrize(("query", "column", "message"), CASES)
def test_a_query_is_refused_at_its_place(query: str, column: int, message: str) -> None:
    error = plan(query).refusal

    assert message in error.message
    assert error.at is not None
    assert (error.at.line, error.at.column) == (FIRST_LINE, column)


def test_each_statement_has_its_mistakes_reported() -> None:
    found = plan("SELECT a FROM orders; SELECT b FROM returns")

    assert [error.message for error in found.mistakes] == ["there is no column 'a'", "there is no column 'b'"]


def test_what_reads_a_view_with_a_mistake_is_not_reported_again() -> None:
    found = plan("CREATE VIEW v AS SELECT a FROM orders; SELECT * FROM v; SELECT * FROM v")

    assert [error.message for error in found.mistakes] == ["there is no column 'a'"]


def test_windows_need_an_event_time() -> None:
    script = (
        "CREATE TABLE t (counter BIGINT) WITH (connector = 'kafka', type = 'source', topic = 'x', format = 'json', "
        "bootstrap_servers = 'h:1');\n"
        "SELECT count(*) FROM t GROUP BY tumble(INTERVAL '1 minute')"
    )
    error = plan(script).refusal

    assert "declare WATERMARK FOR" in error.message
    assert error.at is not None
    assert (error.at.line, error.at.column) == (FIRST_LINE + 1, 33)


def test_columns_of_a_sink_are_counted() -> None:
    script = "CREATE TABLE s (a INT, b TEXT) WITH (connector = 'blackhole'); INSERT INTO s SELECT id FROM orders"

    assert plan(script).refusal.message == "'s' has 2 columns, and the query has 1"
