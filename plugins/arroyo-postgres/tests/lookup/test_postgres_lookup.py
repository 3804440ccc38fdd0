"""Rows of a real PostgreSQL by key: one question for a batch, every type, connections that break."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arroyo_postgres.lookup.idle_connections import IdleConnections
from arroyo_postgres.lookup.lookup import PostgresLookup, check_lookup
from arroyo_postgres.lookup_pb2 import LookupConfig
from arroyo_testing import FakeClock, OperatorHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, with_defaults
from arroyo_core.errors import ConfigError, DataError, ExternalError, InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.server


@pytest.fixture
def connections() -> Iterator[IdleConnections]:
    made = IdleConnections()
    yield made
    made.close()


@pytest.fixture
def database(server: PostgresServer) -> PostgresServer:
    server.execute(
        "drop schema public cascade",
        "create schema public",
        "create table customers (id bigint primary key, name text, city varchar(20), limit_eur numeric(10,2))",
        "insert into customers values (1, 'Ada', 'Oslo', 10.50), (2, 'Bob', null, null), (3, '', 'Rome', 0)",
    )
    return server


def lookup(server: PostgresServer, connections: IdleConnections, **fields: Any) -> PostgresLookup:
    config = json_format.ParseDict({"connection": server.config, **fields}, LookupConfig())
    return PostgresLookup(check_lookup(with_defaults(config)), connections)


def find(table: PostgresLookup, **keys: Any) -> list[dict[str, Any]]:
    schema = table.schema()
    asked = pa.table(keys, schema=pa.schema([schema.field(name) for name in keys]))
    found = table.find(asked, schema)
    assert found.schema == schema
    return sorted(found.to_pylist(), key=str)


def test_rows_of_the_keys_come_and_no_others(database, connections):
    table = lookup(database, connections, table="customers")
    assert find(table, id=[1, 2, 99]) == [
        {"id": 1, "name": "Ada", "city": "Oslo", "limit_eur": Decimal("10.50")},
        {"id": 2, "name": "Bob", "city": None, "limit_eur": None},
    ]


def test_columns_are_read_in_their_order(database, connections):
    table = lookup(database, connections, table="public.customers", columns=["city", "id"])
    assert table.schema().names == ["city", "id"]
    assert find(table, id=[3]) == [{"city": "Rome", "id": 3}]


def test_an_empty_text_is_not_null(database, connections):
    table = lookup(database, connections, table="customers", columns=["name"])
    assert find(table, name=["", "nobody"]) == [{"name": ""}]


def test_several_columns_may_be_the_key(database, connections):
    table = lookup(database, connections, table="customers", columns=["id", "name"])
    assert find(table, id=[1, 1, 2], name=["Ada", "Bob", "Bob"]) == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]


def test_a_query_may_be_asked(database, connections):
    query = "select city, count(*) as n from customers group by city -- by city;"
    table = lookup(database, connections, query=query)
    assert find(table, city=["Oslo", "Bonn"]) == [{"city": "Oslo", "n": 1}]


def test_a_question_cannot_change_anything(database, connections):
    database.execute("create function spoil() returns int language sql as 'delete from customers returning 1'")
    table = lookup(database, connections, query="select id, spoil() as s from customers")
    with pytest.raises(ConfigError, match="a lookup only reads"):
        find(table, id=[1])
    assert database.execute("select count(*) from customers") == [(3,)]


def test_many_keys_are_asked_in_parts(database, connections, monkeypatch):
    database.execute("insert into customers select n, 'n' || n from generate_series(100, 400) n")
    monkeypatch.setattr(PostgresLookup, "keys_at_once", 100)
    table = lookup(database, connections, table="customers", columns=["id"])
    assert sorted(row["id"] for row in find(table, id=range(100, 500))) == list(range(100, 401))


@pytest.mark.parametrize(
    ("column", "sql", "value"),
    [
        ("smallint", "7", 7),
        ("integer", "-7", -7),
        ("text", "'a''b\\\"{},'", "a'b\\\"{},"),
        ("varchar(9)", "'é\n'", "é\n"),
        ("uuid", "'00000000-0000-0000-0000-000000000007'", "00000000-0000-0000-0000-000000000007"),
        ("numeric(9,3)", "1.5", Decimal("1.500")),
        ("boolean", "true", True),
        ("date", "'2024-02-29'", datetime.date(2024, 2, 29)),
        ("timestamp", "'2024-02-29 01:02:03.456789'", datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)),
        (
            "timestamptz",
            "'2024-02-29 01:02:03+02'",
            datetime.datetime(2024, 2, 28, 23, 2, 3, tzinfo=datetime.UTC),
        ),
        ("bytea", r"'\x00ff5c'", b"\x00\xff\\"),
    ],
)
def test_values_of_every_type_can_be_keys(database, connections, column, sql, value):
    database.execute(f"create table things (k {column}, n int)", f"insert into things values ({sql}, 1), (null, 2)")
    table = lookup(database, connections, table="things")
    assert find(table, k=[value]) == [{"k": value, "n": 1}]


def test_a_connection_stays_for_the_next_question(database, connections):
    table = lookup(database, connections, table="customers")

    def pids() -> set[object]:
        rows = database.execute("select pid from pg_stat_activity where application_name = 'arroyo lookup'")
        return {pid for (pid,) in rows}

    # The server may still be busy with the end of others.
    before = pids()
    find(table, id=[1])
    first = pids() - before
    find(lookup(database, connections, table="customers"), id=[1])
    assert len(first) == 1
    assert pids() - before == first


def test_an_idle_connection_that_was_closed_is_replaced(database, connections):
    table = lookup(database, connections, table="customers")
    expected = find(table, id=[1])
    database.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'arroyo lookup'")
    assert find(table, id=[1]) == expected


def test_an_outage_is_tried_again_by_the_job(own_server, connections):
    own_server.execute("create table customers (id bigint)")
    table = lookup(own_server, connections, table="customers")
    schema = table.schema()
    own_server.kill()
    with pytest.raises(ExternalError, match="cannot"):
        table.find(pa.table({"id": [1]}), schema)
    own_server.start()
    assert table.find(pa.table({"id": [1]}), schema).num_rows == 0


def test_a_column_that_is_gone_is_told(database, connections):
    schema = lookup(database, connections, table="customers").schema()
    database.execute("alter table customers drop column city")
    with pytest.raises(DataError, match="had a column 'city'"):
        lookup(database, connections, table="customers").find(pa.table({"id": [1]}), schema)


@pytest.mark.parametrize(
    ("fields", "words", "field"),
    [
        ({}, "one of table and query is needed", "table"),
        ({"table": "a", "query": "select 1"}, "one of table and query", "query"),
        ({"table": "no such"}, "not the name of a table", "table"),
        ({"table": "nobody"}, 'relation "nobody" does not exist', "table"),
        ({"table": "customers", "columns": ["id", "id"]}, "named twice", "columns[1]"),
        ({"table": "customers", "columns": ["id", "nam"]}, "no column 'nam'", "columns[1]"),
        ({"query": "select 1 as a, 2 as a"}, "two columns 'a'", "query"),
    ],
)
def test_mistakes_name_their_field(database, connections, fields, words, field):
    with pytest.raises(ConfigError, match=words) as refused:
        lookup(database, connections, **fields).schema()
    assert refused.value.field == field


def test_floats_are_no_keys(database, connections):
    database.execute("create table things (k float8, n int)")
    with pytest.raises(ConfigError, match="not looked up by such values"):
        lookup(database, connections, table="things").check_keys(["k"])
    lookup(database, connections, table="things").check_keys(["n"])


def pipeline(server: PostgresServer, table: str) -> str:
    config = server.config
    connection = "{" + ", ".join(f'{name}: "{config[name]}"' for name in ("host", "database", "user", "password"))
    return f"""
