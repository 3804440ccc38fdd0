"""Time per epoch with 10 million keys of state and with 100 thousand, for the same change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epochs import PARALLELISM, Stopwatch, run
from pyspark.sql import SparkSession

from arroyo_core.spark.session import create_session

SIZES = (100_000, 10_000_000)
CHANGE = 1_000
EPOCHS = 40
WARM_UP = 10


def pipeline(folder: Path, keys: int, *, rows: int | None) -> dict[str, Any]:
    """The first `keys` numbers are the keys; those after them are keys again."""
    budget = {} if rows is None else {"rows": rows}
    return {
        "name": f"large_{keys}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "10s", **budget},
        "nodes": [
            {"id": "numbers", "operator": "impulse.source", "config": {"count": 10 * keys}},
            {
                "id": "keyed",
                "operator": "std.project",
                "inputs": ["numbers"],
                "config": {"expressions": {"key": f"counter * 7919 % {keys}", "timestamp": "timestamp"}},
            },
            {
                "id": "counts",
                "operator": "std.updating_aggregate",
                "inputs": ["keyed"],
                "config": {"keys": ["key"], "aggregates": [{"function": "count", "as": "rows"}], "ttl": "240h"},
            },
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["counts"]},
        ],
    }


def fill_and_measure(spark: SparkSession, folder: Path, keys: int) -> list[float]:
    run(spark, folder, pipeline(folder, keys, rows=None), Stopwatch(rows=keys))
    watch = Stopwatch(epochs=WARM_UP + EPOCHS)
    run(spark, folder, pipeline(folder, keys, rows=CHANGE), watch)
    return watch.gaps_s(skip=WARM_UP)


def measure(folder: Path) -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    found = {f"{keys:,} keys": fill_and_measure(spark, folder, keys) for keys in SIZES}
    spark.stop()
    return dict(reversed(found.items()))
