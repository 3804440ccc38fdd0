"""Structured Streaming over the same files: `AvailableNow`, RocksDB with changelog checkpoints, into Parquet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import DataStreamWriter

from .tasks import COMPRESSION, MAX_LATENESS_MS, PARALLELISM, Task, Timing

_STATE = "spark.sql.streaming.stateStore"
#: To Structured Streaming a row just as far as the gap belongs to the session. Bids come at multiples of 100 us, so
#: that with this gap just those closer than 10 s do.
GAP_US = 9_999_950
_GAP_REST = "interval 50 microseconds"


def session(cores: int = PARALLELISM, *, packages: Sequence[str] = ()) -> SparkSession:
    """A session for streaming; packages are fetched from Maven Central."""
    settings = {
        "spark.jars.packages": ",".join(packages),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.parquet.compression.codec": COMPRESSION,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench structured streaming")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream(spark: SparkSession, task: Task, table: str, *columns: str) -> DataFrame:
    path = f"{task.data}/{table}"
    rows = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
    return rows.select(*columns) if columns else rows


def in_time(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("date_time", f"{MAX_LATENESS_MS} milliseconds")


def _window(size: str, slide: str | None = None) -> Column:
    return sql.window("date_time", size, slide).alias("window")


def q0(spark: SparkSession, task: Task) -> DataFrame:
    return stream(spark, task, "bid", "auction", "bidder", "price", "date_time", "extra")


def q1(spark: SparkSession, task: Task) -> DataFrame:
    return in_euros(q0(spark, task))


def in_euros(bids: DataFrame) -> DataFrame:
    return bids.withColumn("price", sql.expr("CAST(0.908 * price AS DECIMAL(23, 3))"))


def q2(spark: SparkSession, task: Task) -> DataFrame:
    return stream(spark, task, "bid", "auction", "price").where("auction % 123 = 0")


def q5(spark: SparkSession, task: Task) -> DataFrame:
    return hot_items(in_time(stream(spark, task, "bid", "auction", "date_time")))


def hot_items(bids: DataFrame) -> DataFrame:
    """Two aggregates in a row; of each window those counts are kept that are as high as the highest."""
    counts = bids.groupBy(_window("10 seconds", "2 seconds"), "auction").agg(sql.count("*").alias("num"))
    windows = counts.groupBy("window").agg(sql.collect_list(sql.struct("num", "auction")).alias("items"))
    hottest = sql.expr("filter(items, item -> item.num = array_max(items).num)")
    hot = windows.select("window", sql.explode(hottest).alias("item"))
    return hot.select(
        "item.auction",
        "item.num",
        sql.col("window.start").alias("window_start"),
        sql.col("window.end").alias("window_end"),
    )


def q7(spark: SparkSession, task: Task) -> DataFrame:
    """One aggregate; a second bid as high as the highest would be missed, and the check would tell."""
    bids = in_time(q0(spark, task))
    columns = ("auction", "bidder", "price", "date_time", "extra")
    best = bids.groupBy(_window("10 seconds")).agg(sql.max_by(sql.struct(*columns), "price").alias("bid"))
    return best.select("bid.*")


def q8(spark: SparkSession, task: Task) -> DataFrame:
    people = in_time(stream(spark, task, "person", "id", "name", "date_time"))
    auctions = in_time(stream(spark, task, "auction", "seller", "date_time"))
    newcomers = people.groupBy(_window("10 seconds"), "id", "name").agg(sql.count("*").alias("times"))
    sellers = auctions.groupBy(_window("10 seconds").alias("seller_window"), "seller").agg(
        sql.count("*").alias("offers")
    )
    joined = newcomers.join(
        sellers, (newcomers["id"] == sellers["seller"]) & (newcomers["window"] == sellers["seller_window"])
    )
    return joined.select("id", "name", sql.col("window.start").alias("window_start"))


def q11(spark: SparkSession, task: Task) -> DataFrame:
    bids = in_time(stream(spark, task, "bid", "bidder", "date_time"))
    sessions = bids.groupBy(sql.session_window("date_time", f"{GAP_US} microseconds").alias("window"), "bidder")
    return sessions.agg(sql.count("*").alias("bid_count")).select(
        "bidder",
        "bid_count",
        sql.col("window.start").alias("start_time"),
        sql.expr(f"window.end + {_GAP_REST}").alias("end_time"),
    )


def q12e(spark: SparkSession, task: Task) -> DataFrame:
    bids = in_time(stream(spark, task, "bid", "bidder", "date_time"))
    counts = bids.groupBy(_window("10 seconds"), "bidder").agg(sql.count("*").alias("bid_count"))
    times = [sql.col("window.start").alias("start_time"), sql.col("window.end").alias("end_time")]
    return counts.select("bidder", "bid_count", *times)


def q17(spark: SparkSession, task: Task) -> DataFrame:
    bids = stream(spark, task, "bid", "auction", "price", "date_time")
    return bids.groupBy("auction", sql.expr("date_format(date_time, 'yyyy-MM-dd') AS day")).agg(
        sql.count("*").alias("total_bids"),
        sql.expr("count_if(price < 10000) AS rank1_bids"),
        sql.expr("count_if(price >= 10000 AND price < 1000000) AS rank2_bids"),
        sql.expr("count_if(price >= 1000000) AS rank3_bids"),
        sql.min("price").alias("min_price"),
        sql.max("price").alias("max_price"),
        sql.avg("price").alias("avg_price"),
        sql.sum("price").alias("sum_price"),
    )


def q18(spark: SparkSession, task: Task) -> DataFrame:
    bids = stream(spark, task, "bid")
    last = bids.groupBy("bidder", "auction").agg(sql.max_by(sql.struct(*bids.columns), "date_time").alias("bid"))
    return last.select("bid.*")


QUERIES: Mapping[str, Callable[[SparkSession, Task], DataFrame]] = {
    query.__name__: query for query in (q0, q1, q2, q5, q7, q8, q11, q12e, q17, q18)
}
#: Results that change for as long as rows come.
UPDATED = ("q17", "q18")


def writer(answer: DataFrame, task: Task) -> DataStreamWriter:
    """The file sink takes no results that change: those are appended by hand, a micro-batch at a time."""
    if task.case not in UPDATED:
        return answer.writeStream.format("parquet").option("path", task.answer)

    def append(changes: DataFrame, _number: int) -> None:
        changes.write.mode("append").parquet(task.answer)

    return answer.writeStream.outputMode("update").foreachBatch(append)


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    spark = session(task.cores)
    spark.sparkContext.setLogLevel("ERROR")
    # Starting Arroyo ends with an empty job, for its Python workers: this session has run one by now, too.
    spark.range(task.cores).repartition(task.cores).count()
    start = time.perf_counter()
    running = (
        writer(QUERIES[task.case](spark, task), task)
        .option("checkpointLocation", f"{task.scratch}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    Timing(
        job_s=time.perf_counter() - start,
        epochs=len(running.recentProgress),
        is_upsert=task.case in UPDATED,
        is_closed_only=True,
        versions={"pyspark": pyspark.__version__},
    ).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
