"""Which nodes come of a script, and under which ids."""

from __future__ import annotations

import pytest

from arroyo_core.udf import async_udf, udaf, udf

from .support.scripts import plan

PRINTED = "query_rows"


@async_udf(concurrency=5)
async def slow(text: str) -> str:
    return text


@udf
def shout(text: str) -> str:
    return text.upper() + "!"


@udaf
class Longest:
    def init(self) -> str:
        return ""

    def update(self, state: str, text: str) -> str:
        return max(state, text, key=len)

    def merge(self, first: str, second: str) -> str:
        return max(first, second, key=len)

    def finish(self, state: str) -> str:
        return state


def test_a_watermark_that_nothing_waits_for_is_left_out() -> None:
    assert plan("SELECT id FROM orders WHERE price > 1").steps == [
        "orders filesystem.source",
        "query_where std.filter",
        "query_rows std.project",
        "query std.stdout",
    ]


def test_ids_do_not_depend_on_aliases() -> None:
    one = plan("SELECT id, count(*) AS c FROM orders o GROUP BY id")
    other = plan("WITH x AS (SELECT * FROM orders) SELECT y.id AS key, count(*) AS n FROM x AS y GROUP BY y.id")

    assert [step for step in one.steps if "rows" not in step] == [step for step in other.steps if "rows" not in step]
    assert one.node("query_groups").config == other.node("query_groups").config


def test_states_do_not_depend_on_names_of_inner_queries() -> None:
    script = "SELECT avg({0}) FROM (SELECT id, max(price) AS {0} FROM orders GROUP BY id)"

    assert plan(script.format("a")).node("query_groups_2") == plan(script.format("b")).node("query_groups_2")


def test_a_view_with_one_reader_is_planned_with_it() -> None:
    planned = plan("CREATE VIEW v AS SELECT id, price, item FROM orders; SELECT id FROM v WHERE price > 1")

    assert planned.node("v_where").config == {"predicate": "price > 1.0"}


def test_a_view_with_two_readers_is_planned_once() -> None:
    planned = plan(
        "CREATE VIEW v AS SELECT id, count(*) AS c FROM orders GROUP BY id;"
        "CREATE TABLE a WITH (connector = 'blackhole'); CREATE TABLE b WITH (connector = 'blackhole');"
        "INSERT INTO a SELECT * FROM v; INSERT INTO b SELECT c FROM v"
    )

    assert planned.only("std.updating_aggregate").id == "v_groups"


def test_near_times_make_an_interval_join() -> None:
    planned = plan(
        "SELECT o.id FROM orders o JOIN returns r ON o.id = r.id AND r.at >= o.at AND r.at < o.at + INTERVAL '1 minute'"
    )

    config = planned.only("std.interval_join").config
    assert (config["lower"], config["upper"]) == ("0s", "59999999us")


def test_one_bound_of_the_times_does_not_make_an_interval_join() -> None:
    planned = plan("SELECT o.id FROM orders o JOIN returns r ON o.id = r.id AND r.at >= o.at")

    assert planned.only("std.join").config["ttl"] == "0s"
    assert planned.only("std.filter").config == {"predicate": "right_at >= at"}


def test_the_setting_for_the_time_to_live_counts_for_statements_behind_it() -> None:
    planned = plan("SET updating_ttl = '2 hours'; SELECT id, count(*) FROM orders GROUP BY id")

    assert planned.only("std.updating_aggregate").config["ttl"] == "2h"


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param("SELECT item, c FROM v WHERE c > 1", id="read once"),
        pytest.param("SELECT x.c FROM v AS x", id="by an alias"),
        pytest.param("SELECT a.c FROM v AS a JOIN v AS b ON a.item = b.item", id="read twice"),
        pytest.param("SELECT w.c FROM (SELECT c FROM v) AS w", id="in a subquery"),
        pytest.param("CREATE VIEW outer_one AS SELECT c FROM v; SELECT c FROM outer_one", id="in a view"),
        pytest.param("CREATE TABLE kept (c BIGINT); INSERT INTO kept SELECT c FROM v; SELECT c FROM kept", id="kept"),
    ],
)
def test_a_view_keeps_the_time_to_live_that_stands_before_it(reader: str) -> None:
    planned = plan(
        "SET updating_ttl = '1 hour'; CREATE VIEW v AS SELECT item, count(*) AS c FROM orders GROUP BY item;"
        f"SET updating_ttl = '1 day'; {reader}"
    )

    assert planned.only("std.updating_aggregate").config["ttl"] == "1h"
    assert all(node.config["ttl"] == "1d" for node in planned.nodes if node.operator == "std.join")


def test_the_last_rows_of_a_view_are_kept_as_long_as_the_view_says() -> None:
    planned = plan(
        "SET updating_ttl = '1 hour'; CREATE VIEW v AS SELECT id, row_number() OVER (PARTITION BY item ORDER BY at "
        "DESC) AS n FROM orders; SET updating_ttl = '1 day'; SELECT id FROM v WHERE n = 1"
    )

    assert planned.only("std.deduplicate").config["ttl"] == "1h"


def test_a_query_under_the_name_of_a_view_has_its_own_time_to_live() -> None:
    planned = plan(
        "SET updating_ttl = '1 hour'; CREATE VIEW v AS SELECT id FROM returns; SET updating_ttl = '1 day';"
        "SELECT v.c FROM (SELECT item, count(*) AS c FROM orders GROUP BY item) AS v"
    )

    assert planned.only("std.updating_aggregate").config["ttl"] == "1d"


