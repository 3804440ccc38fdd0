"""`postgres.cdc` beside what reads the same slot, and the same table, by hand."""

from __future__ import annotations

import io
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.csv
from arroyo_postgres.cdc_pb2 import CdcConfig
from arroyo_postgres.plugin import CdcConstructor
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import Registry, with_defaults
from tests.postgres_server import PostgresServer
from tests.waiting import wait_until

from .bare_postgres import read_bytes, read_rows, read_rows_by_sql
from .measuring import BLOCK, DELETES, INSERTS, TRANSACTIONS, UPDATES, Answer, Side, blocks_of, of_rows, of_table
from .measuring import take_turns as measure

SLOT = "bench"
COLUMNS = (
    "id bigint primary key, customer integer, product text, price double precision, is_paid boolean, "
    "placed_at timestamptz, country text, total numeric(12,2)"
)
#: What Arrow reads CSV of the table as.
TYPES = {
    "id": pa.int64(),
    "customer": pa.int32(),
    "product": pa.string(),
    "price": pa.float64(),
    "is_paid": pa.bool_(),
    "placed_at": pa.timestamp("us", "UTC"),
    "country": pa.string(),
    "total": pa.decimal128(12, 2),
}
BARE_STREAM, BARE_COPY = "bare stream, tuples of texts", "COPY ... TO STDOUT, Arrow's CSV"


def measure_all(server: PostgresServer, rows: int, rounds: int = 1) -> None:
    measure_changes(server, rows, rounds)
    measure_snapshot(server, rows, rounds)
    server.execute("drop table orders", f"drop publication {SLOT}")


def measure_changes(server: PostgresServer, rows: int, rounds: int) -> None:
    server.execute(
        f"drop publication if exists {SLOT}",
        "drop table if exists orders",
        f"create table orders ({COLUMNS})",
        "alter table orders replica identity full",
        f"create publication {SLOT} for table orders",
        f"select pg_create_logical_replication_slot('{SLOT}', 'pgoutput')",
    )
    try:
        blocks = blocks_of(rows)
        change(server, blocks)
        count, transactions = blocks * BLOCK, blocks * TRANSACTIONS
        expected = answer_of_changes(server, blocks)
        ready = partial(wait_for_slot, server)
        sides = [
            Side("bare stream, bytes", lambda: read_bytes(server, SLOT, transactions), int, count, ready),
            Side(BARE_STREAM, lambda: read_rows(server, SLOT, transactions), of_rows, expected, ready),
            Side("SQL function, tuples of texts", lambda: read_rows_by_sql(server, SLOT), of_rows, expected, ready),
            Side("postgres.cdc", lambda: by_source(server, snapshot="never", slot=SLOT), of_table, expected, ready),
        ]
        measure("postgres: changes from a slot", "changes", count, sides, beside=BARE_STREAM, rounds=rounds)
    finally:
        wait_for_slot(server)
        server.execute(f"select pg_drop_replication_slot('{SLOT}')")


def measure_snapshot(server: PostgresServer, rows: int, rounds: int) -> None:
    server.execute("drop table if exists orders", f"create table orders ({COLUMNS})", insert(0, rows))
    expected = Answer(rows, 0, *sums(server))
    sides = [
        Side("COPY ... TO STDOUT, bytes", lambda: copy(server).count(b"\n"), int, rows),
        Side(BARE_COPY, lambda: parse(copy(server)), of_table, expected),
        Side("SELECT by psycopg, tuples", lambda: (select(server), []), of_rows, expected),
        Side("postgres.cdc, snapshot", lambda: by_source(server, snapshot="only", until=""), of_table, expected),
    ]
    measure("postgres: rows of a snapshot", "rows", rows, sides, beside=BARE_COPY, rounds=rounds)


def change(server: PostgresServer, blocks: int) -> None:
    with server.connect() as connection:
        for block in range(blocks):
            first = block * INSERTS
            update = "update orders set total = total + 1, is_paid = not is_paid where id"
            connection.execute(insert(first, INSERTS).encode())
            connection.execute(f"{update} between {first} and {first + UPDATES - 1}".encode())
            connection.execute(
                f"delete from orders where id between {first + UPDATES} and {first + UPDATES + DELETES - 1}".encode()
            )


def insert(first: int, count: int) -> str:
    return (
        "insert into orders select i, i % 100000, 'product ' || i % 1000, i * 0.01, i % 3 = 0, "
        "timestamptz '2024-01-01 00:00:00.123456+00' + i * interval '1 second', "
        "case i % 4 when 0 then null when 1 then 'CH' when 2 then 'NO' else 'IT' end, (i % 1000000) / 100.0 "
        f"from generate_series({first}, {first + count - 1}) i"
    )


def answer_of_changes(server: PostgresServer, blocks: int) -> Answer:
    """What was done, and what is there now."""
    added, taken_back = blocks * (INSERTS + UPDATES), blocks * (UPDATES + DELETES)
    assert server.execute("select count(*) from orders") == [(added - taken_back,)]
    return Answer(added, taken_back, *sums(server))


def sums(server: PostgresServer) -> tuple[int, Decimal]:
    ((ids, total),) = server.execute("select sum(id)::bigint, sum(total) from orders")
    assert isinstance(ids, int)
    assert isinstance(total, Decimal)
    return ids, total


def wait_for_slot(server: PostgresServer) -> None:
    """Until nobody reads it: a session that is over may still hold it."""
    query = f"select active_pid from pg_replication_slots where slot_name = '{SLOT}'"
    wait_until(lambda: server.execute(query) == [(None,)])


def by_source(server: PostgresServer, **config: Any) -> pa.Table:
    written = {"connection": server.config, "table": "orders", "until": "latest", **config}
    resolved = CdcConstructor().resolve(with_defaults(json_format.ParseDict(written, CdcConfig())))
    harness = SourceHarness(lambda: CdcConstructor().with_config(resolved, Registry()))
    try:
        done = harness.run()
        assert done.is_final
        return done.table
    finally:
        harness.close()


def copy(server: PostgresServer) -> bytes:
    out = io.BytesIO()
    with (
        server.connect() as connection,
        connection.cursor().copy("copy orders to stdout (format csv)") as stream,
    ):
        for data in stream:
            out.write(data)
    return out.getvalue()


def parse(data: bytes) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=list(TYPES), use_threads=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=TYPES, true_values=["t"], false_values=["f"], strings_can_be_null=True
        ),
    )


def select(server: PostgresServer) -> list[tuple[Any, ...]]:
    return server.execute("select * from orders")
