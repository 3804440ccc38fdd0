"""Rows in a table of a real MariaDB: added, replaced, deleted, each once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint
from tests.mysql_server import MysqlServer

from .support import harness, make_sink, write

pytestmark = pytest.mark.server

STREAM = pa.schema({"word": pa.string(), "n": pa.int64()})
UPSERT = {"mode": "upsert", "keys": ["word"], "create_table": True}


def rows(*items):
    return pa.RecordBatch.from_pylist([{"word": word, "n": n} for word, n in items], STREAM)


def found(database):
    return database.execute("select word, n from totals order by word, n")


def test_rows_are_added_when_their_epoch_is_committed(database: MysqlServer):
    with harness(database, STREAM, parallelism=2, create_table=True) as life:
        life.process(rows(("a", 1), ("b", None), (None, 3)))
        staged = life.checkpoint()
        assert database.execute("show tables like 'totals'") == []
        life.commit(staged)
        assert found(database) == [(None, 3), ("a", 1), ("b", None)]
        assert life.counters == {"written_rows": 3}


def test_rows_are_replaced_by_key(database: MysqlServer):
    write(database, rows(("a", 1), ("b", 2), ("a", 3)), rows(("b", 4), ("c", 5)), **UPSERT)
    assert found(database) == [("a", 3), ("b", 4), ("c", 5)]


def test_rows_that_are_taken_back_are_deleted(database: MysqlServer):
    stream = with_updating(ArroyoSchema(STREAM))
    changes = [(rows(("a", 1), ("b", 2), ("c", 3)), False), (rows(("b", 2), ("c", 3)), True), (rows(("c", 9)), False)]
    with harness(database, stream, **UPSERT) as life:
        for batch, is_retract in changes:
            life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["word"])))
            life.commit(life.checkpoint())
            life.go_on()
    assert found(database) == [("a", 1), ("c", 9)]


def test_what_std_upsert_says_is_deleted_is_deleted(database: MysqlServer):
    stream = STREAM.append(pa.field("deleted", pa.bool_()))

    def batch(*items):
        return pa.RecordBatch.from_pylist([dict(zip(stream.names, item, strict=True)) for item in items], stream)

    first, second = batch(("a", 1, False), ("b", 2, False)), batch(("b", None, True), ("c", 3, False))
    write(database, first, second, deleted_column="deleted", **UPSERT)
    assert found(database) == [("a", 1), ("c", 3)]


def test_a_key_of_several_columns_and_nothing_else(database: MysqlServer):
    fields = {"mode": "upsert", "keys": ["n", "word"], "create_table": True}
    write(database, rows(("a", 1), ("a", 2)), rows(("a", 1), ("b", 1)), **fields)
    assert found(database) == [("a", 1), ("a", 2), ("b", 1)]


def test_columns_are_found_by_name_and_others_keep_their_defaults(database: MysqlServer):
    database.execute(
        "create table totals (id int auto_increment primary key, n bigint not null, word text, at text default 'now')"
    )
    write(database, rows(("a", 1)))
    assert database.execute("select * from totals") == [(1, 1, "a", "now")]


def test_names_are_read_as_in_sql(database: MysqlServer):
    database.execute(
        "create database if not exists `Odd One`",
        "create or replace table `Odd One`.`To``tals` (`Se lect` bigint primary key, v int)",
        "drop table if exists `Odd One`.`Com mits`",
    )
    schema = pa.schema({"Se lect": pa.int64(), "v": pa.int32()})
    batch = pa.RecordBatch.from_pylist([{"Se lect": 1, "v": 2}], schema)
    fields = {"mode": "upsert", "keys": ["Se lect"], "token_table": "`Odd One`.`Com mits`"}
    write(database, batch, batch, table="`Odd One`.`To``tals`", **fields)
    assert database.execute("select * from `Odd One`.`To``tals`") == [(1, 2)]
    assert database.execute("select epoch from `Odd One`.`Com mits`") == [(2,)]
    database.execute("drop database `Odd One`")


def test_a_table_with_partitions_takes_changes(database: MysqlServer):
    database.execute(
        "create table totals (word varchar(9) character set utf8mb4 collate utf8mb4_bin primary key, n bigint) "
        "partition by key (word) partitions 2"
    )
    write(database, rows(("a", 1), ("b", 2)), rows(("a", 3)), mode="upsert", keys=["word"])
    assert found(database) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize("name", ["totals", "arroyo_commits"])
@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY"])
def test_engines_without_transactions_are_refused(database: MysqlServer, name, engine):
    """A transaction on them is none: what is in it would be there at once, and remain."""
    columns = {
        "totals": "word varchar(9), n bigint",
        "arroyo_commits": "incarnation varchar(64), node varchar(255), generation bigint, epoch bigint, "
        "primary key (incarnation, node)",
    }[name]
    sink = make_sink(database, create_table=True).operator
    database.execute(f"create table {name} ({columns}) engine = {engine} charset latin1")
    refusal = pytest.raises(ConfigError, match=f"has the engine {engine}, which has no transactions")
    with refusal, sink.target(STREAM).transaction() as writer:
        writer.add(rows(("a", 1)))
    assert database.execute(f"select count(*) from {name}") == [(0,)]
    if name == "totals":
        with pytest.raises(ConfigError, match=f"has the engine {engine}") as refused:
            make_sink(database).operator.output_schema([ArroyoSchema(STREAM)])
        assert refused.value.field == "table"


def test_keys_that_look_alike_are_different(database: MysqlServer):
    write(database, rows(("a", 1), ("A", 2), ("ä", 3), ("a ", 4), ("", 5)), rows(("A", 6)), **UPSERT)
    assert sorted(found(database)) == [("", 5), ("A", 6), ("a", 1), ("a ", 4), ("ä", 3)]


def test_a_collation_that_takes_texts_for_equal_is_no_key(database: MysqlServer):
    database.execute("create table totals (word varchar(9) collate utf8mb4_general_ci primary key, n bigint)")
    with pytest.raises(ConfigError, match="texts that differ are the same key: ALTER TABLE") as refused:
        make_sink(database, mode="upsert", keys=["word"]).operator.output_schema([ArroyoSchema(STREAM)])
    statement = str(refused.value).partition("the same key: ")[2].partition("COLLATE utf8mb4_bin")[0]
    database.execute(f"{statement} COLLATE utf8mb4_bin")
    with harness(database, STREAM, mode="upsert", keys=["word"]) as life:
        life.process(rows(("a", 1), ("a ", 2)))
        with pytest.raises(OperatorError, match="a text with a space at its end, 'a '"):
            life.commit(life.checkpoint())
    assert found(database) == []


def test_another_unique_index_is_refused_where_a_row_could_be_found_by_it(database: MysqlServer):
    fields = {"mode": "upsert", "keys": ["word"]}
    key = "word varchar(9) collate utf8mb4_bin unique"
    for columns in (f"{key}, n bigint unique", f"{key}, n bigint, m int not null default 3 unique"):
        database.execute(f"create or replace table totals ({columns})")
        with pytest.raises(ConfigError, match="has another unique index"):
            make_sink(database, **fields).operator.output_schema([ArroyoSchema(STREAM)])
    for columns in (
        f"{key}, n bigint, id int auto_increment primary key",
        f"{key}, n bigint, m int unique",
        f"{key}, n bigint, unique (n, word)",
    ):
        database.execute(f"create or replace table totals ({columns})")
        write(database, rows(("a", 1), ("b", 1)), rows(("a", 2)), incarnation=str(len(columns)), **fields)
        assert found(database) == [("a", 2), ("b", 1)]


def test_many_rows_and_large_ones_are_written_and_deleted_in_parts(database: MysqlServer):
    stream = with_updating(ArroyoSchema(STREAM))
    many = rows(*((f"{n}" + "x" * (2 << 20) * (n == 7), n) for n in range(3000)))
    database.execute(
        "create table totals (word longtext, n bigint primary key)",
        "set global max_allowed_packet = 4194304",
    )
    try:
        with harness(database, stream, mode="upsert", keys=["n"]) as life:
            for batch, is_retract in ((many, False), (many.slice(0, 2000), True)):
                life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["n"])))
                life.commit(life.checkpoint())
                if not is_retract:
                    assert database.execute("select count(*), max(length(word)) from totals") == [(3000, (2 << 20) + 1)]
                life.go_on()
        assert database.execute("select count(*), min(n) from totals") == [(1000, 2000)]
    finally:
        database.execute("set global max_allowed_packet = 16777216")


def test_a_row_that_is_larger_than_a_packet_is_refused(database: MysqlServer):
    database.execute("set global max_allowed_packet = 1048576")
    try:
        with harness(database, STREAM, create_table=True) as life:
            life.process(rows(("x" * (2 << 20), 1)))
            with pytest.raises(OperatorError, match="raise its max_allowed_packet") as refused:
                life.commit(life.checkpoint())
            assert retry_hint(refused.value) is RetryHint.NO_RETRY
    finally:
        database.execute("set global max_allowed_packet = 16777216")


def test_a_driver_that_lost_the_job_changes_nothing(database: MysqlServer):
    with harness(database, STREAM, **UPSERT) as life:
        life.process(rows(("a", 1)))
        staged, token = life.checkpoint(), life.last_token
        life.take_over()
        life.commit(staged)
        life.process(rows(("a", 2)))
        life.commit(life.checkpoint())
        with pytest.raises(OperatorError, match="generation 2 of this job has written") as refused:
            life.commit(staged, token=token)
        assert retry_hint(refused.value) is RetryHint.NO_RETRY
    assert found(database) == [("a", 2)]


def test_jobs_and_nodes_share_a_table_of_tokens(database: MysqlServer):
    for incarnation in ("a1", "b2"):
        write(database, rows((incarnation, 1)), incarnation=incarnation, create_table=True)
    assert found(database) == [("a1", 1), ("b2", 1)]
    assert database.execute("select count(*) from arroyo_commits") == [(2,)]


def test_an_outage_is_tried_again(own_server: MysqlServer):
    with harness(own_server, STREAM, create_table=True) as life:
        life.process(rows(("a", 1)))
        staged = life.checkpoint()
        own_server.kill()
        with pytest.raises(OperatorError, match="cannot connect") as failed:
            life.commit(staged)
        assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
        own_server.start()
        life.commit(staged)
    assert found(own_server) == [("a", 1)]


def test_a_pipeline_can_be_planned_while_the_database_is_away(own_server: MysqlServer):
    own_server.stop()
    sink = make_sink(own_server).operator
    assert sink.output_schema([ArroyoSchema(STREAM)]).schema == STREAM


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_floats_that_mysql_has_not_are_refused_before_they_are_staged(database: MysqlServer, value):
    stream = pa.schema({"word": pa.string(), "x": pa.float64()})
    with harness(database, stream, create_table=True) as life:
        with pytest.raises(OperatorError, match=r"column 'x' has the value .*, which MySQL has not") as refused:
            life.process(pa.RecordBatch.from_pylist([{"word": "a", "x": 1.0}, {"word": "b", "x": value}], stream))
        assert retry_hint(refused.value) is RetryHint.NO_RETRY


@pytest.mark.parametrize(
    ("column", "words"),
    [("n bigint check (n > 0)", "CONSTRAINT .* failed"), ("n bigint, unique (word)", "Duplicate entry")],
)
def test_a_row_that_the_table_refuses_names_the_reason(database: MysqlServer, column, words):
    database.execute(f"create table totals (word varchar(9), {column})", "insert into totals values ('a', 1)")
    with harness(database, STREAM) as life:
        life.process(rows(("b", 2), ("a", -1)))
        with pytest.raises(OperatorError, match=words) as refused:
            life.commit(life.checkpoint())
        assert retry_hint(refused.value) is RetryHint.NO_RETRY
    assert found(database) == [("a", 1)]


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
def test_a_table_that_does_not_fit_is_refused_while_planning(database: MysqlServer, table, fields, words, field):
    if table:
        database.execute(f"create table totals {table}")
    with pytest.raises(ConfigError, match=words) as refused:
        make_sink(database, **fields).operator.output_schema([ArroyoSchema(STREAM)])
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ({"a": pa.int64(), "A": pa.int64()}, "columns 'a' and 'A' are one to MySQL"),
        ({"a": pa.duration("us")}, r"duration\[us\], which MySQL has no type for"),
        ({"a": pa.decimal256(70, 2)}, "decimals of MySQL have 65 digits"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused_while_planning(database: MysqlServer, stream, words):
    with pytest.raises(ConfigError, match=words):
        make_sink(database, create_table=True).operator.output_schema([ArroyoSchema(pa.schema(stream))])


def test_a_view_is_refused(database: MysqlServer):
    database.execute("create view totals as select '' as word, 1 as n")
    with pytest.raises(ConfigError, match="is not a table that takes rows"):
        make_sink(database).operator.output_schema([ArroyoSchema(STREAM)])


def test_the_plan_shows_the_place_and_no_password(database: MysqlServer):
    sink = make_sink(database, **UPSERT).operator
    text = str(sink.display())
    assert f"127.0.0.1:{database.port}/shop" in text
    assert "only for tests" not in text
    assert sink.datasets()[0].name == "shop.totals"
    assert "arroyo_commits" in sink.state_settings([ArroyoSchema(STREAM)])["tokens"]
