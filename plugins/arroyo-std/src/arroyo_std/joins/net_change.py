"""What a batch of additions and retractions comes to, given the rows that are there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arroyo_std.aggregates.groups import Codes
from arroyo_std.joins.layout import Mask, Rows
from arroyo_std.joins.pairs import Ranges


@dataclass(frozen=True, slots=True)
class NetChange:
    """Rows of the batch to add (some several times), stored rows to remove, and retractions of rows not there."""

    added: Rows
    removed: Rows
    unknown: int


def derive_net_change(codes: Codes, is_retract: Mask, stored_codes: Codes) -> NetChange:
    """Apply the rows of a batch one after the other, all at once.

    Rows with one code are the same row. A retraction takes away one of them, the latest; where there is none left
    at its turn it has no effect, and is counted.
    """
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_codes[1:] != sorted_codes[:-1]]))
    running = np.cumsum(np.where(is_retract[order], -1, 1))
    before = np.concatenate([[0], running[starts[1:] - 1]])
    totals = np.diff(np.concatenate([before, running[-1:]]))
    lowest = np.minimum.reduceat(running, starts) - before
    stored_order = np.argsort(stored_codes, kind="stable")
    stored_sorted = stored_codes[stored_order]
    ends = np.searchsorted(stored_sorted, sorted_codes[starts], side="right")
    stored = ends - np.searchsorted(stored_sorted, sorted_codes[starts], side="left")
    unknown = np.maximum(-(stored + lowest), 0)
    net = totals + unknown
    leaving = np.maximum(-net, 0)
    chosen = [places for _, places in Ranges(ends - leaving, leaving).chunks()]
    removed = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
    return NetChange(
        added=np.repeat(order[starts], np.maximum(net, 0)),
        removed=stored_order[removed],
        unknown=int(unknown.sum()),
    )
