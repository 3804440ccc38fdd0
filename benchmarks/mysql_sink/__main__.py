"""`mysql.sink` beside LOAD DATA by hand: `python -m benchmarks.mysql_sink [--rows 200000]`.

The same rows of eight columns, on the same server, a MariaDB which is started here. By hand is one LOAD DATA LOCAL
INFILE of all rows in one transaction, of CSV that Arrow makes of the whole table; the sink takes them in epochs, stages
each, and commits it with its token. Wall time, the best of some rounds in one run; what is there is counted and added
up.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pymysql
from arroyo_mysql.plugin import SinkConstructor
from arroyo_mysql.sink_pb2 import SinkConfig
from arroyo_testing import ParallelHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from benchmarks.postgres_sink.__main__ import orders
from tests.mysql_server import MysqlServer, running_server

BATCH_ROWS = 10_000
SMALL_EPOCHS = 50
COLUMNS = (
    "id bigint primary key, customer int, product varchar(60), price double, is_paid boolean, "
    "placed_at datetime(6), country varchar(10), total decimal(21,2)"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mysql_sink",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--epoch-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = orders(options.rows)
    with running_server() as server:
        measure_all(server, rows, options.epoch_rows, options.rounds)


def measure_all(server: MysqlServer, rows: pa.Table, epoch_rows: int, rounds: int = 1) -> None:
    cases: dict[str, Callable[[], None]] = {
        "append: by hand": lambda: by_hand(server, rows),
        "append: by hand, executemany": lambda: by_statements(server, rows),
        "append: mysql.sink": lambda: by_sink(server, rows, epoch_rows),
        "upsert: by hand": lambda: by_hand(server, rows, "replace"),
        "upsert: mysql.sink": lambda: by_sink(server, rows, epoch_rows, mode="upsert", keys=["id"]),
    }
    best = dict.fromkeys(cases, float("inf"))
    # All in turn, so that what else the machine does at a time is shared by all.
    for _ in range(rounds):
        for name, run in cases.items():
            seconds = measure(server, run, rows, is_full=name.startswith("upsert"))
            best[name] = min(best[name], seconds)
    for name, seconds in best.items():
        bare = best[f"{name.partition(':')[0]}: by hand"]
        print(f"{name:30} {rows.num_rows / seconds / 1000:7.1f} k rows/s  {bare / seconds:5.2f} of by hand", flush=True)
    small_epochs(server, rows)
    server.execute("drop table orders, arroyo_commits")


def measure(server: MysqlServer, run: Callable[[], None], rows: pa.Table, *, is_full: bool) -> float:
    """Seconds for all rows; into a table that has them all, where rows are replaced."""
    make_table(server)
    if is_full:
        server.execute(f"insert into orders (id) select seq from seq_0_to_{rows.num_rows - 1}")
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    found = server.execute("select count(*), count(product), count(country), sum(is_paid), sum(total) from orders")
    countries = rows.num_rows - rows.column("country").null_count
    paid, total = (pc.sum(rows.column(name)).as_py() for name in ("is_paid", "total"))
    assert found == [(rows.num_rows, rows.num_rows, countries, paid, total)], found
    return seconds


def make_table(server: MysqlServer) -> None:
    server.execute("drop table if exists orders, arroyo_commits", f"create table orders ({COLUMNS})")


def by_hand(server: MysqlServer, rows: pa.Table, replace: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder, closing(connect(server)) as connection:
        file = Path(folder, "orders.csv")
        pyarrow.csv.write_csv(plain(rows), file, pyarrow.csv.WriteOptions(include_header=False))
        with connection.cursor() as cursor:
            cursor.execute(
                f"load data local infile '{file}' {replace} into table orders character set utf8mb4 "
                "fields terminated by ',' optionally enclosed by '\"' "
                "(id, customer, product, price, is_paid, placed_at, @country, total) set country = nullif(@country, '')"
            )
        connection.commit()


def by_statements(server: MysqlServer, rows: pa.Table) -> None:
    with closing(connect(server)) as connection:
        with connection.cursor() as cursor:
            for batch in plain(rows).to_batches(BATCH_ROWS):
                values = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                cursor.executemany(f"insert into orders values ({', '.join(['%s'] * len(batch.columns))})", values)
        connection.commit()


def plain(rows: pa.Table) -> pa.Table:
    """With values as MySQL reads them."""
    types = {"is_paid": pa.int8(), "placed_at": pa.timestamp("us"), "total": pa.string()}
    return rows.cast(pa.schema([(field.name, types.get(field.name, field.type)) for field in rows.schema]))


def connect(server: MysqlServer) -> Any:
    mode = "set sql_mode = 'STRICT_ALL_TABLES'"
    return pymysql.connect(charset="utf8mb4", local_infile=True, init_command=mode, **server.config)


def by_sink(server: MysqlServer, rows: pa.Table, epoch_rows: int, **fields: Any) -> None:
    for _ in commits(server, rows, epoch_rows, **fields):
        pass


def commits(server: MysqlServer, rows: pa.Table, epoch_rows: int, **fields: Any) -> Iterator[float]:
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


def small_epochs(server: MysqlServer, rows: pa.Table) -> None:
    for mode in ("append", "upsert"):
        make_table(server)
        keys = {"keys": ["id"]} if mode == "upsert" else {}
        seconds = list(commits(server, rows.slice(0, 100 * SMALL_EPOCHS), 100, mode=mode, **keys))
        print(f"{mode}: commit of 100 rows, median of {SMALL_EPOCHS}: {statistics.median(seconds) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
