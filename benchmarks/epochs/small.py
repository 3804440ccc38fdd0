"""A stateful epoch of 1,000 rows beside the same micro-batch of Structured Streaming, on the same files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch, run

ROWS = 1_000
EPOCHS = 60
WARM_UP = 15
KEYS = 5_000
START_US = 1_700_000_000_000_000


def write_files(folder: Path, files: int) -> Path:
    """One file for each epoch, so that Structured Streaming takes one a micro-batch."""
    folder.mkdir(parents=True)
    numbers = np.random.default_rng(7)
    for index in range(files):
        moments = START_US + index * 1_000_000 + np.sort(numbers.integers(0, 1_000_000, ROWS))
        table = pa.table(
            {
                "key": numbers.integers(0, KEYS, ROWS),
                "amount": numbers.integers(0, 1000, ROWS),
                "moment": pa.array(moments, pa.int64()).cast(pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, folder / f"{index:05}.parquet")
    return folder


def pipeline(folder: Path, data: Path) -> dict[str, Any]:
    aggregates = [{"function": "count", "as": "rows"}, {"function": "sum", "column": "amount", "as": "total"}]
    return {
        "name": "small",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "10s", "rows": ROWS},
        "nodes": [
            {
                "id": "rows",
                "operator": "filesystem.source",
                "config": {"path": str(data), "format": "parquet", "event_time_field": "moment"},
            },
            {
                "id": "sums",
                "operator": "std.updating_aggregate",
                "inputs": ["rows"],
                "config": {"keys": ["key"], "aggregates": aggregates},
            },
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["sums"]},
        ],
    }


def micro_batches(spark: SparkSession, folder: Path, data: Path) -> list[float]:
    schema = spark.read.parquet(str(data)).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(data))
    sums = rows.groupBy("key").agg(sql.count("*").alias("rows"), sql.sum("amount").alias("total"))
    query = (
        sums.writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    # One after the other without a pause: what a trigger takes is the time from one to the next.
    took_s = [item.durationMs["triggerExecution"] / 1000 for item in query.recentProgress if item.numInputRows]
    return took_s[WARM_UP:]


def measure(folder: Path, *, execution: str = "jobs") -> dict[str, list[float]]:
    data = write_files(folder / "data", WARM_UP + EPOCHS)
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    watch = Stopwatch()
    run(spark, folder, pipeline(folder, data), watch, execution=execution)
    spark.stop()
    time.sleep(1)
    streaming = (
        SparkSession.builder.master(f"local[{PARALLELISM}]")
        .appName("bench structured streaming")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", PARALLELISM)
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    streaming.sparkContext.setLogLevel("ERROR")
    batches_s = micro_batches(streaming, folder, data)
    streaming.stop()
    return {"epoch": watch.gaps_s(skip=WARM_UP), "Structured Streaming": batches_s}
