"""What is soaked: pipelines that run without end, what must not grow in them, and what their sinks must have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from .job import Places

Nodes = list[dict[str, Any]]

#: Events per second while a source runs, which is a part of each epoch. State is bounded: so many keys, and windows
#: of one second.
RATE = 10_000
KEYS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One pipeline."""

    name: str
    execution: str
    interval_ms: int
    nodes: Callable[[Places], Nodes]
    #: How many of the rows that sources read are in the sinks, each once.
    counted_rows: Callable[[Places], int]
    #: How measures begin that are asked to be flat; all of them where there are none.
    judged: Sequence[str] = ("",)
    #: What all Python workers together may take at any time, in MiB.
    most_worker_mib: float = float("inf")
    #: Whether memory fills and empties with every epoch, so that its peaks count.
    has_peaks: bool = False
    #: Whether one worker has most of the work.
    is_uneven: bool = False

    def document(self, places: Places) -> dict[str, object]:
        return {
            "name": "soak",
            "parallelism": 2,
            "execution": self.execution,
            "checkpoint": {"url": str(places.state), "interval": f"{self.interval_ms}ms"},
            "nodes": self.nodes(places),
        }


def windows(places: Places) -> Nodes:
    """Keyed windows, running values and two exactly-once sinks."""
    return [
        {
            "id": "bids",
            "operator": "nexmark.source",
            "config": {"rate": RATE, "event_rate": RATE, "fields": ["auction", "price", "date_time"]},
        },
        {
            "id": "keyed",
            "operator": "std.project",
            "inputs": ["bids"],
            "config": {"expressions": {"key": f"auction % {KEYS}", "price": "price", "moment": "date_time"}},
        },
        {"id": "timed", "operator": "std.watermark", "inputs": ["keyed"], "config": {"column": "moment"}},
        {
            "id": "windows",
            "operator": "std.tumbling_window",
            "inputs": ["timed"],
            "config": {
                "size": "1s",
                "keys": ["key"],
                "aggregates": [
                    {"function": "count", "as": "bids"},
                    {"function": "max", "column": "price", "as": "highest"},
                ],
            },
        },
        {
            "id": "totals",
            "operator": "std.updating_aggregate",
            "inputs": ["timed"],
            "config": {
                "keys": ["key"],
                "aggregates": [
                    {"function": "count", "as": "bids"},
                    {"function": "sum", "column": "price", "as": "amount"},
                ],
            },
        },
        {
            "id": "window_files",
            "operator": "filesystem.sink",
            "inputs": ["windows"],
            "config": {"path": str(places.output / "windows"), "format": "parquet"},
        },
        {
            "id": "change_files",
            "operator": "filesystem.sink",
            "inputs": ["totals"],
            "config": {"path": str(places.output / "changes"), "format": "debezium_json"},
        },
    ]


def counted_changes(places: Places) -> int:
    """The rows that the running values have counted, by the changes that were committed."""
    files = f"{places.output}/changes/part-*.jsonl"
    query = f"""
        SELECT sum(coalesce(after.bids, 0) - coalesce(before.bids, 0))::bigint
        FROM read_json('{files}', format = 'newline_delimited',
            columns = {{before: 'STRUCT(bids BIGINT)', after: 'STRUCT(bids BIGINT)'}})
    """
    with duckdb.connect() as db:
        ((rows,),) = db.execute(query).fetchall()
    return int(rows or 0)


#: Of text in each row, so that what is on its way between workers, which is bounded by bytes, is not too many rows.
ROW_BYTES = 400


def slowly(places: Places, *, key: str, rows_per_second: int, is_busy: bool) -> Nodes:
    """A source that is as fast as it can, a shuffle, and a chain that is not."""
    wide = {"key": key, "counter": "counter", "emitted": "timestamp", "text": f"repeat('x', {ROW_BYTES})"}
    narrow = {name: name for name in ("key", "counter", "emitted", "passed")}
    return [
        {"id": "numbers", "operator": "impulse.source", "config": {}},
        {"id": "wide", "operator": "std.project", "inputs": ["numbers"], "config": {"expressions": wide}},
        {"id": "keyed", "operator": "std.key_by", "inputs": ["wide"], "config": {"keys": ["key"]}},
        {
            "id": "slow",
            "operator": "chaos.slow",
            "inputs": ["keyed"],
            "config": {"rows_per_second": rows_per_second, "is_busy": is_busy},
        },
        {"id": "narrow", "operator": "std.project", "inputs": ["slow"], "config": {"expressions": narrow}},
        {
            "id": "files",
            "operator": "filesystem.sink",
            "inputs": ["narrow"],
            "config": {"path": str(places.output / "rows"), "format": "parquet"},
        },
    ]


def slow_sink(places: Places) -> Nodes:
    return slowly(places, key="cast(counter % 64 as bigint)", rows_per_second=20_000, is_busy=False)


#: One row of so many has another key than the hot one.
COLD_EVERY = 50
HOT = -1


def hot_key(places: Places) -> Nodes:
    key = f"case when counter % {COLD_EVERY} = 0 then cast(counter % 64 as bigint) else cast({HOT} as bigint) end"
    return slowly(places, key=key, rows_per_second=100_000, is_busy=True)


def different_counters(places: Places) -> int:
    with duckdb.connect() as db:
        ((rows, different),) = db.execute(
            f"SELECT count(*), count(DISTINCT counter) FROM '{places.output}/rows/part-*.parquet'"
        ).fetchall()
    return int(different) if rows == different else int(different - rows)


def lateness(places: Places) -> str:
    """How long rows of other keys than the hot one were on their way."""
    with duckdb.connect() as db:
        ((rows, median, most),) = db.execute(
            f"""
            SELECT count(*), median(ms), max(ms) FROM (
                SELECT date_diff('millisecond', emitted, passed) AS ms
                FROM '{places.output}/rows/part-*.parquet' WHERE key <> {HOT})
            """
        ).fetchall()
    return (
        f"{rows:,} rows of other keys were on their way for {median / 1000:.1f} s (median), {most / 1000:.1f} s (most)"
    )


#: What live workers are asked: how long an epoch takes depends on what else the machine does, and in some dozens of
#: epochs there are not yet as many checkpoints as are kept.
_KEPT = ("memory: ", "descriptors: ", "number: ")
#: Without limits an epoch would bring gigabytes: two workers, with two mailboxes of at most 64 MiB each, and what
#: their operators hold.
_MOST_WORKER_MIB = 1000.0

WORKS = {
    work.name: work
    for work in (
        Work(name="windows", execution="jobs", interval_ms=200, nodes=windows, counted_rows=counted_changes),
        Work(
            name="live_windows",
            execution="live",
            interval_ms=200,
            nodes=windows,
            counted_rows=counted_changes,
            judged=_KEPT,
        ),
        Work(
            name="live_slow_sink",
            execution="live",
            interval_ms=10_000,
            nodes=slow_sink,
            counted_rows=different_counters,
            judged=_KEPT,
            most_worker_mib=_MOST_WORKER_MIB,
            has_peaks=True,
        ),
        Work(
            name="live_hot_key",
            execution="live",
            interval_ms=10_000,
            nodes=hot_key,
            counted_rows=different_counters,
            judged=_KEPT,
            most_worker_mib=_MOST_WORKER_MIB,
            has_peaks=True,
            is_uneven=True,
        ),
    )
}
