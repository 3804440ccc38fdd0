"""Bids as Parquet files, and how long things take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.modules import ENVIRONMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUCTIONS = 1_000
#: Of event time, in all files together.
SPAN_S = 600


def make_bids(folder: Path, *, rows: int, files: int) -> Path:
    """So many bids, in order of their times, in so many files, which a file stream takes in their order."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(11)
    times_us = np.linspace(0, SPAN_S * 1_000_000, rows, endpoint=False).astype(np.int64)
    channels = pa.array([f"channel-{number}" for number in range(20)])
    for number, part_us in enumerate(np.array_split(times_us, files)):
        size = len(part_us)
        table = pa.table(
            {
                "auction": random.integers(0, AUCTIONS, size),
                "price": random.integers(1, 10_000, size),
                "channel": channels.take(pa.array(random.integers(0, 20, size))),
                "date_time": pa.array(part_us, pa.timestamp("us", "UTC")),
            }
        )
        path = folder / f"bids-{number:03}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return folder


def make_session(cores: int, *, python: str) -> SparkSession:
    """A session as a user makes one."""
    os.environ |= {"PYSPARK_PYTHON": python, **ENVIRONMENT}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").appName("bridges")
    session = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def best_of(repeats: int, work: Callable[[int], object]) -> float:
    """Seconds of the fastest; `work` is given the number of the try."""
    took = []
    for number in range(repeats):
        started = time.perf_counter()
        work(number)
        took.append(time.perf_counter() - started)
    return min(took)


def line(what: str, seconds: float, beside: str, base_s: float, rows: int) -> str:
    return f"{what:34} {seconds:7.2f} s  {rows / seconds / 1e6:6.2f} M rows/s  {seconds / base_s:5.2f} x {beside}"
