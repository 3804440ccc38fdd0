"""From an event to its committed row: a source of 10 thousand rows a second, whose rows tell when they were made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch, run

RATE = 10_000
INTERVALS = ("1s", "250ms")
RUNS = 3
#: Long enough for hundreds of thousands of rows.
RUN_S = 25
WARM_UP_S = 8


class Clock(Stopwatch):
    """Notes by the clock on the wall when each epoch was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.committed_us: dict[int, float] = {}
        self._end_s = time.monotonic() + RUN_S

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.committed_us[result.epoch] = time.time() * 1e6
        super().on_epoch(result, job)
        if time.monotonic() > self._end_s:
            self.stop.request()


def pipeline(folder: Path, interval: str, number: int) -> dict[str, Any]:
    return {
        "name": f"latency_{interval}_{number}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": interval},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"rate": RATE}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["ticks"], "config": {"keys": ["counter"]}},
            {"id": "files", "operator": "filesystem.sink", "inputs": ["keyed"], "config": {"path": f"{folder}/out"}},
        ],
    }


def latencies_s(folder: Path, committed_us: dict[int, float], since_us: float) -> np.ndarray[Any, Any]:
    """Of all rows made after the first seconds, which start workers; the name of a file tells its epoch."""
    found = []
    for path in sorted(folder.glob("part-*.parquet")):
        made_us = (
            pq.read_table(path, columns=["timestamp"])["timestamp"].to_numpy().astype("datetime64[us]").astype(np.int64)
        )
        epoch = int(path.name.split("-")[1])
        if epoch in committed_us:
            found.append((committed_us[epoch] - made_us[made_us >= since_us]) / 1e6)
    return np.concatenate(found)


def measure_once(
    spark: SparkSession, folder: Path, interval: str, number: int, *, execution: str
) -> tuple[float, float]:
    place = folder / f"{interval}_{number}"
    place.mkdir()
    clock = Clock()
    since_us = (time.time() + WARM_UP_S) * 1e6
    run(spark, place, pipeline(place, interval, number), clock, execution=execution)
    found = latencies_s(place / "out", clock.committed_us, since_us)
    return float(np.percentile(found, 50)), float(np.percentile(found, 99))


def measure(folder: Path, *, intervals: Sequence[str] = INTERVALS, execution: str = "jobs") -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    found: dict[str, list[float]] = {}
    for number in range(RUNS):
        for interval in intervals:
            median, highest = measure_once(spark, folder, interval, number, execution=execution)
            found.setdefault(f"an epoch every {interval}: half of the rows within", []).append(median)
            found.setdefault(f"an epoch every {interval}: 99 of 100 within", []).append(highest)
    spark.stop()
    return found