def test_ranks_of_windows_keep_ties() -> None:
    planned = plan(
        "SELECT id FROM (SELECT *, rank() OVER (PARTITION BY w ORDER BY c DESC) AS place FROM (SELECT id, "
        "count(*) AS c, tumble(INTERVAL '1 minute') AS w FROM orders GROUP BY id, w)) WHERE place = 1"
    )

    config = planned.only("std.top_n").config
    assert (config["n"], config["ties"], config["partition_by"]) == (1, True, ["window_start"])
    assert "rank_column" not in config


def test_a_rank_that_is_read_is_a_column() -> None:
    planned = plan(
        "SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY item ORDER BY price) AS n FROM orders) "
        "WHERE n <= 3"
    )

    assert planned.only("std.top_n").config["rank_column"] == "row_number"


def test_a_window_function_over_rows_of_a_window_is_computed_at_its_end() -> None:
    planned = plan(
        "SELECT id, lag(c) OVER (PARTITION BY w ORDER BY id) FROM (SELECT id, count(*) AS c, "
        "tumble(INTERVAL '1 minute') AS w FROM orders GROUP BY id, w)"
    )

    assert planned.only("std.window_function").config == {
        "expressions": {"lag": 'lag("count") over (partition by window_start order by id asc nulls last)'}
    }


def test_functions_of_rows_before_and_behind_in_one_order_are_one_node() -> None:
    planned = plan(
        "SET updating_ttl = '2 hours'; SELECT id, lag(price) OVER w AS a, lead(price, 2, 0) OVER w AS b, "
        "lag(id) OVER v AS c FROM orders WINDOW w AS (PARTITION BY item ORDER BY at, id DESC), v AS (ORDER BY at)"
    )

    found = [node.config for node in planned.nodes if node.operator == "std.neighbors"]
    assert sorted(found, key=len) == [
        {"values": [{"function": "lag", "column": "id", "offset": 1, "as": "lag_2"}], "ttl": "2h"},
        {
            "keys": ["item"],
            "order_by": [{"column": "id", "descending": True, "nulls_last": False}],
            "values": [
                {"function": "lag", "column": "price", "offset": 1, "as": "lag"},
                {"function": "lead", "column": "price", "offset": 2, "as": "lead", "default": "0"},
            ],
            "ttl": "2h",
        },
    ]


def test_times_of_arrival_are_asked_for_by_a_generated_column() -> None:
    planned = plan(
        "CREATE TABLE bids (arrived TIMESTAMP GENERATED ALWAYS AS (now()), WATERMARK FOR arrived) WITH (connector = "
        "'nexmark', table = 'bid', events = 10); SELECT count(*) FROM bids GROUP BY tumble(INTERVAL '1 second')"
    )

    assert planned.only("std.tumbling_window").config["time"] == "processing"
    assert not [node for node in planned.nodes if node.operator == "std.watermark"]


def test_conditions_of_aggregates_keep_their_columns() -> None:
    planned = plan("SELECT id, count(*) FILTER (WHERE price > 1), sum(count + 1) FROM orders GROUP BY id")

    assert set(planned.node("query_columns").config["keep"]) >= {"id", "price"}
    assert planned.only("std.updating_aggregate").config["aggregates"][0]["filter"] == "(price > 1.0)"


def test_columns_of_a_sink_are_cast_to_what_it_declares() -> None:
    planned = plan(
        "CREATE TABLE s (a INT, b TEXT) WITH (connector = 'blackhole'); INSERT INTO s SELECT id, item FROM orders"
    )

    assert planned.node("s_rows").config == {"expressions": {"a": "CAST(id AS INT)", "b": "item"}}


def test_a_lookup_is_a_join_with_a_table_in_files(tmp_path: object) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = f"{tmp_path}/names.parquet"
    pq.write_table(pa.table({"id": pa.array([1]), "name": ["a"]}), path)
    planned = plan(
        f"CREATE TABLE names (id BIGINT, name TEXT) WITH (connector = 'filesystem', type = 'lookup', path = '{path}');"
        "SELECT o.id, n.name FROM orders o LEFT JOIN names FOR SYSTEM_TIME AS OF o.at AS n ON o.id = n.id"
    )

    config = planned.only("std.lookup_join").config
    assert (config["type"], config["on"]) == ("left", [{"left": "id", "right": "id"}])


def test_each_call_of_an_asynchronous_function_has_a_column_of_its_own() -> None:
    planned = plan("SELECT slow(item) AS a, upper(item) AS b, slow(upper(item)) AS c FROM orders", functions=[slow])

    first, second = (node.config["as"] for node in planned.nodes if node.operator == "std.async_udf")
    assert planned.node(PRINTED).config["expressions"] == {"a": first, "b": "upper(item)", "c": second}
    assert first != second


def test_user_functions_and_aggregates_are_called_by_name() -> None:
    planned = plan("SELECT id, longest(shout(item)) FROM orders GROUP BY id", functions=[shout, Longest])

    assert planned.node("query_columns").config["expressions"] == {"argument_2": "shout(item)"}
    assert planned.only("std.updating_aggregate").config["aggregates"] == [
        {"function": "longest", "columns": ["argument_2"], "as": "longest"}
    ]


def test_a_random_number_is_computed_once() -> None:
    planned = plan("SELECT x AS a, x AS b, y AS c FROM (SELECT random() AS x, random() AS y FROM orders)")

    (columns,) = (node.config["expressions"] for node in planned.nodes if node.id == "query_columns")
    assert columns == {"x": "random()", "y": "random()"}
    assert planned.node(PRINTED).config["expressions"] == {"a": "x", "b": "x", "c": "y"}
