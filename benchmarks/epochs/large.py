"""Time per epoch with 10 million keys of state, 1 million and 100 thousand, for the same change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch, run

SIZES = (10_000_000, 1_000_000, 100_000)
CHANGE = 1_000
ROUNDS = 4
EPOCHS = 15
WARM_UP = 5


def pipeline(folder: Path, keys: int, *, rows: int) -> dict[str, Any]:
    """The first `keys` numbers are the keys; those after them are keys again. An epoch has so many rows."""
    return {
        "name": f"large_{keys}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "1h", "rows": rows},
        "nodes": [
            {"id": "numbers", "operator": "impulse.source", "config": {}},
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


def fill(spark: SparkSession, folder: Path, keys: int) -> None:
    run(spark, folder, pipeline(folder, keys, rows=keys // 2), Stopwatch(rows=keys))


def change(spark: SparkSession, folder: Path, keys: int) -> list[float]:
    watch = Stopwatch(epochs=WARM_UP + EPOCHS)
    run(spark, folder, pipeline(folder, keys, rows=CHANGE), watch)
    return watch.gaps_s(skip=WARM_UP)


def measure(folder: Path) -> dict[str, list[float]]:
    """The sizes take turns, for Spark itself becomes faster with every job."""
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    for keys in SIZES:
        fill(spark, folder, keys)
    found: dict[str, list[float]] = {f"{keys:,} keys": [] for keys in SIZES}
    for _ in range(ROUNDS):
        for keys in SIZES:
            found[f"{keys:,} keys"] += change(spark, folder, keys)
    spark.stop()
    return found
