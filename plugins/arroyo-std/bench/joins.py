"""Rows per second of processor time of each join alone, beside DuckDB's batch answer.

    python plugins/arroyo-std/bench/joins.py [--rows 1000000] [--keys 200000] [--batch 65536]

Both sides have so many rows; rates count the rows of both. Each join runs in one subtask and one thread, with
watermarks after every pair of batches and a checkpoint every `--epoch-batches` pairs, after which it is made again
from its state, as in a pipeline. DuckDB gets one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness
from google.protobuf.json_format import ParseDict

from arroyo_core.api import ArroyoSchema, Registry, Watermark

STREAMS = tuple(
    ArroyoSchema(pa.schema({key: pa.int64(), value: pa.int64(), time: pa.timestamp("us")}), timestamp_column=time)
    for key, value, time in (("k", "price", "at"), ("key", "amount", "seen"))
)
ON = [{"left": "k", "right": "key"}]
#: 100,000 events of event time per second.
EVENT_STEP_US = 10
SECOND_US = 1_000_000
NEAR = "seen BETWEEN l.at - interval 500 milliseconds AND l.at + interval 500 milliseconds"

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "window 1 s, inner": (
        "std.window_join",
        {"on": ON, "size": SECOND_US},
        "l JOIN r ON k = key AND time_bucket(interval 1 second, l.at) = time_bucket(interval 1 second, seen)",
    ),
    "window 1 s, full": (
        "std.window_join",
        {"on": ON, "size": SECOND_US, "type": "full"},
        "l FULL JOIN r ON k = key AND time_bucket(interval 1 second, l.at) = time_bucket(interval 1 second, seen)",
    ),
    "history, inner": ("std.join", {"on": ON}, "l JOIN r ON k = key"),
    "history, left": ("std.join", {"on": ON, "type": "left"}, "l LEFT JOIN r ON k = key"),
    "interval -0.5 s to 0.5 s, inner": (
        "std.interval_join",
        {"on": ON, "lower": "-500ms", "upper": "500ms"},
        f"l JOIN r ON k = key AND {NEAR}",
    ),
    "interval -0.5 s to 0.5 s, left": (
        "std.interval_join",
        {"on": ON, "lower": "-500ms", "upper": "500ms", "type": "left"},
        f"l LEFT JOIN r ON k = key AND {NEAR}",
    ),
    "asof 1 s": ("std.asof_join", {"on": ON, "tolerance": SECOND_US}, "l ASOF LEFT JOIN r ON k = key AND l.at >= seen"),
    "lookup in 100,000 rows": ("std.lookup_join", {"on": [{"left": "k", "right": "id"}]}, "l JOIN d ON k = id"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=65_536)
    parser.add_argument("--epoch-batches", type=int, default=8)
    options = parser.parse_args()
    sides = [make_rows(side, options.rows, options.keys) for side in (0, 1)]
    line = "{:<34} {:>12} {:>12} {:>12}\n"
    sys.stdout.write(line.format("join", "M rows/s", "DuckDB", "rows out"))
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        pq.write_table(pa.table({"id": np.arange(100_000), "name": [f"name {i}" for i in range(100_000)]}), table)
        for name, (operator, config, sql) in CASES.items():
            used = sides
            if operator == "std.lookup_join":
                config, used = config | {"table": {"path": str(table)}}, sides[:1]
            # The first run of anything also loads it.
            run(operator, config, [side.slice(0, options.batch) for side in used], options)
            elapsed_s, made = measure(partial(run, operator, config, used, options))
            batch_s, _ = measure(partial(answer, sql, sides, table))
            rates = [f"{options.rows * len(used) / seconds / 1e6:.2f}" for seconds in (elapsed_s, batch_s)]
            sys.stdout.write(line.format(name, *rates, made))


def make_rows(side: int, count: int, keys: int) -> pa.Table:
    random = np.random.default_rng(side)
    return pa.table(
        [
            random.integers(0, keys, count),
            random.integers(0, 10_000, count),
            pa.array(np.arange(count) * EVENT_STEP_US + side, pa.int64()).cast(pa.timestamp("us")),
        ],
        schema=STREAMS[side].schema,
    )


def run(operator: str, config: dict[str, Any], sides: list[pa.Table], options: argparse.Namespace) -> int:
    registry = Registry()
    arroyo_register(registry)
    constructor = registry.constructors[operator]
    message = ParseDict(config, constructor.config_type())
    inputs = STREAMS[: len(sides)]
    made = 0
    with OperatorHarness(lambda: constructor.with_config(message, registry), inputs=inputs) as harness:
        for number, batches in enumerate(
            zip(*(side.to_batches(max_chunksize=options.batch) for side in sides), strict=True), start=1
        ):
            for index, batch in enumerate(batches):
                harness.process(batch, index)
            for index, batch in enumerate(batches):
                harness.watermark(Watermark.event_time(batch.column(2)[-1].cast(pa.int64()).as_py()), index)
            if number % options.epoch_batches == 0:
                harness.checkpoint()
                made += int(harness.take_output().num_rows)
                harness.restore()
        harness.end_of_data()
        harness.checkpoint()
        return made + int(harness.output.num_rows)


def answer(sql: str, sides: list[pa.Table], table: Path) -> int:
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("l", sides[0])
        connection.register("r", sides[1])
        connection.register("d", pq.read_table(table))
        return int(connection.sql(f"SELECT * FROM {sql}").to_arrow_table().num_rows)


def measure(work: Callable[[], int]) -> tuple[float, int]:
    """Seconds of processor time, which other work on the machine does not lengthen, and what the work gave."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


if __name__ == "__main__":
    main()
