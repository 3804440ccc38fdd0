"""The dataflows of Bytewax: `benchmarks.nexmark.bytewax_flows:flow('task.json')` for `python -m bytewax.run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow.parquet as pq
from bytewax.connectors.files import DirSink
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

from .tasks import Task

Row = tuple[Any, ...]
BATCH_ROWS = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEN_SECONDS = timedelta(seconds=10)
#: To Bytewax a row just as far as the gap belongs to the session; bids come at multiples of 100 us.
GAP = timedelta(microseconds=9_999_950)
#: Both partitions advance about alike. The clock also moves with the clock on the wall, which this leaves time for.
WAIT = timedelta(seconds=60)
_BID = ("auction", "bidder", "price", "date_time", "extra")
#: How many bids, the first and the last.
Session = tuple[int, datetime, datetime]
#: How many bids, of each rank, the least and the highest price, and the sum.
Day = tuple[int, int, int, int, int | None, int | None, int]


class Partition(StatefulSourcePartition[Row, int]):
    """Every other batch of a table, so that the partitions keep step; the state is how many have been read."""

    def __init__(self, files: list[str], columns: tuple[str, ...], index: int, count: int, resumed: int | None) -> None:
        self._next = resumed or 0
        self._batches = islice(_batches(files, columns), index + self._next * count, None, count)

    def next_batch(self) -> list[Row]:
        rows = next(self._batches)
        self._next += 1
        return rows

    def snapshot(self) -> int:
        return self._next


def _batches(files: list[str], columns: tuple[str, ...]) -> Iterator[list[Row]]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=BATCH_ROWS, columns=list(columns) or None):
            yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


class Table(FixedPartitionedSource[Row, int]):
    """The rows of a table, as tuples of some columns."""

    def __init__(self, task: Task, table: str, *columns: str) -> None:
        self._files, self._columns, self._count = task.files(table), columns, task.cores

    def list_parts(self) -> list[str]:
        return [str(index) for index in range(self._count)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Partition:
        return Partition(self._files, self._columns, int(for_part), self._count, resume_state)


def _line(*values: object) -> str:
    return ",".join(map(str, values))


def _clock(column: int) -> win.EventClock[Row, Any]:
    """By a column; nothing wakes up for the end of a window, for these times are long past."""
    return win.EventClock(
        ts_getter=lambda row: row[column], wait_for_system_duration=WAIT, to_system_utc=lambda moment: None
    )


def _tumbling(length: timedelta = TEN_SECONDS) -> win.TumblingWindower:
    return win.TumblingWindower(length=length, align_to=EPOCH)


def _count_folder(count: int, _row: Row) -> int:
    return count + 1


def _counted(rows: Stream[Any], column: int, windower: win.Windower[Any]) -> Stream[tuple[str, tuple[int, int]]]:
    """Rows by key and window."""
    counts = win.fold_window(
        "counts", rows, _clock(column), windower, int, _count_folder, lambda left, right: left + right, ordered=False
    )
    return counts.down


def q0(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", *_BID))
    return op.map("lines", bids, lambda row: (str(row[0]), _line(*row)))


def q1(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", *_BID))

    def line(row: Row) -> tuple[str, str]:
        auction, bidder, price, moment, extra = row
        euros, rest = divmod(price * 908, 1000)
        return str(auction), _line(auction, bidder, f"{euros}.{rest:03}", moment, extra)

    return op.map("lines", bids, line)


def q2(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", "auction", "price"))
    chosen = op.filter("chosen", bids, lambda row: row[0] % 123 == 0)
    return op.map("lines", chosen, lambda row: (str(row[0]), _line(*row)))


def q5(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", "auction", "date_time"))
    return op.map("lines", hot_items(bids), lambda item: (item[0], _line(*item[1])))


def hot_items(bids: Stream[Row]) -> Stream[tuple[str, Row]]:
    """Of rows with an auction and a time: auction, count, start and end, by window."""
    keyed = op.key_on("by_auction", bids, lambda row: str(row[0]))
    slide = timedelta(seconds=2)
    counts = _counted(keyed, 1, win.SlidingWindower(length=TEN_SECONDS, offset=slide, align_to=EPOCH))
    by_window = op.map("by_window", counts, lambda item: (str(item[1][0]), (item[1][1], item[0])))

    def keep(best: list[tuple[int, str]], item: tuple[int, str]) -> list[tuple[int, str]]:
        if not best or item[0] > best[0][0]:
            return [item]
        return [*best, item] if item[0] == best[0][0] else best

    hot = op.fold_final("hot", by_window, list, keep)

    def rows(item: tuple[str, list[tuple[int, str]]]) -> list[tuple[str, Row]]:
        window, best = item
        start = EPOCH + int(window) * slide
        return [(window, (auction, count, start, start + TEN_SECONDS)) for count, auction in best]

    return op.flat_map("rows", hot, rows)


def q7(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", *_BID))
    keyed = op.key_on("together", bids, lambda row: "all")

    def keep(best: list[Row], row: Row) -> list[Row]:
        if not best or row[2] > best[0][2]:
            return [row]
        return [*best, row] if row[2] == best[0][2] else best

    highest = win.fold_window(
        "highest", keyed, _clock(3), _tumbling(), list, keep, lambda left, right: left + right, ordered=False
    )
    return op.flat_map("lines", highest.down, lambda item: [(item[0], _line(*row)) for row in item[1][1]])


def q8(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    people = op.input("people", flow, Table(task, "person", "id", "name", "date_time"))
    auctions = op.input("auctions", flow, Table(task, "auction", "seller", "date_time"))
    joined = win.join_window(
        "joined",
        _clock(-1),
        _tumbling(),
        op.key_on("by_id", people, lambda row: str(row[0])),
        op.key_on("by_seller", auctions, lambda row: str(row[0])),
        insert_mode="first",
        emit_mode="final",
        ordered=False,
    )

    def lines(item: tuple[str, tuple[int, tuple[Row | None, Row | None]]]) -> list[tuple[str, str]]:
        key, (window, (person, auction)) = item
        if person is None or auction is None:
            return []
        return [(key, _line(person[0], person[1], EPOCH + window * TEN_SECONDS))]

    return op.flat_map("lines", joined.down, lines)


def q11(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", "bidder", "date_time"))
    keyed = op.key_on("by_bidder", bids, lambda row: str(row[0]))

    def fold(state: Session | None, row: Row) -> Session:
        moment = row[1]
        return (1, moment, moment) if state is None else (state[0] + 1, min(state[1], moment), max(state[2], moment))

    def merge(left: Session | None, right: Session | None) -> Session | None:
        if left is None or right is None:
            return left or right
        return left[0] + right[0], min(left[1], right[1]), max(left[2], right[2])

    sessions = win.fold_window(
        "sessions", keyed, _clock(1), win.SessionWindower(gap=GAP), lambda: None, fold, merge, ordered=False
    )

    def line(item: tuple[str, tuple[int, Session]]) -> tuple[str, str]:
        bidder, (_, (count, first, last)) = item
        return bidder, _line(bidder, count, first, last + TEN_SECONDS)

    return op.map("lines", sessions.down, line)


def q12e(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", "bidder", "date_time"))
    counts = _counted(op.key_on("by_bidder", bids, lambda row: str(row[0])), 1, _tumbling())

    def line(item: tuple[str, tuple[int, int]]) -> tuple[str, str]:
        bidder, (window, count) = item
        start = EPOCH + window * TEN_SECONDS
        return bidder, _line(bidder, count, start, start + TEN_SECONDS)

    return op.map("lines", counts, line)


def q17(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid", "auction", "price", "date_time"))
    keyed = op.key_on("by_auction", bids, lambda row: str(row[0]))

    def fold(state: Day, row: Row) -> Day:
        price = row[1]
        total, low, middle, high, least, most, added = state
        return (
            total + 1,
            low + (price < 10000),
            middle + (10000 <= price < 1000000),
            high + (price >= 1000000),
            price if least is None else min(least, price),
            price if most is None else max(most, price),
            added + price,
        )

    def merge(left: Day, right: Day) -> Day:
        raise NotImplementedError("tumbling windows do not merge")

    days = win.fold_window(
        "days",
        keyed,
        _clock(2),
        _tumbling(timedelta(days=1)),
        lambda: (0, 0, 0, 0, None, None, 0),
        fold,
        merge,
        ordered=False,
    )

    def line(item: tuple[str, tuple[int, Day]]) -> tuple[str, str]:
        auction, (window, (total, low, middle, high, least, most, added)) = item
        day = f"{EPOCH + timedelta(days=window):%Y-%m-%d}"
        return auction, _line(auction, day, total, low, middle, high, least, most, added / total, added)

    return op.map("lines", days.down, line)


def q18(flow: Dataflow, task: Task) -> Stream[tuple[str, str]]:
    bids = op.input("bids", flow, Table(task, "bid"))
    keyed = op.key_on("by_bidder_and_auction", bids, lambda row: f"{row[1]} {row[0]}")
    last = op.reduce_final("last", keyed, lambda left, right: right if right[5] >= left[5] else left)
    return op.map("lines", last, lambda item: (item[0], _line(*item[1])))


QUERIES: dict[str, Callable[[Dataflow, Task], Stream[tuple[str, str]]]] = {
    query.__name__: query for query in (q0, q1, q2, q5, q7, q8, q11, q12e, q17, q18)
}


def flow(task_file: str) -> Dataflow:
    task = Task.read(Path(task_file))
    made = Dataflow(f"bench_{task.case}")
    op.output("files", QUERIES[task.case](made, task), DirSink(Path(task.answer), task.cores))
    return made
