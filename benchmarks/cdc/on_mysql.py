"""`mysql.cdc` beside what reads the same binlog, and the same table, by hand."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pymysql
from arroyo_mysql.cdc_pb2 import CdcConfig
from arroyo_mysql.plugin import CdcConstructor
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import Registry, with_defaults
from arroyo_core.errors import SetupError
from tests.mysql_server import MysqlServer, find_binary

from .bare_mysql import place_now, read_by_program, read_bytes, read_rows
from .measuring import BLOCK, DELETES, INSERTS, UPDATES, Answer, Side, blocks_of, of_rows, of_table
from .measuring import take_turns as measure

COLUMNS = (
    "id bigint primary key, customer int, product varchar(60), price double, is_paid boolean, "
    "placed_at datetime(6), country varchar(10), total decimal(12,2)"
)
BARE_LOOP, RAW_CURSOR = "bare loop, tuples", "SELECT, raw cursor, tuples of texts"
#: What ends an epoch that does not come to the end of its rows.
PATIENCE_MS = 600_000


def measure_all(server: MysqlServer, rows: int, rounds: int = 1) -> None:
    measure_changes(server, rows, rounds)
    measure_snapshot(server, rows, rounds)
    server.execute("drop table orders")


def measure_changes(server: MysqlServer, rows: int, rounds: int) -> None:
    server.execute("drop table if exists orders", f"create table orders ({COLUMNS})")
    source = make_source(server, snapshot="never")
    try:
        note_place(server, source)
        place, blocks = place_now(server), blocks_of(rows)
        change(server, blocks)
        changes = blocks * BLOCK
        expected = answer_of_changes(server, blocks)
        read = expected.added + expected.taken_back

        def by_source() -> pa.Table:
            # What is lost is read again in the next round.
            return source.run(rows=read, interval_ms=PATIENCE_MS, is_lost=True).table

        # An event has the rows of a statement, or many of them.
        sides = [
            Side("bare loop, bytes", lambda: read_bytes(server, place), lambda found: found >= blocks * 3, True),
            Side(BARE_LOOP, lambda: read_rows(server, place), of_rows, expected),
            Side("mysql.cdc", by_source, of_table, expected),
        ]
        if has_program():
            kinds = tuple(blocks * each for each in (INSERTS, UPDATES, DELETES))
            sides.append(Side("mariadb-binlog, SQL", lambda: read_by_program(server, place), tuple, kinds))
        measure("mysql: changes from the binlog", "changes", changes, sides, beside=BARE_LOOP, rounds=rounds)
    finally:
        source.close()


def measure_snapshot(server: MysqlServer, rows: int, rounds: int) -> None:
    server.execute("drop table if exists orders", f"create table orders ({COLUMNS})", insert(0, rows))
    expected = Answer(rows, 0, *sums(server))
    sides = [
        Side(RAW_CURSOR, lambda: (select(server, conv=pymysql.converters.encoders), []), of_rows, expected),
        Side("SELECT by PyMySQL, tuples", lambda: (select(server), []), of_rows, expected),
        Side("mysql.cdc, snapshot", lambda: read_snapshot(server), of_table, expected),
    ]
    measure("mysql: rows of a snapshot", "rows", rows, sides, beside=RAW_CURSOR, rounds=rounds)


def note_place(server: MysqlServer, source: SourceHarness) -> None:
    """Until the source is behind all that was done so far: it has read the row that was written last."""
    for number in count(1):
        server.execute(f"insert into orders (id) values (-{number})")
        if -number in source.run(interval_ms=300).table.column("id").to_pylist():
            return


def change(server: MysqlServer, blocks: int) -> None:
    update = "update orders set total = total + 1, is_paid = not is_paid where id"
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for block in range(blocks):
            first = block * INSERTS
            cursor.execute(insert(first, INSERTS))
            cursor.execute(f"{update} between {first} and {first + UPDATES - 1}")
            cursor.execute(f"delete from orders where id between {first + UPDATES} and {first + UPDATES + DELETES - 1}")


def insert(first: int, count: int) -> str:
    return (
        "insert into orders select seq, seq % 100000, concat('product ', seq % 1000), seq * 0.01, seq % 3 = 0, "
        "timestamp'2024-01-01 00:00:00.123456' + interval seq second, "
        "case seq % 4 when 0 then null when 1 then 'CH' when 2 then 'NO' else 'IT' end, (seq % 1000000) / 100 "
        f"from seq_{first}_to_{first + count - 1}"
    )


def answer_of_changes(server: MysqlServer, blocks: int) -> Answer:
    """What was done, and what is there now."""
    added, taken_back = blocks * (INSERTS + UPDATES), blocks * (UPDATES + DELETES)
    assert server.execute("select count(*) from orders where id >= 0") == [(added - taken_back,)]
    return Answer(added, taken_back, *sums(server))


def sums(server: MysqlServer) -> tuple[int, Decimal]:
    ((ids, total),) = server.execute("select sum(id), sum(total) from orders where id >= 0")
    return int(ids), total


def make_source(server: MysqlServer, **config: Any) -> SourceHarness:
    written = {"connection": server.config, "table": "orders", **config}
    resolved = CdcConstructor().resolve(with_defaults(json_format.ParseDict(written, CdcConfig())))
    return SourceHarness(lambda: CdcConstructor().with_config(resolved, Registry()))


def read_snapshot(server: MysqlServer) -> pa.Table:
    source = make_source(server, snapshot="only")
    try:
        done = source.run()
        assert done.is_final
        return done.table
    finally:
        source.close()


def select(server: MysqlServer, **options: Any) -> list[tuple[Any, ...]]:
    config = server.config
    with (
        closing(
            pymysql.connect(charset="utf8mb4", cursorclass=pymysql.cursors.SSCursor, **config, **options)
        ) as session,
        session.cursor() as cursor,
    ):
        cursor.execute("select * from orders")
        return list(cursor.fetchall_unbuffered())


def has_program() -> bool:
    try:
        find_binary("mariadb-binlog")
    except SetupError:
        return False
    return True
