"""What queries give, run in this process."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from .support.scripts import START, run, write

ORDERS = [
    (1, "pen", 2.0, 3, 0),
    (2, "ink", 5.5, None, 2),
    (1, "pen", 4.0, 1, 4),
    (None, "cap", 1.0, 2, 11),
    (2, None, None, 7, 12),
    (3, "ink", 8.0, 1, 25),
]
RETURNS = [(1, "pen", 2.0, 1, 3), (3, "cap", 1.0, 1, 6), (None, "ink", 0.5, 2, 13), (1, "ink", 3.0, 5, 14)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "orders", ORDERS)
    write(tmp_path, "returns", RETURNS)
    return tmp_path


def test_projections_and_conditions_follow_sql_for_nulls(folder: Path) -> None:
    query = "SELECT id, upper(item) AS name, price * 2 AS twice FROM orders WHERE price > 1.5 OR price IS NULL"

    assert run(query, folder) == sorted(
        [(1, "PEN", 4.0), (2, "INK", 11.0), (1, "PEN", 8.0), (2, None, None), (3, "INK", 16.0)], key=repr
    )


def test_groups_without_a_window_change_with_rows(folder: Path) -> None:
    # Columns come in the order of their names: a, c, d, id, s.
    query = (
        "SELECT id, count(*) AS c, sum(price) AS s, avg(count) AS a, count(DISTINCT item) AS d FROM orders "
        "GROUP BY id HAVING count(*) > 1"
    )

    assert run(query, folder) == [(2.0, 2, 1, 1, 6.0), (7.0, 2, 1, 2, 5.5)]


def test_groups_of_a_window_come_once(folder: Path) -> None:
    query = (
        "SELECT id, w.start, c FROM (SELECT id, tumble(INTERVAL '10 seconds') AS w, count(*) AS c FROM orders "
        "GROUP BY id, w) WHERE w.start < TIMESTAMP '2024-01-01T00:00:20Z'"
    )
    ten = START + timedelta(seconds=10)

    assert run(query, folder) == sorted([(1, START, 2), (2, START, 1), (None, ten, 1), (2, ten, 1)], key=repr)


def test_aggregates_of_overlapping_windows_are_grouped_by_their_window(folder: Path) -> None:
    query = (
        "SELECT w.start, w.end, max(c) FROM (SELECT id, hop(INTERVAL '5 seconds', INTERVAL '10 seconds') AS w, "
        "count(*) AS c FROM orders WHERE at < TIMESTAMP '2024-01-01T00:00:05Z' GROUP BY id, w) GROUP BY w"
    )

    five = timedelta(seconds=5)
    assert run(query, folder) == [(START - five, START + five, 2), (START, START + 2 * five, 2)]


def test_sessions_are_grouped_by_their_session(folder: Path) -> None:
    query = (
        "SELECT w.start, sum(c) FROM (SELECT item, session(INTERVAL '3 seconds') AS w, count(*) AS c FROM orders "
        "GROUP BY item, w) GROUP BY w"
    )
    seconds = [(0, 1), (2, 1), (4, 1), (11, 1), (12, 1), (25, 1)]

    assert run(query, folder) == sorted([(START + timedelta(seconds=at), count) for at, count in seconds], key=repr)


def test_a_window_table_function_gives_rows_their_windows(folder: Path) -> None:
    query = (
        "SELECT id, window_start, n FROM (SELECT *, row_number() OVER (PARTITION BY window_start, window_end "
        "ORDER BY price DESC NULLS LAST) AS n "
        "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '10' SECOND))) WHERE n = 1"
    )
    starts = [START + timedelta(seconds=each) for each in (0, 10, 20)]

    assert run(query, folder) == sorted([(2, starts[0], 1), (None, starts[1], 1), (3, starts[2], 1)], key=repr)


def test_inner_joins_only_add_and_nulls_equal_nothing(folder: Path) -> None:
    query = "SELECT o.item, r.price FROM orders o JOIN returns r ON o.id = r.id AND o.price > r.price"

    assert run(query, folder) == [("ink", 1.0), ("pen", 2.0), ("pen", 3.0)]


def test_left_joins_give_nulls_where_there_is_no_match(folder: Path) -> None:
    query = "SELECT o.id AS a, r.price AS b FROM orders o LEFT JOIN returns r ON o.id = r.id AND r.count > 1"

    assert run(query, folder) == sorted([(1, 3.0), (1, 3.0), (2, None), (2, None), (3, None), (None, None)], key=repr)


def test_rows_whose_times_are_near_are_joined(folder: Path) -> None:
    query = (
        "SELECT o.price, r.price AS back FROM orders o JOIN returns r ON o.id = r.id "
        "AND r.at BETWEEN o.at - INTERVAL '2 seconds' AND o.at + INTERVAL '4 seconds'"
    )

    assert run(query, folder) == [(2.0, 2.0), (4.0, 2.0)]


def test_in_and_exists_keep_rows_once(folder: Path) -> None:
    inside = "SELECT id AS a, price AS b FROM orders WHERE id IN (SELECT id FROM returns)"
    assert run(inside, folder) == [(1, 2.0), (1, 4.0), (3, 8.0)]


def test_not_exists_keeps_rows_with_null_keys(folder: Path) -> None:
    query = "SELECT id AS a, price AS b FROM orders o WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE r.id = o.id)"

    assert run(query, folder) == [(2, 5.5), (2, None), (None, 1.0)]


def test_intersect_takes_nulls_for_equal(folder: Path) -> None:
    assert run("SELECT id FROM orders INTERSECT SELECT id FROM returns", folder) == [(1,), (3,), (None,)]


def test_union_all_keeps_rows_and_union_does_not(folder: Path) -> None:
    assert run("SELECT id FROM orders UNION SELECT id FROM returns", folder) == [(1,), (2,), (3,), (None,)]


def test_a_subquery_gives_one_value(folder: Path) -> None:
    query = "SELECT id AS a, price AS b FROM orders WHERE price > (SELECT max(price) FROM returns)"

    assert run(query, folder) == [(1, 4.0), (2, 5.5), (3, 8.0)]


def test_the_last_row_of_each_key_is_kept(folder: Path) -> None:
    query = (
        "SELECT id AS a, price AS b FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS n "
        "FROM orders) WHERE n = 1"
    )

    assert run(query, folder) == [(1, 4.0), (2, None), (3, 8.0), (None, 1.0)]


def test_lists_become_rows(folder: Path) -> None:
    query = "SELECT id, unnest(make_array(item, 'x')) AS word FROM orders WHERE id = 3"

    assert run(query, folder) == [(3, "ink"), (3, "x")]


def test_memory_tables_and_views_are_read_like_tables(folder: Path) -> None:
    before = (
        "CREATE TABLE dear (id BIGINT, cents BIGINT); "
        "INSERT INTO dear SELECT id, price * 100 FROM orders WHERE price > 3; "
        "CREATE VIEW both AS SELECT id, cents FROM dear UNION ALL SELECT id, 0 FROM returns;"
    )

    query = "SELECT id, cents FROM both WHERE id = 1"
    assert run(query, folder, before=before) == [(1, 0), (1, 0), (1, 400)]
