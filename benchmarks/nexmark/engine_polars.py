"""Polars' batch answer with its streaming engine: from Parquet to Parquet, lazily."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .tasks import COMPRESSION, PARALLELISM, Task, Timing

# Read once, when polars is imported.
os.environ.setdefault("POLARS_MAX_THREADS", str(PARALLELISM))

import polars as pl

_BID = ("auction", "bidder", "price", "date_time", "extra")


def scan(task: Task, table: str, *columns: str) -> pl.LazyFrame:
    rows = pl.scan_parquet(task.files(table))
    return rows.select(columns) if columns else rows


def _windows(rows: pl.LazyFrame, size: str = "10s") -> pl.LazyFrame:
    return rows.with_columns(window_start=pl.col("date_time").dt.truncate(size))


def q0(task: Task) -> pl.LazyFrame:
    return scan(task, "bid", *_BID)


def q1(task: Task) -> pl.LazyFrame:
    euros = (pl.col("price") * 908).cast(pl.Decimal(26, 0)) * pl.lit("0.001").cast(pl.Decimal(4, 3))
    return q0(task).with_columns(price=euros.cast(pl.Decimal(23, 3)))


def q2(task: Task) -> pl.LazyFrame:
    return scan(task, "bid", "auction", "price").filter(pl.col("auction") % 123 == 0)


def q5(task: Task) -> pl.LazyFrame:
    """Counts of two seconds each, five of which make a window."""
    panes = _windows(scan(task, "bid", "auction", "date_time"), "2s").group_by("auction", "window_start").len("num")
    offsets = pl.lit(pl.Series([[2 * index for index in range(5)]]))
    counts = (
        panes.with_columns(offset=offsets)
        .explode("offset")
        .with_columns(window_start=pl.col("window_start") - pl.duration(seconds=pl.col("offset")))
        .group_by("auction", "window_start")
        .agg(pl.col("num").sum().cast(pl.Int64))
    )
    highest = counts.group_by("window_start").agg(pl.col("num").max())
    hot = counts.join(highest, on=["window_start", "num"], how="semi")
    return hot.with_columns(window_end=pl.col("window_start") + pl.duration(seconds=10))


def q7(task: Task) -> pl.LazyFrame:
    bids = _windows(q0(task))
    highest = bids.group_by("window_start").agg(pl.col("price").max())
    return bids.join(highest, on=["window_start", "price"], how="semi").select(_BID)


def q8(task: Task) -> pl.LazyFrame:
    people = _windows(scan(task, "person", "id", "name", "date_time")).drop("date_time").unique()
    sellers = _windows(scan(task, "auction", "seller", "date_time")).drop("date_time")
    return people.join(sellers, left_on=["id", "window_start"], right_on=["seller", "window_start"], how="semi")


def q11(task: Task) -> pl.LazyFrame:
    bids = scan(task, "bid", "bidder", "date_time").sort("bidder", "date_time")
    is_first = (pl.col("bidder") != pl.col("bidder").shift()) | (
        pl.col("date_time") - pl.col("date_time").shift() >= pl.duration(seconds=10)
    )
    return (
        bids.with_columns(session=is_first.fill_null(True).cum_sum())
        .group_by("session")
        .agg(
            pl.col("bidder").first(),
            pl.len().alias("bid_count"),
            pl.col("date_time").min().alias("start_time"),
            (pl.col("date_time").max() + pl.duration(seconds=10)).alias("end_time"),
        )
        .drop("session")
    )


def q12e(task: Task) -> pl.LazyFrame:
    counts = _windows(scan(task, "bid", "bidder", "date_time")).group_by("bidder", "window_start").len("bid_count")
    end = (pl.col("window_start") + pl.duration(seconds=10)).alias("end_time")
    return counts.select("bidder", "bid_count", pl.col("window_start").alias("start_time"), end)


def q17(task: Task) -> pl.LazyFrame:
    price = pl.col("price")
    days = scan(task, "bid", "auction", "price", "date_time").with_columns(day=pl.col("date_time").dt.date())
    return (
        days.group_by("auction", "day")
        .agg(
            pl.len().alias("total_bids"),
            (price < 10000).sum().alias("rank1_bids"),
            ((price >= 10000) & (price < 1000000)).sum().alias("rank2_bids"),
            (price >= 1000000).sum().alias("rank3_bids"),
            price.min().alias("min_price"),
            price.max().alias("max_price"),
            price.mean().alias("avg_price"),
            price.sum().alias("sum_price"),
        )
        .with_columns(day=pl.col("day").dt.strftime("%Y-%m-%d"))
    )


def q18(task: Task) -> pl.LazyFrame:
    bids = scan(task, "bid")
    others = [pl.col(name) for name in bids.collect_schema().names() if name not in ("bidder", "auction")]
    return bids.group_by("bidder", "auction").agg(column.sort_by("date_time").last() for column in others)


QUERIES: Mapping[str, Callable[[Task], pl.LazyFrame]] = {
    query.__name__: query for query in (q0, q1, q2, q5, q7, q8, q11, q12e, q17, q18)
}


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    Path(task.answer).mkdir()
    start = time.perf_counter()
    QUERIES[task.case](task).sink_parquet(f"{task.answer}/part.parquet", compression=COMPRESSION, engine="streaming")
    job_s = time.perf_counter() - start
    Timing(job_s=job_s, epochs=1, versions={"polars": pl.__version__}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
