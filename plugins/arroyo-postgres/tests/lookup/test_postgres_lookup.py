"""Rows of a real PostgreSQL by key: one question for a batch, every type, connections that break."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from arroyo_postgres.lookup import lookup
from arroyo_postgres.plugin import PostgresLookupConstructor
from arroyo_testing import FakeClock, OperatorHarness
from arroyo_testing.databases import LookupDatabase, LookupSuite, find

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.server


class Customers(LookupDatabase):
    constructor = PostgresLookupConstructor()
    decimal = "numeric"

    def empty(self) -> None:
        self.server.execute("drop schema public cascade", "create schema public")

    def sessions(self) -> set[int]:
        # The server may still be busy with the end of others.
        return {
            pid for (pid,) in self.execute("select pid from pg_stat_activity where application_name = 'arroyo lookup'")
        }

    def end_session(self, number: int) -> None:
        self.execute(f"select pg_terminate_backend({number}, 10000)")

    def close_idle(self) -> None:
        lookup.connections.close()


@pytest.fixture
def customers(server: PostgresServer) -> Customers:
    return Customers(server)


class TestLookup(LookupSuite):
    spoil = "create function spoil() returns int language sql as 'delete from customers returning 1'"
    float_type = "float8"
    values = (
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
    )
    mistakes = (
        ({"table": "nobody"}, 'relation "nobody" does not exist', "table"),
        ({"query": "select 1 as a, 2 as a"}, "two columns 'a'", "query"),
    )


def test_a_table_may_be_named_with_its_schema(customers: Customers) -> None:
    assert find(customers.lookup(table="public.customers", columns=["city", "id"]), id=[3]) == [
        {"city": "Rome", "id": 3}
    ]


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


def test_a_join_asks_once_for_a_batch_and_keeps_the_answers(customers):
    plugins = installed_plugins()
    stream = ArroyoSchema(pa.schema({"counter": pa.int64()}))
    plan = plan_text(pipeline(customers.server, "customers"), plugins=plugins, environment={})
    constructor = plugins.constructor("std.lookup_join")

    def make():
        config = constructor.config_type.FromString(plan.nodes["rich"].config)
        return constructor.with_config(config, plugins.registry).operator

    def batch(*ids):
        return pa.RecordBatch.from_pydict({"counter": pa.array(ids, pa.int64())})

    with OperatorHarness(make, inputs=[stream], clock=FakeClock(now_us=1)) as subtask:
        subtask.feed(batch(1, 7, 1))
        customers.execute("update customers set city = 'Bergen'")
        subtask.feed(batch(1, 3))
        found = [(row["counter"], row["city"]) for row in subtask.output.to_pylist()]
        assert sorted(found, key=str) == [(1, "Oslo"), (1, "Oslo"), (1, "Oslo"), (3, "Bergen"), (7, None)]


def test_a_table_that_is_missing_is_a_mistake_with_a_line(customers):
    with pytest.raises(InvalidPipelineError, match="nobody") as refused:
        plan_text(pipeline(customers.server, "nobody"), plugins=installed_plugins(), environment={})
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
def test_names_and_values_that_are_sql_are_not_run(customers, name):
    quoted = '"' + name.replace('"', '""') + '"'
    customers.execute(f"create table odd ({quoted} text, n int)")
    with customers.server.connect() as connection:
        for place, value in enumerate(HOSTILE):
            connection.execute(b"insert into odd values (%s, %s)", [value, place])
    table = customers.lookup(table="odd", columns=[name, "n"])
    assert sorted(row["n"] for row in find(table, **{name: HOSTILE})) == list(range(len(HOSTILE)))
    assert find(table, **{name: ["' or true --", "{}"]}) == []
    assert customers.execute("select count(*) from customers") == [(3,)]
