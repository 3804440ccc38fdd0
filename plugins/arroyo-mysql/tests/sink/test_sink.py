"""Rows in a table of a real MariaDB: added, replaced, deleted, each once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_testing.databases import STREAM, UPSERT, HostileSinkSuite, SinkSuite, rows

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint

from .support import Database

pytestmark = pytest.mark.server


class TestSink(SinkSuite):
    key_type = "varchar(9)"
    serial = "id int auto_increment primary key"
    partitions = (
        "create table totals (word varchar(9) character set utf8mb4 collate utf8mb4_bin primary key, n bigint) "
        "partition by key (word) partitions 2",
    )
    refusal = "CONSTRAINT .* failed"


class TestHostileNames(HostileSinkSuite):
    quote = "`"


def test_names_are_read_as_in_sql(database: Database):
    database.execute(
        "create database if not exists `Odd One`",
        "create or replace table `Odd One`.`To``tals` (`Se lect` bigint primary key, v int)",
        "drop table if exists `Odd One`.`Com mits`",
    )
    schema = pa.schema({"Se lect": pa.int64(), "v": pa.int32()})
    batch = pa.RecordBatch.from_pylist([{"Se lect": 1, "v": 2}], schema)
    fields = {"mode": "upsert", "keys": ["Se lect"], "token_table": "`Odd One`.`Com mits`"}
    database.write(batch, batch, table="`Odd One`.`To``tals`", **fields)
    assert database.execute("select * from `Odd One`.`To``tals`") == [(1, 2)]
    assert database.execute("select epoch from `Odd One`.`Com mits`") == [(2,)]
    database.execute("drop database `Odd One`")


@pytest.mark.parametrize("name", ["totals", "arroyo_commits"])
@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY"])
def test_engines_without_transactions_are_refused(database: Database, name, engine):
    """A transaction on them is none: what is in it would be there at once, and remain."""
    columns = {
        "totals": "word varchar(9), n bigint",
        "arroyo_commits": "incarnation varchar(64), node varchar(255), generation bigint, epoch bigint, "
        "primary key (incarnation, node)",
    }[name]
    sink = database.make(create_table=True).operator
    database.execute(f"create table {name} ({columns}) engine = {engine} charset latin1")
    refusal = pytest.raises(ConfigError, match=f"has the engine {engine}, which has no transactions")
    with refusal, sink.target(STREAM).transaction() as writer:
        writer.add(rows(("a", 1)))
    assert database.execute(f"select count(*) from {name}") == [(0,)]
    if name == "totals":
        with pytest.raises(ConfigError, match=f"has the engine {engine}") as refused:
            database.plan()
        assert refused.value.field == "table"


def test_keys_that_look_alike_are_different(database: Database):
    database.write(rows(("a", 1), ("A", 2), ("ä", 3), ("a ", 4), ("", 5)), rows(("A", 6)), **UPSERT)
    assert sorted(database.found()) == [("", 5), ("A", 6), ("a", 1), ("a ", 4), ("ä", 3)]


def test_a_collation_that_takes_texts_for_equal_is_no_key(database: Database):
    database.execute("create table totals (word varchar(9) collate utf8mb4_general_ci primary key, n bigint)")
    with pytest.raises(ConfigError, match="texts that differ are the same key: ALTER TABLE") as refused:
        database.plan(mode="upsert", keys=["word"])
    statement = str(refused.value).partition("the same key: ")[2].partition("COLLATE utf8mb4_bin")[0]
    database.execute(f"{statement} COLLATE utf8mb4_bin")
    with database.harness(STREAM, mode="upsert", keys=["word"]) as life:
        life.process(rows(("a", 1), ("a ", 2)))
        with pytest.raises(OperatorError, match="a text with a space at its end, 'a '"):
            life.commit(life.checkpoint())
    assert database.found() == []


def test_another_unique_index_is_refused_where_a_row_could_be_found_by_it(database: Database):
    fields = {"mode": "upsert", "keys": ["word"]}
    key = "word varchar(9) collate utf8mb4_bin unique"
    for columns in (f"{key}, n bigint unique", f"{key}, n bigint, m int not null default 3 unique"):
        database.execute(f"create or replace table totals ({columns})")
        with pytest.raises(ConfigError, match="has another unique index"):
            database.plan(**fields)
    for columns in (
        f"{key}, n bigint, id int auto_increment primary key",
        f"{key}, n bigint, m int unique",
        f"{key}, n bigint, unique (n, word)",
    ):
        database.execute(f"create or replace table totals ({columns})")
        database.write(rows(("a", 1), ("b", 1)), rows(("a", 2)), incarnation=str(len(columns)), **fields)
        assert database.found() == [("a", 2), ("b", 1)]


def test_many_rows_and_large_ones_are_written_and_deleted_in_parts(database: Database):
    stream = with_updating(ArroyoSchema(STREAM))
    many = rows(*((f"{n}" + "x" * (2 << 20) * (n == 7), n) for n in range(3000)))
    database.execute(
        "create table totals (word longtext, n bigint primary key)",
        "set global max_allowed_packet = 4194304",
    )
    try:
        with database.harness(stream, mode="upsert", keys=["n"]) as life:
            for batch, is_retract in ((many, False), (many.slice(0, 2000), True)):
                life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["n"])))
                life.commit(life.checkpoint())
                if not is_retract:
                    assert database.execute("select count(*), max(length(word)) from totals") == [(3000, (2 << 20) + 1)]
                life.go_on()
        assert database.execute("select count(*), min(n) from totals") == [(1000, 2000)]
    finally:
        database.execute("set global max_allowed_packet = 16777216")


def test_a_row_that_is_larger_than_a_packet_is_refused(database: Database):
    database.execute("set global max_allowed_packet = 1048576")
    try:
        with database.harness(STREAM, create_table=True) as life:
            life.process(rows(("x" * (2 << 20), 1)))
            with pytest.raises(OperatorError, match="raise its max_allowed_packet") as refused:
                life.commit(life.checkpoint())
            assert retry_hint(refused.value) is RetryHint.NO_RETRY
    finally:
        database.execute("set global max_allowed_packet = 16777216")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_floats_that_mysql_has_not_are_refused_before_they_are_staged(database: Database, value):
    stream = pa.schema({"word": pa.string(), "x": pa.float64()})
    with database.harness(stream, create_table=True) as life:
        with pytest.raises(OperatorError, match=r"column 'x' has the value .*, which MySQL has not") as refused:
            life.process(pa.RecordBatch.from_pylist([{"word": "a", "x": 1.0}, {"word": "b", "x": value}], stream))
        assert retry_hint(refused.value) is RetryHint.NO_RETRY


def test_a_row_that_is_there_already_names_the_reason(database: Database):
    database.execute("create table totals (word varchar(9), n bigint, unique (word))")
    database.execute("insert into totals values ('a', 1)")
    with database.harness(STREAM) as life:
        life.process(rows(("b", 2), ("a", -1)))
        with pytest.raises(OperatorError, match="Duplicate entry") as refused:
            life.commit(life.checkpoint())
        assert retry_hint(refused.value) is RetryHint.NO_RETRY
    assert database.found() == [("a", 1)]


BIN = "word varchar(9) collate utf8mb4_bin"


@pytest.mark.parametrize(
    ("table", "fields", "words", "field"),
    [
        (None, {}, "there is no table 'shop.totals'.*create_table", "table"),
        ("(word text)", {}, "has no column 'n'", "table"),
        ("(word text, N bigint)", {}, "has no column 'n'", "table"),
        ("(word text, n int)", {}, r"'n' is int64, and int\(11\) in table", "table"),
        ("(word text, n bigint unsigned)", {}, r"'n' is int64, and bigint\(20\) unsigned in table", "table"),
        ("(word int, n bigint)", {}, r"'word' is string, and int\(11\) in table", "table"),
        ("(word text, n decimal(19))", {}, r"'n' is int64, and decimal\(19,0\) in table", "table"),
        ("(word text, n bigint, m int not null)", {}, "'m' of table .* must have a value", "table"),
        ("(word text, m int, n bigint as (m + 1))", {}, "'n' of table .* is made by the database", "table"),
        (f"({BIN}, n bigint)", {"mode": "upsert", "keys": ["word"]}, "ADD UNIQUE .*word", "keys"),
        (
            f"({BIN}, n bigint, unique (word, n))",
            {"mode": "upsert", "keys": ["word"]},
            "no unique index of exactly the columns word",
            "keys",
        ),
        (
            f"({BIN}, n bigint, unique (word(3)))",
            {"mode": "upsert", "keys": ["word"]},
            "no primary key and no unique index",
            "keys",
        ),
        ("(word text, n bigint)", {"mode": "upsert"}, "needs the columns of the key", "keys"),
        ("(word text, n bigint)", {"token_table": "shop.totals"}, "tokens need a table of their own", "token_table"),
        (None, {"table": "a b"}, "is not the name of a table", "table"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_while_planning(database: Database, table, fields, words, field):
    if table:
        database.execute(f"create table totals {table}")
    with pytest.raises(ConfigError, match=words) as refused:
        database.plan(**fields)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ({"a": pa.int64(), "A": pa.int64()}, "columns 'a' and 'A' are one to MySQL"),
        ({"a": pa.duration("us")}, r"duration\[us\], which MySQL has no type for"),
        ({"a": pa.decimal256(70, 2)}, "decimals of MySQL have 65 digits"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused_while_planning(database: Database, stream, words):
    with pytest.raises(ConfigError, match=words):
        database.plan(pa.schema(stream), create_table=True)
