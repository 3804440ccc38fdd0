"""Rows in a table of a real PostgreSQL: added, replaced, deleted, each once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_testing.databases import STREAM, HostileSinkSuite, SinkSuite, rows

from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint

from .support import Database

pytestmark = pytest.mark.server


class TestSink(SinkSuite):
    key_type = "text"
    serial = "id int generated always as identity"
    partitions = (
        "create table totals (word text primary key, n bigint) partition by hash (word)",
        "create table t0 partition of totals for values with (modulus 2, remainder 0)",
        "create table t1 partition of totals for values with (modulus 2, remainder 1)",
    )
    refusal = "violates check constraint"


class TestHostileNames(HostileSinkSuite):
    quote = '"'


def test_names_are_read_as_in_sql(database: Database):
    database.execute(
        'create schema "Odd One"', 'create table "Odd One"."To""tals" ("Se lect" bigint primary key, v int)'
    )
    schema = pa.schema({"Se lect": pa.int64(), "v": pa.int32()})
    batch = pa.RecordBatch.from_pylist([{"Se lect": 1, "v": 2}], schema)
    fields = {"mode": "upsert", "keys": ["Se lect"], "token_table": '"Odd One"."Com mits"'}
    database.write(batch, batch, table='"Odd One"."To""tals"', **fields)
    assert database.execute('select * from "Odd One"."To""tals"') == [(1, 2)]
    assert database.execute('select epoch from "Odd One"."Com mits"') == [(2,)]


def test_a_text_with_nul_is_refused_before_it_is_staged(database: Database):
    with database.harness(STREAM, create_table=True) as life:
        with pytest.raises(OperatorError, match=r"column 'word' has a text with the character NUL") as refused:
            life.process(rows(("a", 1), ("b\0c", 2)))
        assert retry_hint(refused.value) is RetryHint.NO_RETRY


def test_a_name_with_what_the_driver_takes_for_a_parameter(database: Database):
    schema = pa.schema({"n": pa.int64()})
    tokens, table = '"to%s%(n)skens"', '"to%stals"'
    with database.harness(schema, create_table=True, table=table, token_table=tokens) as life:
        for place in range(2):
            life.process(pa.RecordBatch.from_pylist([{"n": place}], schema))
            life.commit(life.checkpoint())
            life.go_on()
    assert sorted(database.execute(f"select n from {table}")) == [(0,), (1,)]
    assert database.execute(f"select epoch from {tokens}") == [(2,)]


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
def test_a_table_that_does_not_fit_is_refused_while_planning(database: Database, table, fields, words, field):
    if table:
        database.execute(f"create table totals {table}")
    with pytest.raises(ConfigError, match=words) as refused:
        database.plan(**fields)
    assert refused.value.field == field
