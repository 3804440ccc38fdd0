"""A bare loop over pyarrow: the least that reading, computing and writing can cost in one process without an engine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .tasks import COMPRESSION, Task, Timing

BATCH_ROWS = 65_536
_SECOND_US = 1_000_000
_BID = ("auction", "bidder", "price", "date_time", "extra")


def batches(task: Task, table: str, *columns: str) -> Iterator[pa.RecordBatch]:
    for path in task.files(table):
        yield from pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, columns=list(columns) or None)


def table_of(task: Task, name: str, *columns: str) -> pa.Table:
    return pa.Table.from_batches(list(batches(task, name, *columns)))


def _window(moments: pa.Array, seconds: int = 10) -> pa.Array:
    """The beginnings of the windows, in microseconds."""
    size = seconds * _SECOND_US
    return pc.multiply(pc.divide(moments.cast(pa.int64()), size), size)


def _time(microseconds: pa.ChunkedArray, plus_s: int = 0) -> pa.ChunkedArray:
    return pc.add(microseconds, plus_s * _SECOND_US).cast(pa.timestamp("us", "UTC"))


def _counted(parts: Iterator[pa.Table], keys: list[str]) -> pa.Table:
    """Counts of parts, which have a column `count`, added up."""
    found = pa.concat_tables(list(parts)).group_by(keys).aggregate([("count", "sum")])
    return found.rename_columns([*keys, "count"])


def q0(task: Task) -> Iterator[pa.RecordBatch]:
    return batches(task, "bid", *_BID)


def q1(task: Task) -> Iterator[pa.RecordBatch]:
    for batch in q0(task):
        euros = pc.multiply(batch["price"].cast(pa.decimal128(19, 0)), pa.scalar(908, pa.decimal128(3, 0)))
        # 908 times the price, with the point three digits to the left.
        moved = pa.Array.from_buffers(pa.decimal128(23, 3), len(euros), euros.buffers(), offset=euros.offset)
        yield batch.set_column(2, "price", moved)


def q2(task: Task) -> Iterator[pa.RecordBatch]:
    for batch in batches(task, "bid", "auction", "price"):
        auction = batch["auction"]
        yield batch.filter(pc.equal(pc.subtract(auction, pc.multiply(pc.divide(auction, 123), 123)), 0))


def q5(task: Task) -> Iterator[pa.RecordBatch]:
    """Counts of two seconds each, five of which make a window."""

    def panes() -> Iterator[pa.Table]:
        for batch in batches(task, "bid", "auction", "date_time"):
            pane = pa.table({"auction": batch["auction"], "pane": _window(batch["date_time"], 2)})
            counts = pane.group_by(["auction", "pane"]).aggregate([([], "count_all")])
            yield counts.rename_columns(["auction", "pane", "count"])

    counted = _counted(panes(), ["auction", "pane"])

    def shifted() -> Iterator[pa.Table]:
        for index in range(5):
            start = pc.subtract(counted["pane"], index * 2 * _SECOND_US)
            yield pa.table({"auction": counted["auction"], "start": start, "count": counted["count"]})

    windows = _counted(shifted(), ["auction", "start"])
    highest = windows.group_by("start").aggregate([("count", "max")])
    hot = windows.join(highest, ["start", "count"], ["start", "count_max"], "left semi")
    yield from pa.table(
        {
            "auction": hot["auction"],
            "num": hot["count"],
            "window_start": _time(hot["start"]),
            "window_end": _time(hot["start"], 10),
        }
    ).to_batches()


def q7(task: Task) -> Iterator[pa.RecordBatch]:
    """The candidates of each batch, and of those the best of each window."""
    kept = []
    for batch in q0(task):
        bids = pa.Table.from_batches([batch]).append_column("start", _window(batch["date_time"]))
        kept.append(_highest(bids))
    yield from _highest(pa.concat_tables(kept)).drop_columns("start").to_batches()


def _highest(bids: pa.Table) -> pa.Table:
    best = bids.group_by("start").aggregate([("price", "max")])
    places = pc.index_in(bids["start"], best["start"])
    return bids.filter(pc.equal(bids["price"], best["price_max"].take(places)))


def q8(task: Task) -> Iterator[pa.RecordBatch]:
    people, auctions = (
        table_of(task, "person", "id", "name", "date_time"),
        table_of(task, "auction", "seller", "date_time"),
    )
    newcomers = (
        people.set_column(2, "start", _window(people["date_time"])).group_by(["id", "name", "start"]).aggregate([])
    )
    sellers = (
        auctions.set_column(1, "start", _window(auctions["date_time"])).group_by(["seller", "start"]).aggregate([])
    )
    found = newcomers.join(sellers, ["id", "start"], ["seller", "start"], "left semi")
    yield from pa.table({"id": found["id"], "name": found["name"], "window_start": _time(found["start"])}).to_batches()


def q11(task: Task) -> Iterator[pa.RecordBatch]:
    bids = table_of(task, "bid", "bidder", "date_time").sort_by([("bidder", "ascending"), ("date_time", "ascending")])
    bidder, moment = (bids[name].combine_chunks() for name in ("bidder", "date_time"))
    moment = moment.cast(pa.int64())
    is_other = pc.not_equal(bidder[1:], bidder[:-1])
    is_first = pc.or_(is_other, pc.greater_equal(pc.subtract(moment[1:], moment[:-1]), 10 * _SECOND_US))
    starts = pa.concat_arrays([pa.array([0]), pc.add(pc.indices_nonzero(is_first).cast(pa.int64()), 1)])
    ends = pa.concat_arrays([starts[1:], pa.array([len(moment)])])
    yield pa.record_batch(
        {
            "bidder": bidder.take(starts),
            "bid_count": pc.subtract(ends, starts),
            "start_time": _time(moment.take(starts)),
            "end_time": _time(moment.take(pc.subtract(ends, 1)), 10),
        }
    )


def q12e(task: Task) -> Iterator[pa.RecordBatch]:
    def parts() -> Iterator[pa.Table]:
        for batch in batches(task, "bid", "bidder", "date_time"):
            part = pa.table({"bidder": batch["bidder"], "start": _window(batch["date_time"])})
            counts = part.group_by(["bidder", "start"]).aggregate([([], "count_all")])
            yield counts.rename_columns(["bidder", "start", "count"])

    found = _counted(parts(), ["bidder", "start"])
    times = {"start_time": _time(found["start"]), "end_time": _time(found["start"], 10)}
    yield from pa.table({"bidder": found["bidder"], "bid_count": found["count"], **times}).to_batches()


def q17(task: Task) -> Iterator[pa.RecordBatch]:
    day_us = 86_400 * _SECOND_US
    keys = ["auction", "day"]
    sums = ["total_bids", "rank1_bids", "rank2_bids", "rank3_bids", "sum_price"]
    aggregates = [*((name, "sum") for name in sums), ("min_price", "min"), ("max_price", "max")]
    columns = [*keys, *(name for name, _ in aggregates)]

    def parts() -> Iterator[pa.Table]:
        for batch in batches(task, "bid", "auction", "price", "date_time"):
            price, ones = batch["price"], pa.repeat(1, batch.num_rows)
            low, high = pc.less(price, 10_000).cast(pa.int64()), pc.greater_equal(price, 1_000_000).cast(pa.int64())
            ranks = [ones, low, pc.subtract(pc.subtract(ones, low), high), high]
            day = pc.divide(batch["date_time"].cast(pa.int64()), day_us)
            part = pa.table([batch["auction"], day, *ranks, price, price, price], names=columns)
            yield part.group_by(keys).aggregate(aggregates).rename_columns(columns)

    found = pa.concat_tables(list(parts())).group_by(keys).aggregate(aggregates).rename_columns(columns)
    day = pc.strftime(pc.multiply(found["day"], day_us).cast(pa.timestamp("us")), format="%Y-%m-%d")
    mean = pc.divide(found["sum_price"].cast(pa.float64()), found["total_bids"].cast(pa.float64()))
    yield from found.set_column(1, "day", day).append_column("avg_price", mean).to_batches()


def q18(task: Task) -> Iterator[pa.RecordBatch]:
    """Rows come in the order of time, so that the last of a key is the one with the greatest number."""
    bids = table_of(task, "bid")
    keys = bids.select(["bidder", "auction"]).append_column("number", pa.arange(0, len(bids)))
    last = keys.group_by(["bidder", "auction"]).aggregate([("number", "max")])
    yield from bids.take(last["number_max"]).to_batches()


QUERIES: Mapping[str, Callable[[Task], Iterator[pa.RecordBatch]]] = {
    query.__name__: query for query in (q0, q1, q2, q5, q7, q8, q11, q12e, q17, q18)
}


def run(task: Task) -> None:
    """Read, compute and write, one batch after the other."""
    folder = Path(task.answer)
    folder.mkdir(parents=True)
    writer: pq.ParquetWriter | None = None
    for batch in QUERIES[task.case](task):
        writer = writer or pq.ParquetWriter(folder / "part-00000.parquet", batch.schema, compression=COMPRESSION)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    pa.set_cpu_count(task.cores)
    start = time.perf_counter()
    run(task)
    job_s = time.perf_counter() - start
    Timing(job_s=job_s, epochs=1, versions={"pyarrow": pa.__version__}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
