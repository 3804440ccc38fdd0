"""Sessions: intervals of rows of one key that are less than the gap apart, with their partial aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_std.aggregates.groups import Codes, Groups, Mask, order_by_code
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.windows.times import Times


@dataclass(frozen=True, slots=True)
class Sessions:
    """Some sessions: their keys, the times of their first and last rows, their partial aggregates."""

    keys: list[pa.Array]
    firsts_us: Times
    lasts_us: Times
    states: list[pa.Array]

    def __len__(self) -> int:
        return len(self.firsts_us)

    def take(self, rows: Codes) -> Sessions:
        places = pa.array(rows)
        return Sessions(
            [key.take(places) for key in self.keys],
            self.firsts_us[rows],
            self.lasts_us[rows],
            [state.take(places) for state in self.states],
        )

    def groups(self) -> Groups:
        """Sessions of one key."""
        return Groups.of_columns(self.keys, len(self))


def concat_sessions(parts: Sequence[Sessions]) -> Sessions:
    if len(parts) == 1:
        return parts[0]
    return Sessions(
        [pa.concat_arrays(columns) for columns in zip(*(part.keys for part in parts), strict=True)],
        np.concatenate([part.firsts_us for part in parts]),
        np.concatenate([part.lasts_us for part in parts]),
        [pa.concat_arrays(columns) for columns in zip(*(part.states for part in parts), strict=True)],
    )


def merge_sessions(sessions: Sessions, plan: AggregatePlan, *, gap_us: int) -> Sessions:
    """Sessions of one key that are less than the gap apart as one; sorted by time within a key."""
    codes = sessions.groups().codes
    order, starts = derive_sessions(codes, sessions.firsts_us, sessions.lasts_us, gap_us=gap_us)
    ordered = sessions.take(order)
    if starts.all():
        return ordered
    first = np.flatnonzero(starts)
    places = pa.array(first)
    return Sessions(
        [key.take(places) for key in ordered.keys],
        ordered.firsts_us[first],
        np.maximum.reduceat(ordered.lasts_us, first),
        plan.merge(ordered.states, Groups.of_sorted_starts(starts)),
    )


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
    if bool((times_us[:-1] <= times_us[1:]).all()):
        # Rows mostly come in the order of time; then one stable sort by code is enough.
        return order_by_code(codes, count)
    by_time = np.argsort(times_us, kind="stable")
    order: Codes = by_time[order_by_code(codes[by_time], count)]
    return order


def _running_max(codes: Codes, values: Times) -> Times:
    """The greatest value so far within each run of equal codes; codes ascend."""
    distinct, ranks = np.unique(values, return_inverse=True)
    # Ranks are small, so the code can be added above them, and one running maximum starts over at each code.
    raised = ranks + codes * len(distinct)
    greatest: Times = distinct[np.maximum.accumulate(raised) - codes * len(distinct)]
    return greatest
