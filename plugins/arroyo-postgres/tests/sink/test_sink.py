"""Rows in a table of a real PostgreSQL: added, replaced, deleted, each once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint
from tests.postgres_server import PostgresServer

from .support import harness, make_sink, write

pytestmark = pytest.mark.server

STREAM = pa.schema({"word": pa.string(), "n": pa.int64()})
UPSERT = {"mode": "upsert", "keys": ["word"], "create_table": True}


def rows(*items):
    return pa.RecordBatch.from_pylist([{"word": word, "n": n} for word, n in items], STREAM)


def found(database):
    return database.execute("select word, n from totals order by word, n")


def test_rows_are_added_when_their_epoch_is_committed(database: PostgresServer):
    with harness(database, STREAM, parallelism=2, create_table=True) as life:
        life.process(rows(("a", 1), ("b", None), (None, 3)))
        staged = life.checkpoint()
        assert database.execute("select to_regclass('totals') is null") == [(True,)]
        life.commit(staged)
        assert found(database) == [("a", 1), ("b", None), (None, 3)]
        assert life.counters == {"written_rows": 3}


def test_rows_are_replaced_by_key(database: PostgresServer):
    write(database, rows(("a", 1), ("b", 2), ("a", 3)), rows(("b", 4), ("c", 5)), **UPSERT)
    assert found(database) == [("a", 3), ("b", 4), ("c", 5)]


def test_rows_that_are_taken_back_are_deleted(database: PostgresServer):
    stream = with_updating(ArroyoSchema(STREAM))
    changes = [(rows(("a", 1), ("b", 2), ("c", 3)), False), (rows(("b", 2), ("c", 3)), True), (rows(("c", 9)), False)]
    with harness(database, stream, **UPSERT) as life:
        for batch, is_retract in changes:
            life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["word"])))
            life.commit(life.checkpoint())
            life.go_on()
    assert found(database) == [("a", 1), ("c", 9)]


def test_what_std_upsert_says_is_deleted_is_deleted(database: PostgresServer):
    stream = STREAM.append(pa.field("deleted", pa.bool_()))

    def batch(*items):
        return pa.RecordBatch.from_pylist([dict(zip(stream.names, item, strict=True)) for item in items], stream)

    first, second = batch(("a", 1, False), ("b", 2, False)), batch(("b", None, True), ("c", 3, False))
    write(database, first, second, deleted_column="deleted", **UPSERT)
    assert found(database) == [("a", 1), ("c", 3)]


def test_a_key_of_several_columns_and_nothing_else(database: PostgresServer):
    fields = {"mode": "upsert", "keys": ["n", "word"], "create_table": True}
    write(database, rows(("a", 1), ("a", 2)), rows(("a", 1), ("b", 1)), **fields)
    assert found(database) == [("a", 1), ("a", 2), ("b", 1)]


def test_columns_are_found_by_name_and_others_keep_their_defaults(database: PostgresServer):
    database.execute(
        "create table totals (id int generated always as identity, n bigint not null, word text, at text default 'now')"
    )
    write(database, rows(("a", 1)))
    assert database.execute("select * from totals") == [(1, 1, "a", "now")]


def test_names_are_read_as_in_sql(database: PostgresServer):
    database.execute(
        'create schema "Odd One"', 'create table "Odd One"."To""tals" ("Se lect" bigint primary key, v int)'
    )
    schema = pa.schema({"Se lect": pa.int64(), "v": pa.int32()})
    batch = pa.RecordBatch.from_pylist([{"Se lect": 1, "v": 2}], schema)
    fields = {"mode": "upsert", "keys": ["Se lect"], "token_table": '"Odd One"."Com mits"'}
    write(database, batch, batch, table='"Odd One"."To""tals"', **fields)
    assert database.execute('select * from "Odd One"."To""tals"') == [(1, 2)]
    assert database.execute('select epoch from "Odd One"."Com mits"') == [(2,)]


def test_a_table_with_partitions_takes_changes(database: PostgresServer):
    database.execute(
        "create table totals (word text primary key, n bigint) partition by hash (word)",
        "create table t0 partition of totals for values with (modulus 2, remainder 0)",
        "create table t1 partition of totals for values with (modulus 2, remainder 1)",
    )
    write(database, rows(("a", 1), ("b", 2)), rows(("a", 3)), mode="upsert", keys=["word"])
    assert found(database) == [("a", 3), ("b", 2)]


def test_a_driver_that_lost_the_job_changes_nothing(database: PostgresServer):
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


def test_jobs_and_nodes_share_a_table_of_tokens(database: PostgresServer):
    for incarnation in ("a1", "b2"):
        write(database, rows((incarnation, 1)), incarnation=incarnation, create_table=True)
    assert found(database) == [("a1", 1), ("b2", 1)]
    assert database.execute("select count(*) from arroyo_commits") == [(2,)]


def test_an_outage_is_tried_again(own_server: PostgresServer):
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


def test_a_pipeline_can_be_planned_while_the_database_is_away(own_server: PostgresServer):
    own_server.stop()
    sink = make_sink(own_server).operator
    assert sink.output_schema([ArroyoSchema(STREAM)]).schema == STREAM


def test_a_text_with_nul_is_refused_before_it_is_staged(database: PostgresServer):
    with harness(database, STREAM, create_table=True) as life:
        with pytest.raises(OperatorError, match=r"column 'word' has a text with the character NUL") as refused:
            life.process(rows(("a", 1), ("b\0c", 2)))
        assert retry_hint(refused.value) is RetryHint.NO_RETRY


def test_a_row_that_the_table_refuses_names_the_reason(database: PostgresServer):
    database.execute("create table totals (word text, n bigint check (n > 0))")
    with harness(database, STREAM) as life:
        life.process(rows(("a", -1)))
        with pytest.raises(OperatorError, match="violates check constraint") as refused:
            life.commit(life.checkpoint())
        assert retry_hint(refused.value) is RetryHint.NO_RETRY


@pytest.mark.parametrize(
    ("table", "fields", "words", "field"),
    [
        (None, {}, "there is no table 'totals'.*create_table", "table"),
        ("(word text)", {}, "has no column 'n'", "table"),
        ("(word text, n int)", {}, "'n' is int64, and integer in table", "table"),
        ("(word int, n bigint)", {}, "'word' is string, and integer in table", "table"),
        ("(word text, n bigint[])", {}, "'n' is int64, and bigint\\[\\] in table", "table"),
        ("(word text, n bigint, m int not null)", {}, "'m' of table .* must have a value", "table"),
        ("(word text, n bigint generated always as identity)", {}, "'n' of table .* is made by PostgreSQL", "table"),
        ("(word text, n bigint)", {"mode": "upsert", "keys": ["word"]}, "CREATE UNIQUE INDEX ON .*totals", "keys"),
        (
            "(word text, n bigint, unique (word, n))",
            {"mode": "upsert", "keys": ["word"]},
            "no unique index of exactly the columns word",
            "keys",
        ),
        (
            "(word text unique deferrable, n bigint)",
            {"mode": "upsert", "keys": ["word"]},
            "no primary key and no unique index",
            "keys",
        ),
        ("(word text, n bigint)", {"mode": "upsert"}, "needs the columns of the key", "keys"),
        ("(word text, n bigint)", {"token_table": "totals"}, "tokens need a table of their own", "token_table"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_while_planning(database: PostgresServer, table, fields, words, field):
    if table:
        database.execute(f"create table totals {table}")
    with pytest.raises(ConfigError, match=words) as refused:
        make_sink(database, **fields).operator.output_schema([ArroyoSchema(STREAM)])
    assert refused.value.field == field


def test_a_view_is_refused(database: PostgresServer):
    database.execute("create view totals as select ''::text as word, 1::bigint as n")
    with pytest.raises(ConfigError, match="is not a table that takes rows"):
        make_sink(database).operator.output_schema([ArroyoSchema(STREAM)])


def test_the_plan_shows_the_place_and_no_password(database: PostgresServer):
    sink = make_sink(database, **UPSERT).operator
    text = str(sink.display())
    assert f"127.0.0.1:{database.port}/shop" in text
    assert "only for tests" not in text
    assert sink.datasets()[0].name == "shop.totals"
    assert "arroyo_commits" in sink.state_settings([ArroyoSchema(STREAM)])["tokens"]
