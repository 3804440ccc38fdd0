"""Values of every type: a row of the snapshot and the same row of the stream are equal, whatever is in it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.databases import MakeTable, Materialized, catch_up

from arroyo_core.errors import ConfigError

pytestmark = pytest.mark.server


#: A type, the Arrow type, and values as SQL has them.
TYPES: list[tuple[str, pa.DataType, list[str]]] = [
    ("tinyint", pa.int8(), ["-128", "127", "0"]),
    ("tinyint unsigned", pa.uint8(), ["255"]),
    ("smallint", pa.int16(), ["-32768"]),
    ("smallint unsigned", pa.uint16(), ["65535"]),
    ("mediumint", pa.int32(), ["-8388608", "8388607"]),
    ("mediumint unsigned", pa.uint32(), ["16777215"]),
    ("int", pa.int32(), ["-2147483648"]),
    ("int unsigned", pa.uint32(), ["4294967295"]),
    ("bigint", pa.int64(), ["-9223372036854775808"]),
    ("bigint unsigned", pa.uint64(), ["18446744073709551615"]),
    ("year", pa.int16(), ["2026", "0", "1901"]),
    ("float", pa.float32(), ["1.1", "-3.4e38", "16777217"]),
    ("double", pa.float64(), ["1.1", "-1.7e308", "0.1 + 0.2", "5e-324"]),
    ("decimal(10, 2)", pa.decimal128(10, 2), ["-12345678.90", "0.05", "-0.05", "99999999.99"]),
    ("decimal(38, 10)", pa.decimal128(38, 10), ["-1234567890123456789012345678.0000000001"]),
    ("decimal(65, 30)", pa.decimal256(65, 30), ["12345678901234567890123456789012345.000000000000000000000000000001"]),
    ("decimal(9, 9)", pa.decimal128(9, 9), ["-0.000000001"]),
    ("decimal(18, 0) unsigned", pa.decimal128(18, 0), ["999999999999999999"]),
    ("date", pa.date32(), ["'2026-02-28'", "'1000-01-01'", "'9999-12-31'", "'1969-12-31'"]),
    ("datetime", pa.timestamp("us"), ["'2026-02-28 23:59:59'", "'1000-01-01 00:00:00'"]),
    ("datetime(2)", pa.timestamp("us"), ["'1969-12-31 23:59:59.99'"]),
    ("datetime(6)", pa.timestamp("us"), ["'9999-12-31 23:59:59.999999'", "'1960-01-01 00:00:00.000001'"]),
    ("timestamp null", pa.timestamp("us", "UTC"), ["'2026-02-28 23:59:59'", "'1970-01-01 00:00:01'"]),
    ("timestamp(3) null", pa.timestamp("us", "UTC"), ["'2038-01-19 03:14:07.999'"]),
    ("time", pa.duration("us"), ["'838:59:59'", "'-838:59:59'", "'00:00:00'"]),
    ("time(2)", pa.duration("us"), ["'-00:00:00.01'", "'-12:34:56.78'", "'00:00:00.99'"]),
    ("time(4)", pa.duration("us"), ["'-00:00:00.0001'", "'-100:00:00.9999'"]),
    ("time(6)", pa.duration("us"), ["'-00:00:00.000001'", "'-838:59:58.999999'", "'12:34:56.789012'"]),
    ("char(5)", pa.string(), ["'ab '", "''", "'é'"]),
    ("varchar(300)", pa.string(), ["repeat('ü', 300)", "'a  '"]),
    ("text", pa.string(), ["'😀'", "repeat('x', 60000)"]),
    ("mediumtext", pa.string(), ["repeat('x', 100000)"]),
    ("varchar(9) character set latin1", pa.string(), ["'é€'", "char(129 using latin1)"]),
    ("varchar(9) character set ucs2", pa.string(), ["'éж'"]),
    ("varchar(9) character set utf16", pa.string(), ["'é😀'"]),
    ("char(9) character set utf8mb3", pa.string(), ["'éж'"]),
    ("text character set cp1251", pa.string(), ["'Жук'"]),
    ("text character set sjis", pa.string(), ["'日本'"]),
    ("json", pa.string(), ['\'{"a": [1, null, "x"]}\'']),
    ("enum('x', 'é', 'z')", pa.string(), ["'é'", "'z'"]),
    ("set('a', 'b', 'ç')", pa.string(), ["'a,ç'", "''", "'b'"]),
    ("enum('é', 'z') character set latin1", pa.string(), ["'é'", "'z'"]),
    ("set('ç', 'b') character set latin1", pa.string(), ["'ç,b'", "'b'"]),
    ("enum('ж') character set utf16", pa.string(), ["'ж'"]),
    ("enum('Жук', 'z') character set cp1251", pa.string(), ["'Жук'"]),
    ("bit(1)", pa.uint64(), ["b'1'"]),
    ("bit(33)", pa.uint64(), ["b'100000000000000000000000000000001'"]),
    ("bit(64)", pa.uint64(), ["18446744073709551615"]),
    ("binary(4)", pa.binary(), ["x'01000000'", "x'00'", "x'ff20'"]),
    ("varbinary(300)", pa.binary(), ["x'00ff'", "''"]),
    ("blob", pa.binary(), ["x'00ff27'"]),
    ("longblob", pa.binary(), ["repeat(x'00', 70000)"]),
    ("point", pa.binary(), ["point(1, 2)"]),
]


def test_every_type_comes_the_same_way_from_the_table_and_from_the_log(table: MakeTable) -> None:
    columns = ", ".join(f"c{place} {kind}" for place, (kind, _, _) in enumerate(TYPES))
    made, result = table(f"id int primary key auto_increment, {columns}"), Materialized()
    most = max(len(values) for _, _, values in TYPES)
    rows = [[values[row % len(values)] for _, _, values in TYPES] for row in range(most)]
    names = ", ".join(f"c{place}" for place in range(len(TYPES)))
    inserts = [f"insert into $t ({names}) values ({', '.join(row)})" for row in rows]
    made.run(*inserts, "insert into $t () values ()")
    source = made.source()
    first = source.run(rows=most + 1).table
    assert [first.schema.field(f"c{place}").type for place in range(len(TYPES))] == [kind for _, kind, _ in TYPES]
    result.add(first)
    made.run(*inserts, "insert into $t () values ()")
    second = source.run(rows=most + 1).table
    for place, (kind, _, _) in enumerate(TYPES):
        assert second[f"c{place}"].to_pylist() == first[f"c{place}"].to_pylist(), kind
    result.add(second)
    # Rows that the snapshot has given are taken back as they are in the log.
    made.run("delete from $t where id % 2 = 0", "update $t set c6 = 5")
    made.run("delete from $t")
    catch_up(source, result, made, columns="id")


def test_dates_that_are_none_are_null(table: MakeTable) -> None:
    made = table("id int primary key, d date, t datetime, s timestamp null")
    with closing(made.server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        cursor.execute(f"insert into {made.name} values (1, '0000-00-00', '0000-00-00', '0000-00-00')")
        cursor.execute(f"insert into {made.name} values (2, '2024-00-01', '2024-01-00', null)")
        source = made.source()
        first = source.run(rows=2).table
        cursor.execute(f"insert into {made.name} select id + 2, d, t, s from {made.name}")
    second = source.run(rows=2).table
    for found in (first, second):
        assert [found[name].null_count for name in ("d", "t", "s")] == [2, 2, 2]


def test_generated_and_hidden_columns_and_those_of_types_that_are_not_read_can_be_left_out(table: MakeTable) -> None:
    made = table(
        "u uuid, twice int as (id * 2) virtual, thrice int as (id * 3) stored, id int primary key, i inet6, "
        "hidden text invisible default 'h', z text compressed, name text"
    )
    made.run("insert into $t (u, id, i, z, name) values (uuid(), 1, '::1', 'zz', 'a')")
    source = made.source(columns=["name", "thrice", "hidden"])
    assert source.run(rows=1).table.to_pylist()[0]["thrice"] == 3
    made.run("insert into $t (u, id, i, z, name) values (uuid(), 2, '::1', repeat('z', 5000), 'b')")
    (row,) = source.run(rows=1).table.to_pylist()
    assert (row["name"], row["thrice"], row["hidden"]) == ("b", 6, "h")


@pytest.mark.parametrize("kind", ["uuid", "inet6"])
def test_types_that_are_not_read_are_refused_with_their_column(table: MakeTable, kind: str) -> None:
    made = table(f"id int primary key, name text, other {kind}")
    with pytest.raises(ConfigError, match=f"'other' is MariaDB's {kind}.*leave it out with columns"):
        made.source()


def test_events_that_the_server_compresses_are_read(table: MakeTable, server: Any) -> None:
    made, result = table(), Materialized()
    source = made.source()
    catch_up(source, result, made)
    server.execute("set global log_bin_compress = 1", "set global log_bin_compress_min_len = 10")
    try:
        made.run("insert into $t values (1, repeat('x', 3000))", "update $t set name = repeat('y', 4000)")
        made.run("alter table $t comment 'a statement that is long enough to be compressed by the server'")
        catch_up(source, result, made)
    finally:
        server.execute("set global log_bin_compress = 0")


@pytest.mark.parametrize("length", [200, 255, 256, 1000, 16000])
def test_compressed_texts_of_every_length_can_be_left_out(table: MakeTable, length: int) -> None:
    made = table(f"id int primary key, z varchar({length}) compressed, name text")
    source = made.source(columns=["name"])
    source.run(interval_ms=100)
    made.run(f"insert into $t values (1, 'zz', 'a'), (2, repeat('q', {length}), 'b'), (3, null, 'c')")
    assert source.run(rows=3).table["name"].to_pylist() == ["a", "b", "c"]
