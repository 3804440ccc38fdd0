"""What an epoch of two waves costs beside a bare Spark job of the same shape; ten rows each, no state but offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from pyspark import RDD
from pyspark.sql import SparkSession

from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch, run

Row: TypeAlias = tuple[int, bytes]

BLOCKS = 3
EPOCHS = 30
WARM_UP = 8


def pipeline(folder: Path, block: int) -> dict[str, Any]:
    return {
        "name": f"bare_{block}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "10s", "rows": 10},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"count": 1_000_000}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["ticks"], "config": {"keys": ["counter"]}},
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["keyed"]},
        ],
    }


def bare_job(spark: SparkSession) -> None:
    """One row from every first task to every second one, and one from there to the driver."""

    def first(rows: Iterable[Row]) -> Iterator[Row]:
        yield from rows
        for target in range(PARALLELISM):
            yield target, b""

    def second(rows: Iterable[Row]) -> Iterator[Row]:
        for _ in rows:
            pass
        yield 0, b""

    started: RDD[Row] = spark.sparkContext.parallelize([], PARALLELISM)
    started.mapPartitions(first).partitionBy(PARALLELISM).mapPartitions(second).collect()


def measure(folder: Path) -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    epoch_s: list[float] = []
    bare_s: list[float] = []
    for block in range(BLOCKS):
        watch = Stopwatch(epochs=WARM_UP + EPOCHS)
        run(spark, folder, pipeline(folder, block), watch)
        epoch_s += watch.gaps_s(skip=WARM_UP)
        for number in range(WARM_UP + EPOCHS):
            started = time.perf_counter()
            bare_job(spark)
            if number >= WARM_UP:
                bare_s.append(time.perf_counter() - started)
    spark.stop()
    return {"epoch": epoch_s, "bare Spark job": bare_s}
