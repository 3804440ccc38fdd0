"""Timers by key, in a state table: which keys to look at when time has come this far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import ArroyoSchema, ExpiringTimeKeyState
from arroyo_std.aggregates.groups import Groups
from arroyo_std.large_rows import merge_groups

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: The time of a timer; a key of the operator cannot have this name.
TIMER_AT = "_timer_at"
#: The time of a key that has no timer: after all times.
NO_TIMER = int(np.iinfo(np.int64).max)
_TIME_TYPE = pa.timestamp("us", tz="UTC")


def timer_schema(key_fields: Sequence[pa.Field]) -> ArroyoSchema:
    """The columns of a table of timers."""
    keys = tuple(field.name for field in key_fields)
    return ArroyoSchema(pa.schema([*key_fields, pa.field(TIMER_AT, _TIME_TYPE)]), TIMER_AT, keys)


class KeyTimers:
    """Sets timers, and takes out those that are due.

    The operator keeps the time of each key's timer with its other state. Times are rounded down to a grid, so that
    few times have many keys; a timer may be early, never late. A key whose timer was moved forward has its former
    one too.
    """

    def __init__(self, view: ExpiringTimeKeyState, schema: ArroyoSchema, *, grid_us: int) -> None:
        self._view = view
        self._schema = schema
        self._keys = schema.key_columns or ()
        self._grid_us = max(grid_us, 1)

    def schedule(self, keys: Sequence[pa.Array], *, due_us: Times, current_us: Times, is_wanted: Mask) -> Times:
        """See to it that every key that is wanted has a timer not later than it is due.

        `current_us` are the timers that the keys have, `NO_TIMER` for none. Returns those they have now.
        """
        wanted_us = np.where(is_wanted, due_us // self._grid_us * self._grid_us, NO_TIMER)
        is_new = wanted_us < current_us
        if is_new.any():
            places = pa.array(np.flatnonzero(is_new))
            times = pa.array(wanted_us[is_new], pa.int64()).cast(_TIME_TYPE)
            columns = [*(key.take(places) for key in keys), times]
            self._view.insert_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema.schema))
        timers: Times = np.minimum(wanted_us, current_us)
        return timers

    def is_due(self, until_us: int) -> bool:
        earliest_us = self._view.get_min_time()
        return earliest_us is not None and earliest_us <= until_us

    def is_empty(self) -> bool:
        """Whether no key has a timer."""
        return self._view.get_min_time() is None

    def take_due(self, until_us: int) -> Iterator[pa.RecordBatch]:
        """Remove the timers up to this time, and return each of their keys once, in as few batches as can hold them."""
        return merge_groups(self._view.take_parts_before(until_us + 1), self._keys, self._distinct)

    def _distinct(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = Groups.of_columns([rows.column(key) for key in self._keys], rows.num_rows)
        return rows if groups.count == rows.num_rows else rows.take(pa.array(groups.first_rows()))
