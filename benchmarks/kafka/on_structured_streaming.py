"""Structured Streaming through its Kafka source, with the queries of the benchmark over files."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.streaming import DataStreamWriter

from ..nexmark.engine_structured_streaming import hot_items, in_euros, in_time, session
from .cases import AVRO_SCHEMA, COLUMNS, NEEDED
from .tasks import TopicTask, TopicTiming

PACKAGES = [f"org.apache.spark:{name}_2.13:{pyspark.__version__}" for name in ("spark-sql-kafka-0-10", "spark-avro")]
_TYPES = {"int64": "BIGINT", "string": "STRING", "timestamp": "TIMESTAMP"}
#: Times are written in milliseconds otherwise.
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def bids(spark: SparkSession, task: TopicTask) -> DataFrame:
    """The columns that the query needs."""
    columns = NEEDED[task.case]
    read = {"kafka.bootstrap.servers": task.servers, "subscribe": task.data, "startingOffsets": "earliest"}
    messages = spark.readStream.format("kafka").options(**read).load()
    if task.format == "json":
        schema = ", ".join(f"{name} {_TYPES[COLUMNS.get(name, 'int64')]}" for name in columns)
        value = sql.from_json(sql.col("value").cast("string"), schema)
    else:
        value = from_avro(sql.col("value"), AVRO_SCHEMA)
    return messages.select(value.alias("bid")).select(*(f"bid.{name}" for name in columns))


def answer(spark: SparkSession, task: TopicTask) -> DataFrame:
    rows = bids(spark, task)
    return hot_items(in_time(rows)) if task.case == "q5" else in_euros(rows)


def writer(rows: DataFrame, task: TopicTask) -> DataStreamWriter:
    if not task.answer:
        return rows.writeStream.format("noop")
    messages = rows.select(sql.to_json(sql.struct("*"), _JSON).alias("value"))
    written = {"kafka.bootstrap.servers": task.servers, "topic": task.answer}
    return messages.writeStream.format("kafka").options(**written)


def main() -> None:
    task = TopicTask.read(Path(sys.argv[1]))
    spark = session(task.cores, packages=PACKAGES)
    spark.sparkContext.setLogLevel("ERROR")
    # Starting Arroyo ends with an empty job, for its Python workers: this session has run one by now, too.
    spark.range(task.cores).repartition(task.cores).count()
    start = time.perf_counter()
    job = writer(answer(spark, task), task).option("checkpointLocation", f"{task.scratch}/checkpoint")
    is_endless = task.case == "latency"
    running = (job.trigger(processingTime="0 seconds") if is_endless else job.trigger(availableNow=True)).start()
    running.awaitTermination()
    TopicTiming(
        job_s=time.perf_counter() - start,
        epochs=len(running.recentProgress),
        is_closed_only=True,
        rows=sum(progress["numInputRows"] for progress in running.recentProgress),
        versions={"pyspark of Structured Streaming": pyspark.__version__},
    ).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
