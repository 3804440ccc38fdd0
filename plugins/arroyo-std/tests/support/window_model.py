"""A slow and obvious model of windows, and random streams to hold the operators against it.

A stream is a list of steps: rows, watermarks, and ends of epochs after which the operator is made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark

TIME = pa.timestamp("us", tz="UTC")
STREAM = ArroyoSchema(pa.schema({"k": pa.string(), "v": pa.int64(), "at": TIME}), "at")

AGGREGATES = [
    {"function": "count", "as": "n"},
    {"function": "sum", "column": "v", "as": "total"},
    {"function": "max", "column": "v", "as": "top"},
    {"function": "last", "column": "v", "as": "newest"},
    {"function": "count_distinct", "column": "v", "as": "kinds"},
    {"function": "count", "filter": "v > 0", "as": "positive"},
]


@dataclass(frozen=True)
class Row:
    key: str | None
    value: int | None
    time_us: int | None


@dataclass(frozen=True)
class Rows:
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Mark:
    """The watermark moves; it never goes back, so a lower one is as good as none."""

    time_us: int


@dataclass(frozen=True)
class EndOfEpoch:
    is_restored: bool


Step = Rows | Mark | EndOfEpoch

KEYS = st.none() | st.sampled_from(["a", "b"])
TIMES = st.integers(-30, 60)


def rows_of(times: st.SearchStrategy[int] = TIMES) -> st.SearchStrategy[Rows]:
    row = st.builds(Row, KEYS, st.none() | st.integers(-3, 3), times | st.sampled_from([None, -10, 0, 10, 20]))
    return st.lists(row, max_size=6).map(lambda rows: Rows(tuple(rows)))


def streams() -> st.SearchStrategy[list[Step]]:
    step: st.SearchStrategy[Step] = st.one_of(
        rows_of(), rows_of(), st.builds(Mark, st.integers(-40, 70)), st.builds(EndOfEpoch, st.booleans())
    )
    return st.lists(step, max_size=14)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.value for row in rows], pa.int64()),
            pa.array([row.time_us for row in rows], pa.int64()).cast(TIME),
        ],
        schema=STREAM.schema,
    )


def aggregate(rows: Sequence[Row]) -> dict[str, Any]:
    """The aggregates above of rows in the order of their arrival."""
    values = [row.value for row in rows if row.value is not None]
    newest = max(range(len(rows)), key=lambda place: (rows[place].time_us, place))
    return {
        "n": len(rows),
        "total": sum(values) if values else None,
        "top": max(values) if values else None,
        "newest": rows[newest].value,
        "kinds": len(set(values)),
        "positive": sum(value > 0 for value in values),
    }


def feed(harness: Any, steps: Sequence[Step], *, then_end: bool = True, widths: Sequence[int] = ()) -> None:
    """Drive an operator under test through a stream, and to its end; each epoch at the next parallelism of `widths`."""
    later = itertools.cycle([*widths[1:], *widths[:1]])
    for step in steps:
        if isinstance(step, Rows):
            if step.rows:
                harness.process(batch_of(step.rows))
        elif isinstance(step, Mark):
            harness.watermark(Watermark.event_time(step.time_us))
        else:
            harness.checkpoint()
            if step.is_restored:
                harness.restore(*itertools.islice(later, 1))
    if then_end:
        harness.end_of_data()
        harness.checkpoint()


def check_order(harness: Any) -> None:
    """No row comes after a watermark that is later than the row."""
    watermark_us = None
    for event in harness.events:
        if isinstance(event, Watermark):
            watermark_us = event.event_time_us
        elif watermark_us is not None:
            assert event.column("window_time").cast(pa.int64()).to_numpy().min() >= watermark_us


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in a fixed order, with times as numbers."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(pa.int64()))
    return sorted(table.to_pylist(), key=lambda row: (row["window_end"], row["window_start"], str(row.get("k"))))
