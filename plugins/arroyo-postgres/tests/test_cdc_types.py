"""Values of every type, from the snapshot and from the stream: the same, and those that the database has."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arroyo_postgres.cdc.columns import TableColumn, make_array
from arroyo_postgres.cdc.lsn import format_lsn, parse_lsn
from arroyo_postgres.cdc.visibility import Visibility
from arroyo_testing.databases import MakeTable, run_until_it_fails

from arroyo_core.errors import ConfigError, DataError, OperatorError

pytestmark = pytest.mark.server

TYPES: list[tuple[str, str, pa.DataType, Any]] = [
    ("bool", "true", pa.bool_(), True),
    ("int2", "-32768", pa.int16(), -32768),
    ("int4", "2147483647", pa.int32(), 2147483647),
    ("int8", "-9223372036854775808", pa.int64(), -9223372036854775808),
    ("float4", "0.1", pa.float32(), pytest.approx(0.1)),
    ("float8", "'1e-300'", pa.float64(), 1e-300),
    ("float8", "'-Infinity'", pa.float64(), float("-inf")),
    ("numeric(12, 3)", "-123456789.125", pa.decimal128(12, 3), Decimal("-123456789.125")),
    ("numeric(60, 5)", "1.5", pa.decimal256(60, 5), Decimal("1.50000")),
    ("numeric", "1.50", pa.string(), "1.50"),
    ("text", "E'a\"b,c\\\\\\nd'", pa.string(), 'a"b,c\\\nd'),
    ("text", "''", pa.string(), ""),
    ("varchar(9)", "'ünï'", pa.string(), "ünï"),
    ("char(3)", "'a'", pa.string(), "a  "),
    ("bytea", "'\\x00ff5c'", pa.binary(), b"\x00\xff\\"),
    ("bytea", "''", pa.binary(), b""),
    ("date", "'2026-02-28'", pa.date32(), date(2026, 2, 28)),
    ("time", "'12:34:56.5'", pa.string(), "12:34:56.5"),
    ("timestamp", "'0001-01-01 00:00:00.000001'", pa.timestamp("us"), datetime(1, 1, 1, 0, 0, 0, 1)),
    (
        "timestamptz",
        "'2026-01-01 12:00:00.25+05:30'",
        pa.timestamp("us", "UTC"),
        datetime(2026, 1, 1, 6, 30, 0, 250000, tzinfo=UTC),
    ),
    ("uuid", "'6f1e7a52-0000-4000-8000-0123456789ab'", pa.string(), "6f1e7a52-0000-4000-8000-0123456789ab"),
    ("json", "'{\"a\":  1}'", pa.string(), '{"a":  1}'),
    ("jsonb", "'{\"a\":  1}'", pa.string(), '{"a": 1}'),
    ("int4[]", "'{1,NULL,3}'", pa.string(), "{1,NULL,3}"),
    ("interval", "'1 day 2 hours'", pa.string(), "1 day 02:00:00"),
    ("mood", "'sad'", pa.string(), "sad"),
    ("positive", "5", pa.int32(), 5),
]


@pytest.fixture(scope="module", autouse=True)
def types(server: Any) -> None:
    server.execute(
        "drop type if exists mood cascade",
        "drop domain if exists positive cascade",
        "create type mood as enum ('sad', 'ok')",
        "create domain positive as int check (value > 0)",
    )


def test_values_are_the_same_from_the_snapshot_and_from_the_stream(table: MakeTable) -> None:
    columns = ", ".join(f"c{place} {kind}" for place, (kind, *_) in enumerate(TYPES))
    made = table(f"id int primary key, {columns}")
    values = ", ".join(value for _, value, *_ in TYPES)
    nulls = ", ".join("null" for _ in TYPES)
    made.run(f"insert into $t values (1, {values}), (2, {nulls})")
    source = made.source()
    first = source.run(rows=3, interval_ms=500).table
    made.run(f"insert into $t values (3, {values}), (4, {nulls})")
    second = source.run(rows=2).table
    for rows in (first, second):
        assert rows.num_rows == 2
        for place, (_, _, kind, expected) in enumerate(TYPES):
            assert rows.schema.field(f"c{place}").type == kind
            assert rows[f"c{place}"].to_pylist() == [expected, None], TYPES[place]


def test_values_that_arrow_does_not_have_are_read_as_texts_where_that_is_said(table: MakeTable) -> None:
    made = table("id int primary key, born date, price numeric(10, 2)")
    made.run("insert into $t values (1, 'infinity', 'NaN')")
    with pytest.raises(OperatorError, match=r"as_text: \[born\]"):
        run_until_it_fails(made.source())
    rows = made.source(as_text=["born", "price"]).run(rows=1).table
    assert rows.to_pylist()[0] | {"_updating_meta": None} == {
        "id": 1,
        "born": "infinity",
        "price": "NaN",
        "_updating_meta": None,
    }


def test_large_values_that_updates_do_not_change_are_there(table: MakeTable) -> None:
    made = table("id int primary key, large text, name text")
    made.run("alter table $t alter column large set storage external")
    made.run("insert into $t values (1, repeat('abc', 100000), 'a')")
    source = made.source(columns=["name", "large"])
    source.run(rows=2, interval_ms=500)
    made.run("update $t set name = 'b'")
    rows = source.run(rows=2).table
    assert rows["name"].to_pylist() == ["a", "b"]
    assert rows["large"].to_pylist() == ["abc" * 100000] * 2


def test_a_single_column_of_nulls_has_all_its_rows(table: MakeTable) -> None:
    made = table("name text")
    made.run("insert into $t values (null), (''), (null)")
    assert made.source(until="latest").run_all()["name"].to_pylist() == [None, "", None]


def test_names_that_need_quotes(table: MakeTable) -> None:
    made = table('"Id" int, "a ""b" text, primary key ("Id", "a ""b")')
    made.run("insert into $t values (1, 'x'), (2, '''; drop'), (3, E'\\\\')")
    assert made.source(until="latest", chunk_rows=1).run_all()['a "b'].to_pylist() == ["x", "'; drop", "\\"]


def test_a_table_with_partitions_is_one_table(table: MakeTable) -> None:
    made = table("id int primary key, name text) partition by range (id", identity="")
    made.run("create table $t_low partition of $t for values from (0) to (10)")
    made.run("create table $t_high partition of $t for values from (10) to (100)")
    made.run("alter table $t replica identity full", "alter table $t_low replica identity full")
    with pytest.raises(ConfigError, match=r'ALTER TABLE "public"."\w+_high" REPLICA IDENTITY FULL'):
        made.source()
    made.run("alter table $t_high replica identity full", "insert into $t values (1, 'a'), (20, 'b')")
    source = made.source()
    assert source.run(rows=3, interval_ms=500).table["id"].to_pylist() == [1, 20]
    made.run("insert into $t values (2, 'c')", "update $t set id = 30 where id = 1")
    rows = source.run(rows=3).table.to_pylist()
    assert [(row["id"], row["_updating_meta"]["is_retract"]) for row in rows] == [(2, False), (1, True), (30, False)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int16(), "70000"),
        (pa.date32(), "infinity"),
        (pa.decimal128(4, 2), "NaN"),
        (pa.binary(), "\\x0"),
        (pa.binary(), "q"),
    ],
)
def test_a_value_that_a_type_does_not_have_names_its_column(kind: pa.DataType, text: str) -> None:
    with pytest.raises(DataError, match="'price'"):
        make_array(pa.array([None, text]), TableColumn("price", 0, 0, kind))


def test_snapshots_see_what_was_committed_before_them() -> None:
    seen = Visibility.parse("10:20:12,15")
    assert [xid for xid in range(8, 24) if seen.sees(xid)] == [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]
    late = Visibility.parse(f"{(3 << 32) - 2}:{(3 << 32) + 5}:{3 << 32}")
    assert [late.sees(xid) for xid in (4294967290, 4294967295, 0, 1, 4, 5)] == [True, True, False, True, True, False]


def test_positions_in_the_log_are_written_as_the_server_does() -> None:
    assert parse_lsn("16/B374D848") == 0x16B374D848
    assert format_lsn(0x16B374D848) == "16/B374D848"
