"""Structured Streaming over the same files: RocksDB with changelog checkpoints, a file of each table a micro-batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import DataStreamWriter

from ..nexmark.engine_structured_streaming import session
from ..nexmark.tasks import Task, Timing
from .cases import COLUMNS, GAP_US, MAX_LATENESS_MS


def stream(spark: SparkSession, task: Task, table: str) -> DataFrame:
    path = f"{task.data}/{table}"
    schema = spark.read.parquet(path).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
    return rows.select(*COLUMNS[table]).withWatermark("date_time", f"{MAX_LATENESS_MS} milliseconds")


def grouped(spark: SparkSession, task: Task, key: str, window: Column) -> DataFrame:
    windows = stream(spark, task, "bid").groupBy(key, window.alias("window")).agg(*_count_and_max())
    times = [sql.col("window.start").alias("window_start"), sql.col("window.end").alias("window_end")]
    return windows.select(key, *times, "bids", "top")


def joined(spark: SparkSession, task: Task, condition: Callable[[DataFrame, DataFrame], Column]) -> DataFrame:
    auctions, bids = stream(spark, task, "auction"), stream(spark, task, "bid")
    bids = bids.select("auction", "price", sql.col("date_time").alias("right_date_time"))
    return auctions.join(bids, condition(auctions, bids))


def tumbling(spark: SparkSession, task: Task) -> DataFrame:
    return grouped(spark, task, "auction", sql.window("date_time", "10 seconds"))


def sliding(spark: SparkSession, task: Task) -> DataFrame:
    return grouped(spark, task, "auction", sql.window("date_time", "10 seconds", "2 seconds"))


def sessions(spark: SparkSession, task: Task) -> DataFrame:
    return grouped(spark, task, "bidder", sql.session_window("date_time", f"{GAP_US} microseconds"))


def updating(spark: SparkSession, task: Task) -> DataFrame:
    return stream(spark, task, "bid").groupBy("auction").agg(*_count_and_max())


def window_join(spark: SparkSession, task: Task) -> DataFrame:
    """A stream has one event time, here the window; the time itself is made a column like any other."""
    auctions, bids = stream(spark, task, "auction"), stream(spark, task, "bid")
    window, moment = sql.window("date_time", "10 seconds"), sql.expr("timestamp_micros(unix_micros(date_time))")
    auctions = auctions.select("id", "seller", moment.alias("date_time"), window.alias("left_window"))
    bids = bids.select("auction", "price", moment.alias("right_date_time"), window.alias("right_window"))
    condition = (auctions["id"] == bids["auction"]) & (auctions["left_window"] == bids["right_window"])
    return auctions.join(bids, condition).drop("left_window", "right_window")


def interval_join(spark: SparkSession, task: Task) -> DataFrame:
    last = "right_date_time <= date_time + interval 10 seconds"
    return joined(
        spark,
        task,
        lambda auctions, bids: (
            (auctions["id"] == bids["auction"]) & sql.expr("right_date_time >= date_time") & sql.expr(last)
        ),
    )


def join(spark: SparkSession, task: Task) -> DataFrame:
    return joined(spark, task, lambda auctions, bids: auctions["id"] == bids["auction"])


QUERIES: Mapping[str, Callable[[SparkSession, Task], DataFrame]] = {
    "tumbling": tumbling,
    "sliding": sliding,
    "session": sessions,
    "updating": updating,
    "window_join": window_join,
    "interval_join": interval_join,
    "join": join,
}


def _count_and_max() -> list[Column]:
    return [sql.count("*").alias("bids"), sql.max("price").alias("top")]


def writer(answer: DataFrame, task: Task) -> DataStreamWriter:
    """Changes are appended, too: the file sink itself takes no results that change."""
    if task.case != "updating":
        return answer.writeStream.format("parquet").option("path", task.answer)

    def append(changes: DataFrame, _number: int) -> None:
        changes.write.mode("append").parquet(task.answer)

    return answer.writeStream.outputMode("update").foreachBatch(append)


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    start = time.perf_counter()
    running = (
        writer(QUERIES[task.case](spark, task), task)
        .option("checkpointLocation", f"{task.scratch}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    Timing(job_s=time.perf_counter() - start, epochs=len(running.recentProgress)).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
