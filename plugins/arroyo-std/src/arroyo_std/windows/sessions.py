"""Sessions: intervals of rows of one key that are less than the gap apart, with their partial aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.state import take_parts
from arroyo_std import large_rows
from arroyo_std.aggregates.groups import Codes, Groups, Mask, order_by_code
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.large_rows import Rows, batches_of, concat, join_rows, shrink, take
from arroyo_std.windows.times import Times, is_ascending

#: The columns between the keys of a session and its states: the times of its first and of its last row.
TIME_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class Sessions:
    """Some sessions: rows of their keys, the times of their first and last rows, their partial aggregates."""

    rows: Rows
    key_count: int

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def keys(self) -> list[pa.Array]:
        return list(self.rows.columns[: self.key_count])

    @property
    def firsts_us(self) -> Times:
        return _numbers(self.rows.column(self.key_count))

    @property
    def lasts_us(self) -> Times:
        return _numbers(self.rows.column(self.key_count + 1))

    @property
    def states(self) -> list[pa.Array]:
        return list(self.rows.columns[self.key_count + TIME_COLUMNS :])

    def take(self, numbers: Codes) -> Sessions:
        return Sessions(shrink(take(self.rows, numbers)), self.key_count)

    def slice(self, start: int, length: int | None = None) -> Sessions:
        return Sessions(self.rows.slice(start, length), self.key_count)

    def groups(self) -> Groups:
        """Sessions of one key."""
        return Groups.of_columns(self.keys, len(self))


def concat_sessions(parts: Sequence[Sessions]) -> Sessions:
    if len(parts) == 1:
        return parts[0]
    return Sessions(join_rows([batch for part in parts for batch in batches_of(part.rows)]), parts[0].key_count)


def merge_sessions(sessions: Sessions, plan: AggregatePlan, *, gap_us: int) -> Sessions:
    """Sessions of one key that are less than the gap apart as one; sorted by time within a key.

    Raises `TooLargeError` if a batch cannot hold what a single one is made of.
    """
    codes = sessions.groups().codes
    order, starts = derive_sessions(codes, sessions.firsts_us, sessions.lasts_us, gap_us=gap_us)
    if isinstance(sessions.rows, pa.Table):
        parts = list(_merge_large(sessions, order, starts, plan))
        return Sessions(join_rows([part for part in parts if part.num_rows]), sessions.key_count)
    return _merge_sorted(sessions.take(order), starts, plan)


def _merge_sorted(ordered: Sessions, starts: Mask, plan: AggregatePlan) -> Sessions:
    """Rows of a batch as one session from each of the `starts` to the next."""
    if starts.all():
        return ordered
    first = np.flatnonzero(starts)
    places = pa.array(first)
    columns = [
        *(key.take(places) for key in ordered.keys),
        pa.array(ordered.firsts_us[first]),
        pa.array(np.maximum.reduceat(ordered.lasts_us, first)),
        *plan.merge(ordered.states, Groups.of_sorted_starts(starts)),
    ]
    return Sessions(pa.RecordBatch.from_arrays(columns, schema=ordered.rows.schema), ordered.key_count)


def _merge_large(sessions: Sessions, order: Codes, starts: Mask, plan: AggregatePlan) -> Iterator[pa.RecordBatch]:
    """As `_merge_sorted`, some rows after the other: a session may go on from one part to the next."""
    held: list[pa.RecordBatch] = []
    done = 0
    for part in take_parts(sessions.rows, order, large_rows.BATCH_BYTES // 2):
        batch = concat([*held, *part.to_batches()])
        own = starts[done - len(held) : done + part.num_rows].copy()
        # What is held is the first of a session, whatever it was made of.
        own[0] = True
        merged = _merge_sorted(Sessions(batch, sessions.key_count), own, plan).rows
        last = merged.num_rows - 1
        yield merged.slice(0, last)
        held = [merged.slice(last)]
        done += part.num_rows
    yield from held


def derive_sessions(codes: Codes, firsts_us: Times, lasts_us: Times, *, gap_us: int) -> tuple[Codes, Mask]:
    """An order by key and time, and where in it sessions begin.

    Each row is an interval. It belongs to the session before it if it begins less than the gap after the end of
    that session so far; exactly the gap after, it begins a new one.
    """
    # Single rows last for no time, so each is the latest of its key so far.
    are_points = lasts_us is firsts_us
    order = _order(codes, firsts_us)
    codes, firsts_us, lasts_us = codes[order], firsts_us[order], lasts_us[order]
    starts = np.ones(len(order), dtype=np.bool_)
    if len(order) > 1:
        ends_us = lasts_us if are_points else _running_max(codes, lasts_us)
        starts[1:] = (codes[1:] != codes[:-1]) | (firsts_us[1:] - ends_us[:-1] >= gap_us)
    return order, starts


def _order(codes: Codes, times_us: Times) -> Codes:
    """By code, and by time within one."""
    count = int(codes.max(initial=-1)) + 1
    if is_ascending(times_us):
        # Rows mostly come in the order of time; then one stable sort by code is enough.
        return order_by_code(codes, count)
    by_time = np.argsort(times_us, kind="stable")
    order: Codes = by_time[order_by_code(codes[by_time], count)]
    return order


def _running_max(codes: Codes, values: Times) -> Times:
    """The greatest value so far within each run of equal codes; codes ascend."""
    least = int(values.min())
    span = int(values.max()) - least + 1
    distinct = None
    if span * (int(codes[-1]) + 1) >= 2**63:
        # Ranks are smaller than values that are far apart.
        distinct, values = np.unique(values, return_inverse=True)
        least, span = 0, len(distinct)
    # The code is added above the value, so that one running maximum starts over at each code.
    bases = codes * span - least
    greatest: Times = np.maximum.accumulate(values + bases) - bases
    return greatest if distinct is None else distinct[greatest]


def _numbers(column: pa.Array | pa.ChunkedArray) -> Times:
    found: Times = column.to_numpy()
    return found
