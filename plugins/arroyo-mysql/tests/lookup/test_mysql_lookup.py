"""Rows of a real MariaDB by key: few questions for a batch, every type, sessions that break."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from arroyo_mysql.lookup import lookup
from arroyo_mysql.plugin import MysqlLookupConstructor
from arroyo_testing.databases import LookupDatabase, LookupSuite, find

from tests.mysql_server import MysqlServer
from tests.waiting import wait_until

pytestmark = pytest.mark.server

UTC = datetime.UTC
KEYS: list[tuple[str, str, Any]] = [
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
]


class Customers(LookupDatabase):
    constructor = MysqlLookupConstructor()
    decimal = "decimal"

    def empty(self) -> None:
        self.execute("drop database shop", "create database shop character set utf8mb4")

    def sessions(self) -> set[int]:
        found = self.execute(
            "select id from information_schema.processlist where id <> connection_id() and db = 'shop'"
        )
        return {row[0] for row in found}

    def end_session(self, number: int) -> None:
        self.execute(f"kill {number}")
        wait_until(lambda: number not in self.sessions())

    def close_idle(self) -> None:
        lookup.sessions.close()


@pytest.fixture
def customers(server: MysqlServer) -> Customers:
    return Customers(server)


class TestLookup(LookupSuite):
    spoil = "create function spoil() returns int deterministic begin delete from customers; return 1; end"
    float_type = "double"
    values = tuple((f"{kind} null", literal, value) for kind, literal, value in KEYS)
    mistakes = (
        ({"table": "nobody"}, "'shop.nobody' doesn't exist", "table"),
        ({"query": "select 1 as a, 2 as a"}, "Duplicate column name 'a'", "query"),
        ({"query": "selekt 1"}, "syntax", "query"),
    )


def test_a_table_may_be_named_with_its_database(customers: Customers) -> None:
    assert find(customers.lookup(table="shop.customers", columns=["city", "id"]), id=[3]) == [{"city": "Rome", "id": 3}]


def test_a_batch_of_more_keys_than_one_question_takes(customers: Customers) -> None:
    customers.execute("insert into customers (id, name) select seq, seq from seq_100_to_3000")
    table = customers.lookup(table="customers", columns=["id", "name"])
    assert sorted(row["id"] for row in find(table, id=range(100, 4000))) == list(range(100, 3001))


def test_an_index_is_used_for_one_column_and_for_several(customers):
    """What the server read from the table, by its own count."""
    customers.execute(
        "create table things (a varchar(20), b int, n int, unique (a, b), unique (n))",
        "insert into things select concat('a', seq), seq, seq from seq_1_to_50000",
        "analyze table things",
    )
    table = customers.lookup(table="things")
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
        ("float", "16777217.5e-3", 16777.216796875),
        ("double", "0.1", 0.1),
        ("time(3)", "'-838:59:58.125'", -datetime.timedelta(hours=838, minutes=59, seconds=58, milliseconds=125)),
        ("json", """'{"a": [1, null]}'""", '{"a": [1, null]}'),
        ("blob", "X''", b""),
        ("date", "'0000-00-00'", None),
        ("datetime", "'2024-00-01'", None),
    ],
)
def test_values_of_other_types_are_read(customers, column, sql, value):
    customers.execute("create or replace table things (n int)", f"alter table things add k {column}")
    customers.execute(f"insert into things values (1, {sql})")
    assert find(customers.lookup(table="things"), n=[1]) == [{"n": 1, "k": value}]