name: rich
nodes:
  - id: numbers
    operator: impulse.source
    config: {{count: 10, rate: 1}}
  - id: cast
    operator: std.project
    inputs: [numbers]
    config: {{expressions: {{counter: cast(counter as bigint)}}}}
  - id: rich
    operator: std.lookup_join
    inputs: [cast]
    config:
      table:
        lookup: postgres.lookup
        config: {{connection: {connection}, port: {config["port"]}}}, table: {table}, columns: [id, city]}}
      on: [{{left: counter, right: id}}]
      type: left
      cache: {{ttl: 60s}}
  - id: out
    operator: std.blackhole
    inputs: [rich]
"""


def test_a_join_asks_once_for_a_batch_and_keeps_the_answers(database):
    plugins = installed_plugins()
    stream = ArroyoSchema(pa.schema({"counter": pa.int64()}))
    plan = plan_text(pipeline(database, "customers"), plugins=plugins, environment={})
    constructor = plugins.constructor("std.lookup_join")

    def make():
        config = constructor.config_type.FromString(plan.nodes["rich"].config)
        return constructor.with_config(config, plugins.registry).operator

    def batch(*ids):
        return pa.RecordBatch.from_pydict({"counter": pa.array(ids, pa.int64())})

    with OperatorHarness(make, inputs=[stream], clock=FakeClock(now_us=1)) as subtask:
        subtask.feed(batch(1, 7, 1))
        database.execute("update customers set city = 'Bergen'")
        subtask.feed(batch(1, 3))
        found = [(row["counter"], row["city"]) for row in subtask.output.to_pylist()]
        assert sorted(found, key=str) == [(1, "Oslo"), (1, "Oslo"), (1, "Oslo"), (3, "Bergen"), (7, None)]


def test_a_table_that_is_missing_is_a_mistake_with_a_line(database):
    with pytest.raises(InvalidPipelineError, match="nobody") as refused:
        plan_text(pipeline(database, "nobody"), plugins=installed_plugins(), environment={})
    (error,) = refused.value.errors
    assert error.at.line == 17
    assert "only for tests" not in str(error)


HOSTILE = [
    "'); drop table customers; --",
    "\\'; drop table customers; --",
    '"}; drop table customers; --',
    "{NULL}",
    "%s",
    "$1",
    "\\",
    "\n",
]


@pytest.mark.parametrize("name", ['a"; drop table customers; --', "%s", "100%", "a\\'"])
def test_names_and_values_that_are_sql_are_not_run(database, connections, name):
    quoted = '"' + name.replace('"', '""') + '"'
    database.execute(f"create table odd ({quoted} text, n int)")
    with database.connect() as connection:
        for place, value in enumerate(HOSTILE):
            connection.execute(b"insert into odd values (%s, %s)", [value, place])
    table = lookup(database, connections, table="odd", columns=[name, "n"])
    assert sorted(row["n"] for row in find(table, **{name: HOSTILE})) == list(range(len(HOSTILE)))
    assert find(table, **{name: ["' or true --", "{}"]}) == []
    assert database.execute("select count(*) from customers") == [(3,)]
