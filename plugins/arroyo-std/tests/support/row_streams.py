"""Random streams of rows, watermarks and ends of epochs, and how to drive an operator through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark

TIME = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema({"k": pa.string(), "v": pa.int64(), "at": TIME})
STREAM = ArroyoSchema(COLUMNS, "at")

Row = dict[str, Any]


@dataclass(frozen=True)
class Batch:
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Mark:
    """The watermark moves; it never goes back, so a lower one is as good as none."""

    time_us: int


@dataclass(frozen=True)
class EndOfEpoch:
    """A checkpoint; with a parallelism all subtasks are made again from it."""

    parallelism: int | None


Step = Batch | Mark | EndOfEpoch

TIMES = st.integers(-20, 40)
ROWS = st.fixed_dictionaries(
    {
        "k": st.none() | st.sampled_from(["a", "b", "c"]),
        "v": st.none() | st.integers(-3, 3),
        "at": TIMES | st.sampled_from([-10, 0, 10, 20]),
    }
)


def streams(rows: st.SearchStrategy[Row] = ROWS, *, max_rows: int = 7) -> st.SearchStrategy[list[Step]]:
    batch = st.lists(rows, max_size=max_rows).map(lambda found: Batch(tuple(found)))
    step: st.SearchStrategy[Step] = st.one_of(
        batch,
        batch,
        st.builds(Mark, st.integers(-25, 50)),
        st.builds(EndOfEpoch, st.none() | st.integers(1, 3)),
    )
    return st.lists(step, max_size=14)


def batch_of(rows: Sequence[Row], schema: pa.Schema = COLUMNS) -> pa.RecordBatch:
    """Rows with times as numbers of microseconds."""
    arrays = [
        pa.array([row[field.name] for row in rows], pa.int64()).cast(field.type)
        if pa.types.is_timestamp(field.type)
        else pa.array([row[field.name] for row in rows], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def feed(harness: Any, steps: Sequence[Step], *, schema: pa.Schema = COLUMNS, then_end: bool = True) -> None:
    """Drive an operator under test through a stream, and to its end."""
    for step in steps:
        if isinstance(step, Batch):
            if step.rows:
                harness.process(batch_of(step.rows, schema))
        elif isinstance(step, Mark):
            harness.watermark(Watermark.event_time(step.time_us))
        else:
            harness.checkpoint()
            if step.parallelism is not None:
                harness.restore(step.parallelism)
    if then_end:
        harness.end_of_data()
        harness.checkpoint()


def timely(steps: Sequence[Step]) -> list[Row]:
    """The rows that are not behind the watermark when they come."""
    watermark = None
    rows: list[Row] = []
    for step in steps:
        if isinstance(step, Mark):
            watermark = step.time_us if watermark is None else max(step.time_us, watermark)
        if isinstance(step, Batch):
            rows += [row for row in step.rows if watermark is None or row["at"] >= watermark]
    return rows


def as_rows(table: pa.Table) -> list[Row]:
    """Rows in their order, with times as numbers."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(pa.int64()))
    found: list[Row] = table.to_pylist()
    return found


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows in a fixed order, for comparisons that do not depend on it."""
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def apply_updates(rows: Sequence[Row]) -> list[Row]:
    """What is left of an updating stream; fails if a row is taken back that is not there."""
    left: list[Row] = []
    for row in rows:
        values = {name: value for name, value in row.items() if name != "_updating_meta"}
        if row["_updating_meta"]["is_retract"]:
            assert values in left, f"{values} was taken back, and was not there"
            left.remove(values)
        else:
            left.append(values)
    return in_order(left)
