"""A chain without state: `apply`, the identity by `mapInArrow`, and Spark's own columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.spark import apply
from benchmarks.bridges.rows import best_of, line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHAIN = """
- {operator: std.filter, config: {predicate: price > 100}}
- {operator: std.project, config: {expressions: {auction: auction, euro: price * 9 / 10, channel: upper(channel)}}}
"""


def measure(spark: SparkSession, bids: Path, folder: Path, *, cores: int, repeats: int) -> Iterator[str]:
    frame = spark.read.parquet(str(bids))
    rows = frame.count()
    native = frame.filter("price > 100").selectExpr("auction", "price * 9 div 10 as euro", "upper(channel) as channel")
    applied = apply(frame, CHAIN)
    if summary(applied) != summary(native):
        raise AssertionError("the answers differ")
    identity_s = best_of(repeats, lambda _: consume(frame.mapInArrow(identity, frame.schema)))
    applied_s = best_of(repeats, lambda _: consume(applied))
    native_s = best_of(repeats, lambda _: consume(native))
    yield line("identity mapInArrow", identity_s, "identity", identity_s, rows)
    yield line("apply", applied_s, "identity", identity_s, rows)
    yield line("Spark's own columns", native_s, "identity", identity_s, rows)


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def consume(frame: DataFrame) -> None:
    """Compute all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def summary(frame: DataFrame) -> list[object]:
    return [
        tuple(row)
        for row in frame.selectExpr("count(*)", "sum(euro)", "bit_xor(xxhash64(auction, channel, euro))").collect()
    ]
