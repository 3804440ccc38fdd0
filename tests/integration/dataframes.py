"""Pipelines that take DataFrames, and what Spark SQL makes of the same rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "{auction: int64, price: int64, channel: string, date_time: timestamp}"

WINDOWS = """
name: {name}
parallelism: {parallelism}
checkpoint: {{url: {folder}/state, interval: 10s}}
nodes:
  - id: bids
    operator: spark.input
    config:
      schema: {schema}
      event_time_field: date_time
{more}  - id: sums
    operator: std.tumbling_window
    inputs: [{last}]
    config:
      size: 10s
      keys: [auction]
      aggregates:
        - {{function: count, as: bids}}
        - {{function: sum, column: price, as: total}}
        - {{function: max, column: channel, as: channel}}
  - id: out
    operator: filesystem.sink
    inputs: [sums]
    config: {{path: {folder}/out, format: parquet}}
"""


def windows(folder: Path, *, more: str = "", last: str = "bids", schema: str = SCHEMA, parallelism: int = 2) -> Path:
    """Sums of ten seconds for each auction; `more` are nodes in front of them, of which `last` is the last."""
    folder.mkdir(exist_ok=True)
    path = folder / "pipeline.yaml"
    path.write_text(
        WINDOWS.format(name=folder.name, folder=folder, more=more, last=last, schema=schema, parallelism=parallelism)
    )
    return path


def spark_windows(rows: DataFrame) -> Counter[tuple[object, ...]]:
    """The same by Spark SQL."""
    from pyspark.sql import functions as sql

    answer = rows.groupBy("auction", sql.window("date_time", "10 seconds")).agg(
        sql.count("*").alias("bids"), sql.sum("price").alias("total"), sql.max("channel").alias("channel")
    )
    return counted(answer.select("auction", "window.start", "bids", "total", "channel"))


def written_windows(spark: SparkSession, folder: Path) -> Counter[tuple[object, ...]]:
    """What a pipeline has written, read back by Spark."""
    rows = spark.read.parquet(f"{folder}/out/part-*.parquet")
    return counted(rows.select("auction", "window_start", "bids", "total", "channel"))


def counted(rows: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in rows.collect())
