"""`postgres.sink` beside COPY by hand: `python -m benchmarks.postgres_sink [--rows 1000000]`.

The same rows of eight columns, on the same server, which is started here. By hand is one COPY of all rows in one
transaction, of CSV that Arrow makes of the whole table; the sink takes them in epochs, stages each, and commits it with
its token. Both upsert through a temporary table. Wall time, the best of some rounds in one run; what is there is
counted.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
from arroyo_postgres.plugin import SinkConstructor
from arroyo_postgres.sink_pb2 import SinkConfig
from arroyo_testing import ParallelHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from tests.postgres_server import PostgresServer, running_server

BATCH_ROWS = 10_000
SMALL_EPOCHS = 50
COLUMNS = (
    "id bigint primary key, customer integer, product text, price double precision, is_paid boolean, "
    "placed_at timestamptz, country text, total numeric(12,2)"
)
SET = ", ".join(
    f"{name} = excluded.{name}" for name in ("customer", "product", "price", "is_paid", "placed_at", "country", "total")
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_sink", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epoch-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = orders(options.rows)
    with running_server() as server:
        measure_all(server, rows, options.epoch_rows, options.rounds)


def measure_all(server: PostgresServer, rows: pa.Table, epoch_rows: int, rounds: int = 1) -> None:
    count = rows.num_rows
    cases: dict[str, Callable[[], None]] = {
        "append: by hand": lambda: by_hand(server, rows),
        "append: by hand, row by row": lambda: row_by_row(server, rows),
        "append: postgres.sink": lambda: by_sink(server, rows, epoch_rows),
        "upsert: by hand": lambda: upsert_by_hand(server, rows),
        "upsert: postgres.sink": lambda: by_sink(server, rows, epoch_rows, mode="upsert", keys=["id"]),
    }
    best = dict.fromkeys(cases, float("inf"))
    # All in turn, so that what else the machine does at a time is shared by all.
    for _ in range(rounds):
        for name, run in cases.items():
            seconds = measure(server, run, count, is_full=name.startswith("upsert"))
            best[name] = min(best[name], seconds)
    for name, seconds in best.items():
        bare = best[f"{name.partition(':')[0]}: by hand"]
        print(f"{name:30} {count / seconds / 1000:7.0f} k rows/s  {bare / seconds:5.2f} of by hand", flush=True)
    small_epochs(server, rows)


def measure(server: PostgresServer, run: Callable[[], None], count: int, *, is_full: bool) -> float:
    """Seconds for all rows; into a table that has them all, where rows are replaced."""
    server.execute("drop table if exists orders, arroyo_commits", f"create table orders ({COLUMNS})")
    if is_full:
        server.execute(f"insert into orders (id) select generate_series(0, {count - 1})")
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    assert server.execute("select count(*), count(product) from orders") == [(count, count)]
    return seconds


def by_hand(server: PostgresServer, rows: pa.Table) -> None:
    with server.connect() as connection, connection.transaction():
        copy(connection, "orders", rows)


def upsert_by_hand(server: PostgresServer, rows: pa.Table) -> None:
    with server.connect() as connection, connection.transaction():
        connection.execute("create temporary table changed (like orders) on commit drop")
        copy(connection, "changed", rows)
        connection.execute(f"insert into orders select * from changed on conflict (id) do update set {SET}".encode())


def copy(connection: psycopg.Connection[Any], table: str, rows: pa.Table) -> None:
    out = io.BytesIO()
    texts = rows.set_column(7, "total", rows.column("total").cast(pa.string()))
    pyarrow.csv.write_csv(texts, out, pyarrow.csv.WriteOptions(include_header=False))
    with connection.cursor().copy(f"copy {table} from stdin (format csv)".encode()) as stream:
        stream.write(out.getbuffer())


def row_by_row(server: PostgresServer, rows: pa.Table) -> None:
    with (
        server.connect() as connection,
        connection.transaction(),
        connection.cursor().copy("copy orders from stdin") as stream,
    ):
        for batch in rows.to_batches(BATCH_ROWS):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                stream.write_row(row)


def by_sink(server: PostgresServer, rows: pa.Table, epoch_rows: int, **fields: Any) -> None:
    for _ in commits(server, rows, epoch_rows, **fields):
        pass


def commits(server: PostgresServer, rows: pa.Table, epoch_rows: int, **fields: Any) -> Iterator[float]:
    """The seconds of each commit."""
    written = {"connection": server.config, "table": "orders", **fields}
    config = with_defaults(json_format.ParseDict(written, SinkConfig()))

    def make() -> Any:
        return SinkConstructor().with_config(config, Registry())

    with ParallelHarness(make, inputs=[ArroyoSchema(rows.schema)]) as life:
        for first in range(0, rows.num_rows, epoch_rows):
            for batch in rows.slice(first, epoch_rows).to_batches(BATCH_ROWS):
                life.process(batch)
            staged = life.checkpoint()
            start = time.perf_counter()
            life.commit(staged)
            yield time.perf_counter() - start
            life.go_on()


def small_epochs(server: PostgresServer, rows: pa.Table) -> None:
    for mode in ("append", "upsert"):
        server.execute("drop table if exists orders, arroyo_commits", f"create table orders ({COLUMNS})")
        keys = {"keys": ["id"]} if mode == "upsert" else {}
        seconds = list(commits(server, rows.slice(0, 100 * SMALL_EPOCHS), 100, mode=mode, **keys))
        print(f"{mode}: commit of 100 rows, median of {SMALL_EPOCHS}: {statistics.median(seconds) * 1000:.1f} ms")


def orders(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    numbers = np.arange(count)
    return pa.table(
        {
            "id": numbers,
            "customer": random.integers(0, 100_000, count).astype(np.int32),
            "product": pa.array([f"product {number}" for number in random.integers(0, 1000, count)]),
            "price": random.random(count) * 100,
            "is_paid": numbers % 3 == 0,
            "placed_at": pa.array(1_700_000_000_000_000 + numbers * 1000, pa.timestamp("us", "UTC")),
            "country": pa.array(["CH", "NO", None, "IT"]).take(pa.array(random.integers(0, 4, count))),
            "total": pa.array(random.integers(0, 10_000, count), pa.int64()).cast(pa.decimal128(21, 2)),
        }
    )


if __name__ == "__main__":
    main()
