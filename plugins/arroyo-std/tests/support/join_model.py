"""Random streams for joins: rows of two sides, watermarks of each, and ends of epochs at any parallelism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark

TIME = pa.timestamp("us", tz="UTC")
LEFT = ArroyoSchema(pa.schema({"k": pa.string(), "a": pa.int64(), "at": TIME}), "at")
RIGHT = ArroyoSchema(pa.schema({"key": pa.string(), "a": pa.int64(), "seen": TIME}), "seen")
STREAMS = (LEFT, RIGHT)
ON = [{"left": "k", "right": "key"}]


@dataclass(frozen=True)
class Row:
    key: str | None
    value: int | None
    time_us: int | None
    is_retract: bool = False


@dataclass(frozen=True)
class Rows:
    side: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Mark:
    """The watermark of one side moves."""

    side: int
    time_us: int


@dataclass(frozen=True)
class EndOfEpoch:
    """A checkpoint, after which there are so many subtasks, made again; None goes on with the same ones."""

    parallelism: int | None


Step = Rows | Mark | EndOfEpoch

KEYS = st.none() | st.sampled_from(["a", "b", "c"])
SIDES = st.sampled_from([0, 1])


def steps(times: st.SearchStrategy[int] | None = None, *, max_size: int = 16) -> st.SearchStrategy[list[Step]]:
    """Rows of few keys, values and times, so that there are ties and equal rows; nulls in all; some before 1970."""
    times = st.integers(-20, 40) if times is None else times
    row = st.builds(Row, KEYS, st.none() | st.integers(0, 2), times | st.none())
    rows = st.builds(Rows, SIDES, st.lists(row, min_size=1, max_size=6).map(tuple))
    mark = st.builds(Mark, SIDES, st.integers(-30, 50))
    end = st.builds(EndOfEpoch, st.none() | st.integers(1, 3))
    return st.lists(st.one_of(rows, rows, rows, mark, mark, end), max_size=max_size)


def batch_of(side: int, rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.value for row in rows], pa.int64()),
            pa.array([row.time_us for row in rows], pa.int64()).cast(TIME),
        ],
        schema=STREAMS[side].schema,
    )


def feed(harness: Any, stream: Sequence[Step], make: Callable[[int, Sequence[Row]], pa.RecordBatch] = batch_of) -> None:
    """Drive all subtasks through a stream, and to its end."""
    for step in stream:
        if isinstance(step, Rows):
            harness.process(make(step.side, step.rows), step.side)
        elif isinstance(step, Mark):
            harness.watermark(Watermark.event_time(step.time_us), step.side)
        else:
            harness.checkpoint()
            if step.parallelism is not None:
                harness.restore(step.parallelism)
    harness.end_of_data()
    harness.checkpoint()


def arrivals(stream: Sequence[Step]) -> Iterator[tuple[int, Row, int | None]]:
    """Every row that has a time, with its side and the merged watermark at its arrival."""
    marks: list[int | None] = [None, None]
    for step in stream:
        if isinstance(step, Mark):
            before = marks[step.side]
            marks[step.side] = step.time_us if before is None else max(before, step.time_us)
        elif isinstance(step, Rows):
            known = [mark for mark in marks if mark is not None]
            merged = min(known) if len(known) == len(marks) else None
            yield from ((step.side, row, merged) for row in step.rows if row.time_us is not None)


def sides_on_time(stream: Sequence[Step], last_us: Callable[[int], int]) -> tuple[tuple[list[Row], list[Row]], int]:
    """The rows of each side that are not late, and how many are."""
    kept: tuple[list[Row], list[Row]] = ([], [])
    late = 0
    for side, row, watermark in arrivals(stream):
        assert row.time_us is not None
        if watermark is not None and last_us(row.time_us) < watermark:
            late += 1
        else:
            kept[side].append(row)
    return kept, late


def tuples_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in order, with times as numbers."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(pa.int64()))
    return [tuple(row.values()) for row in table.to_pylist()]


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows and how often each is there, with times as numbers."""
    return Counter(tuples_of(table))


def side_by_side(left: Row | None, right: Row | None) -> tuple[Any, ...]:
    """The columns of both sides, as they come out."""
    columns: list[Any] = []
    for row in (left, right):
        columns += [None, None, None] if row is None else [row.key, row.value, row.time_us]
    return tuple(columns)


def joined(
    left: Sequence[Row],
    right: Sequence[Row],
    *,
    kind: str,
    is_match: Callable[[Row, Row], bool],
    added: Callable[[Row | None, Row | None], tuple[Any, ...]],
) -> Counter[tuple[Any, ...]]:
    """Every pair of rows, tried one by one, and the rows that found nothing."""
    pairs = [(x, y) for x in left for y in right if x.key is not None and x.key == y.key and is_match(x, y)]
    found: list[tuple[Row | None, Row | None]] = list(pairs)
    if kind in ("left", "full"):
        matched = {id(x) for x, _ in pairs}
        found += [(x, None) for x in left if id(x) not in matched]
    if kind in ("right", "full"):
        matched = {id(y) for _, y in pairs}
        found += [(None, y) for y in right if id(y) not in matched]
    return Counter((*side_by_side(x, y), *added(x, y)) for x, y in found)


def many_rows(count: int = 600) -> tuple[list[Row], list[Row]]:
    """Rows of both sides, out of order, with keys that match in part; no two of one side are of one time."""
    left, right = (
        [Row(f"k{i * (7 + side) % (70 + 10 * side)}", i, i * 2011 % 4001) for i in range(count)] for side in (0, 1)
    )
    return left, right


def cut(rows: tuple[Sequence[Row], Sequence[Row]], size: int = 100) -> list[Step]:
    """Both sides in turn, in batches, and an epoch with another number of subtasks after every fourth."""
    found: list[Step] = []
    for number, start in enumerate(range(0, max(len(rows[0]), len(rows[1])), size)):
        found += [Rows(side, tuple(rows[side][start : start + size])) for side in (0, 1)]
        if number % 2:
            found.append(EndOfEpoch(1 + number % 3))
    return found


def duckdb_rows(query: str, rows: tuple[Sequence[Row], Sequence[Row]]) -> Counter[tuple[Any, ...]]:
    """What DuckDB makes of a query over `left_rows` and `right_rows`."""
    with duckdb.connect() as connection:
        for side, name in enumerate(("left_rows", "right_rows")):
            connection.register(name, pa.Table.from_batches([batch_of(side, rows[side])]))
        return Counter(connection.sql(query).fetchall())
