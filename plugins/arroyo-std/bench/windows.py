"""Rows per second of processor time of each window and of the updating aggregate alone, beside DuckDB's batch answer.

    python plugins/arroyo-std/bench/windows.py [--rows 4000000] [--keys 1000] [--batch 65536]

Each operator runs in one subtask and one thread, with a watermark after every batch and a checkpoint every
`--epoch-batches` batches, after which it is made again from its state, as in a pipeline. DuckDB gets one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness
from google.protobuf.json_format import ParseDict

from arroyo_core.api import ArroyoSchema, Registry, Watermark

STREAM = ArroyoSchema(
    pa.schema({"k": pa.int64(), "price": pa.int64(), "at": pa.timestamp("us")}), timestamp_column="at"
)
AGGREGATES = [
    {"function": "count", "as": "n"},
    {"function": "sum", "column": "price", "as": "total"},
    {"function": "max", "column": "price", "as": "top"},
]
#: 100,000 events of event time per second.
EVENT_STEP_US = 10
SECOND_US = 1_000_000

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "tumbling 10 s": (
        "std.tumbling_window",
        {"size": 10 * SECOND_US, "keys": ["k"], "aggregates": AGGREGATES},
        'select k, time_bucket(interval 10 seconds, "at") w, count(*), sum(price), max(price) from rows group by k, w',
    ),
    "tumbling 10 s, no keys": (
        "std.tumbling_window",
        {"size": 10 * SECOND_US, "aggregates": AGGREGATES},
        'select time_bucket(interval 10 seconds, "at") w, count(*), sum(price), max(price) from rows group by w',
    ),
    "sliding 10 s / 2 s": (
        "std.sliding_window",
        {"size": 10 * SECOND_US, "slide": 2 * SECOND_US, "keys": ["k"], "aggregates": AGGREGATES},
        'select k, time_bucket(interval 2 seconds, "at") + s * interval 2 seconds w, count(*), sum(price), max(price) '
        "from rows, range(5) r(s) group by k, w",
    ),
    "session 100 ms": (
        "std.session_window",
        {"gap": SECOND_US // 10, "keys": ["k"], "aggregates": AGGREGATES},
        'with cut as (select *, coalesce("at" - lag("at") over (partition by k order by "at") '
        ">= interval 100 milliseconds, true)::int c from rows), "
        'named as (select *, sum(c) over (partition by k order by "at") s from cut) '
        "select k, s, count(*), sum(price), max(price) from named group by k, s",
    ),
    "updating": (
        "std.updating_aggregate",
        {"keys": ["k"], "aggregates": AGGREGATES},
        "select k, count(*), sum(price), max(price) from rows group by k",
    ),
    "tumbling, distinct and median": (
        "std.tumbling_window",
        {
            "size": 10 * SECOND_US,
            "keys": ["k"],
            "aggregates": [
                {"function": "count_distinct", "column": "price", "as": "kinds"},
                {"function": "median", "column": "price", "as": "middle"},
            ],
        },
        'select k, time_bucket(interval 10 seconds, "at") w, count(distinct price), median(price) '
        "from rows group by k, w",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=65_536)
    parser.add_argument("--epoch-batches", type=int, default=16)
    options = parser.parse_args()
    rows = make_rows(options.rows, options.keys)
    line = "{:<32} {:>14} {:>14} {:>12}\n"
    sys.stdout.write(line.format("operator", "M rows/s", "DuckDB", "rows out"))
    for name, (operator, config, sql) in CASES.items():
        # The first run of anything also loads it.
        run(operator, config, rows.slice(0, options.batch), options)
        elapsed, made = measure(partial(run, operator, config, rows, options))
        batch_s, _ = measure(partial(answer, sql, rows))
        rates = [f"{options.rows / seconds / 1e6:.1f}" for seconds in (elapsed, batch_s)]
        sys.stdout.write(line.format(name, *rates, made))


def make_rows(count: int, keys: int) -> pa.Table:
    random = np.random.default_rng(7)
    times = np.arange(count) * EVENT_STEP_US
    return pa.table(
        {
            "k": random.integers(0, keys, count),
            "price": random.integers(0, 10_000, count),
            "at": pa.array(times, pa.int64()).cast(pa.timestamp("us")),
        },
        schema=STREAM.schema,
    )


def run(operator: str, config: dict[str, Any], rows: pa.Table, options: argparse.Namespace) -> int:
    registry = Registry()
    arroyo_register(registry)
    constructor = registry.constructors[operator]
    message = ParseDict(config, constructor.config_type())
    made = 0
    with OperatorHarness(lambda: constructor.with_config(message, registry), inputs=[STREAM]) as harness:
        for number, batch in enumerate(rows.to_batches(max_chunksize=options.batch), start=1):
            harness.process(batch)
            latest = batch.column("at")[-1].cast(pa.int64()).as_py()
            harness.watermark(Watermark.event_time(latest))
            if number % options.epoch_batches == 0:
                harness.checkpoint()
                harness.restore()
                made += int(harness.take_output().num_rows)
        harness.end_of_data()
        harness.checkpoint()
        return made + int(harness.output.num_rows)


def answer(sql: str, rows: pa.Table) -> int:
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("rows", rows)
        return int(connection.sql(sql).to_arrow_table().num_rows)


def measure(work: Callable[[], int]) -> tuple[float, int]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()
