"""Rows of a real MariaDB by key: few questions for a batch, every type, sessions that break."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arroyo_mysql.lookup.idle_sessions import IdleSessions
from arroyo_mysql.lookup.lookup import MysqlLookup
from arroyo_mysql.lookup.settings import check_lookup
from arroyo_mysql.lookup_pb2 import LookupConfig
from google.protobuf import json_format

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError, DataError, ExternalError
from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server

UTC = datetime.UTC


@pytest.fixture
def sessions() -> Iterator[IdleSessions]:
    made = IdleSessions()
    yield made
    made.close()


@pytest.fixture
def customers(database: MysqlServer) -> MysqlServer:
    database.execute(
        "create table customers (id bigint primary key, name text, city varchar(20), limit_eur decimal(10,2))",
        "insert into customers values (1, 'Ada', 'Oslo', 10.50), (2, 'Bob', null, null), (3, '', 'Rome', 0)",
    )
    return database


def lookup(server: MysqlServer, sessions: IdleSessions, **fields: Any) -> MysqlLookup:
    config = json_format.ParseDict({"connection": server.config, **fields}, LookupConfig())
    return MysqlLookup(check_lookup(with_defaults(config)), sessions)


def find(table: MysqlLookup, **keys: Any) -> list[dict[str, Any]]:
    schema = table.schema()
    asked = pa.table(keys, schema=pa.schema([schema.field(name) for name in keys]))
    found = table.find(asked, schema)
    assert found.schema == schema
    return sorted(found.to_pylist(), key=str)


def test_rows_of_the_keys_come_and_no_others(customers, sessions):
    table = lookup(customers, sessions, table="customers")
    assert find(table, id=[1, 2, 99]) == [
        {"id": 1, "name": "Ada", "city": "Oslo", "limit_eur": Decimal("10.50")},
        {"id": 2, "name": "Bob", "city": None, "limit_eur": None},
    ]
    assert find(table, id=[98, 99]) == []


def test_columns_are_read_in_their_order(customers, sessions):
    table = lookup(customers, sessions, table="shop.customers", columns=["city", "id"])
    assert table.schema().names == ["city", "id"]
    assert find(table, id=[3]) == [{"city": "Rome", "id": 3}]


def test_several_columns_may_be_the_key(customers, sessions):
    table = lookup(customers, sessions, table="customers", columns=["id", "name"])
    assert find(table, id=[1, 1, 2], name=["Ada", "Bob", "Bob"]) == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]


def test_a_query_may_be_asked(customers, sessions):
    query = "select city, count(*) as n from customers group by city -- by city;"
    table = lookup(customers, sessions, query=query)
    assert find(table, city=["Oslo", "Bonn"]) == [{"city": "Oslo", "n": 1}]


def test_a_question_cannot_change_anything(customers, sessions):
    customers.execute("create function spoil() returns int deterministic begin delete from customers; return 1; end")
    table = lookup(customers, sessions, query="select id, spoil() as s from customers")
    with pytest.raises(ConfigError, match="a lookup only reads"):
        find(table, id=[1])
    assert customers.execute("select count(*) from customers") == [(3,)]


def test_many_keys_are_asked_in_parts(customers, sessions):
    customers.execute("insert into customers (id, name) select seq, seq from seq_100_to_3000")
    table = lookup(customers, sessions, table="customers", columns=["id", "name"])
    assert [row["id"] for row in sorted(find(table, id=range(100, 4000)), key=lambda row: row["id"])] == list(
        range(100, 3001)
    )


def test_an_index_is_used_for_one_column_and_for_several(customers, sessions):
    """What the server read from the table, by its own count."""
    customers.execute(
        "create table things (a varchar(20), b int, n int, unique (a, b), unique (n))",
        "insert into things select concat('a', seq), seq, seq from seq_1_to_50000",
        "analyze table things",
    )
    table = lookup(customers, sessions, table="things")
    read = "select variable_value from information_schema.global_status where variable_name = 'HANDLER_READ_RND_NEXT'"
    for keys in ({"n": range(1, 401)}, {"a": [f"a{n}" for n in range(1, 401)], "b": range(1, 401)}):
        table.schema()
        ((before,),) = customers.execute(read)
        assert len(find(table, **keys)) == 400
        ((after,),) = customers.execute(read)
        assert int(after) - int(before) < 5000


@pytest.mark.parametrize(
    ("column", "sql", "value"),
    [
        ("tinyint", "-7", -7),
        ("tinyint(1)", "5", 5),
        ("smallint unsigned", "65535", 65535),
        ("mediumint", "-7", -7),
        ("int unsigned", "4294967295", 2**32 - 1),
        ("bigint unsigned", "18446744073709551615", 2**64 - 1),
        ("text", "'a''b\\\\\"{},'", "a'b\\\"{},"),
        ("varchar(9) character set latin1", "'é\n'", "é\n"),
        ("uuid", "'00000000-0000-0000-0000-000000000007'", "00000000-0000-0000-0000-000000000007"),
        ("enum('a','b')", "'b'", "b"),
        ("set('a','b')", "'a,b'", "a,b"),
        ("decimal(9,3)", "1.5", Decimal("1.500")),
        ("decimal(38,12) unsigned", "0.000000100001", Decimal("0.000000100001")),
        ("decimal(65,2)", "123456789012345678901234567890.25", Decimal("123456789012345678901234567890.25")),
        ("boolean", "true", 1),
        ("year", "2024", 2024),
        ("bit(9)", "b'100000001'", 257),
        ("date", "'2024-02-29'", datetime.date(2024, 2, 29)),
        ("datetime(6)", "'2024-02-29 01:02:03.456789'", datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)),
        ("datetime", "'2024-02-29 01:02:03'", datetime.datetime(2024, 2, 29, 1, 2, 3)),
        ("timestamp", "'2024-02-28 23:02:03'", datetime.datetime(2024, 2, 28, 23, 2, 3, tzinfo=UTC)),
        ("varbinary(9)", "X'00ff5c'", b"\x00\xff\\"),
    ],
)
def test_values_of_every_type_can_be_keys(customers, sessions, column, sql, value):
    customers.execute(
        f"create table things (k {column} null, n int)", f"insert into things values ({sql}, 1), (null, 2)"
    )
    table = lookup(customers, sessions, table="things")
    assert find(table, k=[value]) == [{"k": value, "n": 1}]


@pytest.mark.parametrize(
    ("column", "sql", "value"),
    [
        ("float", "16777217.5e-3", 16777.216796875),
        ("double", "0.1", 0.1),
        ("time(3)", "'-838:59:58.125'", -datetime.timedelta(hours=838, minutes=59, seconds=58, milliseconds=125)),
        ("json", """'{"a": [1, null]}'""", '{"a": [1, null]}'),
        ("blob", "X''", b""),
        ("date", "'0000-00-00'", None),
        ("datetime", "'2024-00-01'", None),
    ],
)
def test_values_of_other_types_are_read(customers, sessions, column, sql, value):
    customers.execute("create or replace table things (n int)", f"alter table things add k {column}")
    customers.execute(f"insert into things values (1, {sql})")
    assert find(lookup(customers, sessions, table="things"), n=[1]) == [{"n": 1, "k": value}]


def threads(server):
    return server.execute("select id from information_schema.processlist where id <> connection_id() and db = 'shop'")


def test_a_session_stays_for_the_next_question(customers, sessions):
    before = set(threads(customers))
    find(lookup(customers, sessions, table="customers"), id=[1])
    first = set(threads(customers)) - before
    find(lookup(customers, sessions, table="customers"), id=[1])
    assert len(first) == 1
    assert first <= set(threads(customers))
    assert len(set(threads(customers)) - before) == 1


def test_an_idle_session_that_was_closed_is_replaced(customers, sessions):
    before = set(threads(customers))
    table = lookup(customers, sessions, table="customers")
    expected = find(table, id=[1])
    for (thread,) in set(threads(customers)) - before:
        customers.execute(f"kill {thread}")
    assert find(table, id=[1]) == expected


def test_an_outage_is_tried_again_by_the_job(own_server, sessions):
    own_server.execute("create table customers (id bigint)")
    table = lookup(own_server, sessions, table="customers")
    schema = table.schema()
    own_server.kill()
    with pytest.raises(ExternalError, match="cannot"):
        table.find(pa.table({"id": [1]}), schema)
    own_server.start()
    assert table.find(pa.table({"id": [1]}), schema).num_rows == 0


def test_a_column_that_is_gone_is_told(customers, sessions):
    schema = lookup(customers, sessions, table="customers").schema()
    customers.execute("alter table customers drop column city")
    with pytest.raises(DataError, match="had a column 'city'"):
        lookup(customers, sessions, table="customers").find(pa.table({"id": [1]}), schema)


@pytest.mark.parametrize(
    ("fields", "words", "field"),
    [
        ({}, "one of table and query is needed", "table"),
        ({"table": "a", "query": "select 1"}, "one of table and query", "query"),
        ({"table": "no such"}, "not the name of a table", "table"),
        ({"table": "nobody"}, "'shop.nobody' doesn't exist", "table"),
        ({"table": "customers", "columns": ["id", "id"]}, "named twice", "columns[1]"),
        ({"table": "customers", "columns": ["id", "nam"]}, "no column 'nam'", "columns[1]"),
        ({"query": "select 1 as a, 2 as a"}, "Duplicate column name 'a'", "query"),
        ({"query": "selekt 1"}, "syntax", "query"),
    ],
)
def test_mistakes_name_their_field(customers, sessions, fields, words, field):
    with pytest.raises(ConfigError, match=words) as refused:
        lookup(customers, sessions, **fields).schema()
    assert refused.value.field == field


def test_floats_are_no_keys(customers, sessions):
    customers.execute("create table things (k double, n int)")
    with pytest.raises(ConfigError, match="not looked up by such values"):
        lookup(customers, sessions, table="things").check_keys(["k"])
    lookup(customers, sessions, table="things").check_keys(["n"])
