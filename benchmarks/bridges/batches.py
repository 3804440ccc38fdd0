"""A windowed count of a file stream: a pipeline by `foreachBatch`, and Structured Streaming's own aggregate.

Rows of a batch come in no order, so both allow as much lateness as a batch spans. The stream does not end: windows that
the watermark has not passed are in neither answer. Both must have all others, as Spark SQL counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arroyo_core import Pipeline
from benchmarks.bridges.inputs import check_same, spark_windows
from benchmarks.bridges.rows import SPAN_S, best_of, line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIPELINE = """
name: {name}
parallelism: {cores}
checkpoint: {{url: {folder}/state, interval: 1h}}
nodes:
  - id: bids
    operator: spark.input
    config: {{schema: {{auction: int64, price: int64, date_time: timestamp}}, event_time_field: date_time}}
  - id: in_time
    operator: std.watermark
    inputs: [bids]
    config: {{max_lateness: {lateness_s}s}}
  - id: sums
    operator: std.tumbling_window
    inputs: [in_time]
    config:
      size: 10s
      keys: [auction]
      aggregates: [{{function: count, as: bids}}, {{function: sum, column: price, as: total}}]
  - id: out
    operator: filesystem.sink
    inputs: [sums]
    config: {{path: {folder}/out, format: parquet}}
"""


def measure(spark: SparkSession, bids: Path, folder: Path, *, cores: int, repeats: int) -> Iterator[str]:
    folder.mkdir(parents=True)
    spark.conf.set("spark.sql.shuffle.partitions", str(cores))
    schema = spark.read.parquet(str(bids)).schema
    rows = spark.read.parquet(str(bids)).count()
    files = len(list(bids.glob("*.parquet")))
    lateness_s = SPAN_S // files + 1

    def stream() -> DataFrame:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(bids))

    def run(writer: Any, place: Path) -> None:
        query = writer.option("checkpointLocation", str(place / "spark")).trigger(availableNow=True).start()
        query.awaitTermination()

    def by_pipeline(number: int) -> None:
        place = folder / f"pipeline_{number}"
        place.mkdir()
        path = place / "pipeline.yaml"
        path.write_text(PIPELINE.format(name=place.name, cores=cores, folder=place, lateness_s=lateness_s))
        with Pipeline.from_yaml(path).on_batch(input="bids") as feed:
            run(stream().writeStream.foreachBatch(feed), place)

    def by_spark(number: int) -> None:
        from pyspark.sql import functions as sql

        place = folder / f"spark_{number}"
        sums = (
            stream()
            .withWatermark("date_time", f"{lateness_s} seconds")
            .groupBy("auction", sql.window("date_time", "10 seconds"))
            .agg(sql.count("*").alias("bids"), sql.sum("price").alias("total"))
        )
        run(sums.writeStream.outputMode("append").format("parquet").option("path", str(place / "out")), place)

    def noop(number: int) -> None:
        place = folder / f"noop_{number}"
        run(stream().writeStream.foreachBatch(_nothing), place)

    times = {name: best_of(repeats, work) for name, work in cases(by_spark, by_pipeline, noop)}
    base_s = times["Structured Streaming"]
    expected = closed_windows(spark.read.parquet(str(bids)), lateness_s=lateness_s).cache()
    check_same(spark.read.parquet(str(folder / "pipeline_0/out/part-*.parquet")), expected)
    own = spark.read.parquet(str(folder / "spark_0/out"))
    check_same(own.withColumn("window_start", own["window.start"]), expected)
    yield f"{rows:,} rows in {files} batches: both answers are those of Spark SQL, {expected.count():,} windows"
    for name, seconds in times.items():
        yield line(name, seconds, "Structured Streaming", base_s, rows)


def cases(
    by_spark: Callable[[int], None], by_pipeline: Callable[[int], None], noop: Callable[[int], None]
) -> list[tuple[str, Callable[[int], None]]]:
    return [
        ("Structured Streaming", by_spark),
        ("foreachBatch(pipeline.on_batch())", by_pipeline),
        ("foreachBatch that does nothing", noop),
    ]


def closed_windows(frame: DataFrame, *, lateness_s: int) -> DataFrame:
    """Those that a watermark has passed which is so much behind the last row."""
    row = frame.selectExpr("unix_micros(max(date_time)) as last").first()
    assert row is not None
    watermark_us = row["last"] - lateness_s * 1_000_000
    return spark_windows(frame).filter(f"unix_micros(window_start) + 10000000 <= {watermark_us}")


def _nothing(frame: DataFrame, batch_id: int) -> None:
    return
