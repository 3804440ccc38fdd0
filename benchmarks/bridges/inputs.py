"""Windows over a DataFrame: `inputs={...}`, `filesystem.source` and Spark SQL, with one answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from arroyo_core import Pipeline
from benchmarks.bridges.rows import best_of, line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIPELINE = """
name: {name}
parallelism: {cores}
checkpoint: {{url: {folder}/state, interval: 1h}}
nodes:
  - id: bids
{source}
  - id: sums
    operator: std.tumbling_window
    inputs: [bids]
    config:
      size: 10s
      keys: [auction]
      aggregates: [{{function: count, as: bids}}, {{function: sum, column: price, as: total}}]
  - id: out
    operator: filesystem.sink
    inputs: [sums]
    config: {{path: {folder}/out, format: parquet}}
"""
GIVEN = """    operator: spark.input
    config: {schema: {auction: int64, price: int64, date_time: timestamp}, event_time_field: date_time}"""
FILES = """    operator: filesystem.source
    config: {path: %s, event_time_field: date_time, columns: [auction, price, date_time]}"""


def measure(spark: SparkSession, bids: Path, folder: Path, *, cores: int, repeats: int) -> Iterator[str]:
    folder.mkdir(parents=True)
    frame = spark.read.parquet(str(bids))
    rows = pq.ParquetDataset(bids).read(columns=[]).num_rows

    def written(name: str, source: str) -> tuple[Pipeline, Path]:
        place = folder / name
        place.mkdir()
        path = place / "pipeline.yaml"
        path.write_text(PIPELINE.format(name=name, cores=cores, folder=place, source=source))
        return Pipeline.from_yaml(path), place

    def given(number: int) -> None:
        written(f"given_{number}", GIVEN)[0].run(spark, inputs={"bids": frame})

    def files(number: int) -> None:
        written(f"files_{number}", FILES % bids)[0].run(spark)

    def by_spark(number: int) -> None:
        spark_windows(frame).write.parquet(str(folder / f"spark_{number}"))

    files_s = best_of(repeats, files)
    given_s = best_of(repeats, given)
    spark_s = best_of(repeats, by_spark)
    expected = spark.read.parquet(str(folder / "spark_0"))
    for name in ("given_0", "files_0"):
        check_same(spark.read.parquet(f"{folder}/{name}/out/part-*.parquet"), expected)
    yield f"{rows:,} rows: all answers are those of Spark SQL, {expected.count():,} windows"
    yield line("filesystem.source", files_s, "filesystem.source", files_s, rows)
    yield line("inputs={df}", given_s, "filesystem.source", files_s, rows)
    yield line("Spark SQL, Parquet to Parquet", spark_s, "filesystem.source", files_s, rows)


def spark_windows(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    sums = frame.groupBy("auction", sql.window("date_time", "10 seconds")).agg(
        sql.count("*").alias("bids"), sql.sum("price").alias("total")
    )
    return sums.selectExpr("auction", "window.start as window_start", "bids", "total")


def check_same(found: DataFrame, expected: DataFrame) -> None:
    rows = found.select("auction", "window_start", "bids", "total")
    if rows.exceptAll(expected).count() or expected.exceptAll(rows).count():
        raise AssertionError("the answers differ")
