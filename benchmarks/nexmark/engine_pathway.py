"""Pathway over CSV files, with persistence and two threads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from .tasks import PARALLELISM, Task, Timing

# Read when pathway is imported.
os.environ.setdefault("PATHWAY_THREADS", str(PARALLELISM))

import pathway as pw

TASK = Task.read(Path(sys.argv[1]))
TEN_SECONDS = timedelta(seconds=10)
TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
COLUMNS: dict[str, dict[str, type]] = {
    "bid": {"auction": int, "bidder": int, "price": int, "channel": str, "url": str, "date_time": str, "extra": str},
    "auction": {"seller": int, "date_time": str},
    "person": {"person_id": int, "name": str, "date_time": str},
}


def source_folder(name: str) -> str:
    """Pathway keeps the name `id` for itself: of people a copy is read in which the column has another."""
    if name != "person":
        return f"{TASK.data}/{name}"
    folder = Path(TASK.scratch) / name
    folder.mkdir()
    for file in TASK.files(name):
        head, line_end, rows = Path(file).read_text().partition("\n")
        (folder / Path(file).name).write_text(head.replace('"id"', '"person_id"') + line_end + rows)
    return str(folder)


def table(name: str, *, is_timed: bool = True) -> Any:
    schema = pw.schema_from_types(**COLUMNS[name])
    rows = pw.io.csv.read(source_folder(name), schema=schema, mode="static", name=name)
    return rows.with_columns(date_time=pw.this.date_time.dt.strptime(TIME_FORMAT)) if is_timed else rows


def q0() -> Any:
    return table("bid", is_timed=False).select(
        pw.this.auction, pw.this.bidder, pw.this.price, pw.this.date_time, pw.this.extra
    )


def q1() -> Any:
    return q0().with_columns(price=pw.this.price * 908 / 1000)


def q2() -> Any:
    bids = table("bid", is_timed=False)
    return bids.filter(pw.this.auction % 123 == 0).select(pw.this.auction, pw.this.price)


def q5() -> Any:
    bids = table("bid")
    window = pw.temporal.sliding(duration=TEN_SECONDS, hop=timedelta(seconds=2))
    counts = bids.windowby(bids.date_time, window=window, instance=bids.auction).reduce(
        auction=pw.this._pw_instance,
        num=pw.reducers.count(),
        window_start=pw.this._pw_window_start,
        window_end=pw.this._pw_window_end,
    )
    best = counts.groupby(counts.window_start).reduce(counts.window_start, most=pw.reducers.max(counts.num))
    return counts.join(best, counts.window_start == best.window_start, counts.num == best.most).select(
        counts.auction, counts.num, counts.window_start, counts.window_end
    )


def q7() -> Any:
    bids = table("bid")
    best = bids.windowby(bids.date_time, window=pw.temporal.tumbling(duration=TEN_SECONDS)).reduce(
        row=pw.reducers.argmax(pw.this.price)
    )
    return bids.ix(best.row).select(pw.this.auction, pw.this.bidder, pw.this.price, pw.this.date_time, pw.this.extra)


def q8() -> Any:
    window = pw.temporal.tumbling(duration=TEN_SECONDS)
    people, auctions = table("person"), table("auction")
    newcomers = people.windowby(people.date_time, window=window, instance=people.person_id).reduce(
        person_id=pw.this._pw_instance, name=pw.reducers.any(pw.this.name), window_start=pw.this._pw_window_start
    )
    sellers = auctions.windowby(auctions.date_time, window=window, instance=auctions.seller).reduce(
        seller=pw.this._pw_instance, window_start=pw.this._pw_window_start
    )
    joined = newcomers.join(
        sellers, newcomers.person_id == sellers.seller, newcomers.window_start == sellers.window_start
    )
    return joined.select(newcomers.person_id, newcomers.name, newcomers.window_start)


def q11() -> Any:
    """To Pathway, too, a row just as far as the gap belongs to the session; times have milliseconds."""
    bids = table("bid")
    window = pw.temporal.session(max_gap=timedelta(milliseconds=9_999))
    sessions = bids.windowby(bids.date_time, window=window, instance=bids.bidder).reduce(
        bidder=pw.this._pw_instance,
        bid_count=pw.reducers.count(),
        start_time=pw.reducers.min(pw.this.date_time),
        last=pw.reducers.max(pw.this.date_time),
    )
    return sessions.select(pw.this.bidder, pw.this.bid_count, pw.this.start_time, end_time=pw.this.last + TEN_SECONDS)


def q12e() -> Any:
    bids = table("bid")
    window = pw.temporal.tumbling(duration=TEN_SECONDS)
    return bids.windowby(bids.date_time, window=window, instance=bids.bidder).reduce(
        bidder=pw.this._pw_instance,
        bid_count=pw.reducers.count(),
        start_time=pw.this._pw_window_start,
        end_time=pw.this._pw_window_end,
    )


def q17() -> Any:
    price = pw.this.price
    ranked = table("bid").select(
        pw.this.auction,
        price,
        day=pw.this.date_time.dt.strftime("%Y-%m-%d"),
        low=pw.cast(int, price < 10000),
        middle=pw.cast(int, (price >= 10000) & (price < 1000000)),
        high=pw.cast(int, price >= 1000000),
    )
    return ranked.groupby(pw.this.auction, pw.this.day).reduce(
        pw.this.auction,
        pw.this.day,
        total_bids=pw.reducers.count(),
        rank1_bids=pw.reducers.sum(pw.this.low),
        rank2_bids=pw.reducers.sum(pw.this.middle),
        rank3_bids=pw.reducers.sum(pw.this.high),
        min_price=pw.reducers.min(price),
        max_price=pw.reducers.max(price),
        avg_price=pw.reducers.avg(price),
        sum_price=pw.reducers.sum(price),
    )


def q18() -> Any:
    bids = table("bid")
    last = bids.groupby(bids.bidder, bids.auction).reduce(row=pw.reducers.argmax(bids.date_time))
    return bids.ix(last.row).select(
        pw.this.auction, pw.this.bidder, pw.this.price, pw.this.channel, pw.this.url, pw.this.date_time, pw.this.extra
    )


QUERIES: dict[str, Callable[[], Any]] = {
    query.__name__: query for query in (q0, q1, q2, q5, q7, q8, q11, q12e, q17, q18)
}


def main() -> None:
    Path(TASK.answer).mkdir()
    pw.io.csv.write(QUERIES[TASK.case](), f"{TASK.answer}/answer.csv")
    kept = pw.persistence.Config(pw.persistence.Backend.filesystem(f"{TASK.scratch}/persistence"))
    start = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=kept)
    job_s = time.perf_counter() - start
    Timing(job_s=job_s, epochs=1, answer="csv_changes", versions={"pathway": pw.__version__}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
