"""Spark Structured Streaming over the same files: `AvailableNow`, with a checkpoint, into Parquet."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cases import COMPRESSION, EUROS_PER_DOLLAR, MIN_PRICE, PARALLELISM, Task, Timing
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session for streaming, with further settings."""
    builder = (
        SparkSession.builder.master(f"local[{PARALLELISM}]")
        .appName("bench structured streaming")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.parquet.compression.codec", COMPRESSION)
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def query(spark: SparkSession, task: Task) -> DataFrame:
    schema = spark.read.parquet(task.data).schema
    bids = spark.readStream.schema(schema).parquet(task.data)
    answer = bids.where(sql.col("price") >= MIN_PRICE).select(
        "auction", "bidder", (sql.col("price") * sql.lit(EUROS_PER_DOLLAR)).alias("euros"), "channel", "date_time"
    )
    return answer.repartition(PARALLELISM, "auction") if task.is_shuffled else answer


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    start = time.perf_counter()
    running = (
        query(spark, task)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{task.scratch}/checkpoint")
        .trigger(availableNow=True)
        .start(task.answer)
    )
    running.awaitTermination()
    Timing(job_s=time.perf_counter() - start, epochs=len(running.recentProgress)).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
