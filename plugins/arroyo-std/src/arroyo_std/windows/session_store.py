"""`SessionStore`: the open sessions of every key in a table, and timers that tell when to look at a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.state import ExpiringTimeKeyView, LastKeyValueView
from arroyo_std.aggregates.groups import Groups
from arroyo_std.aggregates.lists import flatten, gather
from arroyo_std.timers import NO_TIMER, KeyTimers, timer_schema
from arroyo_std.windows.layout import WindowLayout
from arroyo_std.windows.sessions import Sessions, concat_sessions, merge_sessions
from arroyo_std.windows.times import Times

SESSIONS = "_sessions"
TIMER = "_timer_us"

#: Unmerged sessions in memory are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536
#: Timers lie on a grid of this part of the gap.
_TIMERS_PER_GAP = 32


class SessionLayout:
    """The columns of the two tables."""

    def __init__(self, layout: WindowLayout) -> None:
        state_fields = layout.plan.state_fields
        self.session_type = pa.struct(
            [pa.field("first_us", pa.int64()), pa.field("last_us", pa.int64()), *state_fields]
        )
        #: The open sessions of a key, and the time of its timer.
        self.sessions = ArroyoSchema(
            pa.schema(
                [*layout.key_fields, pa.field(SESSIONS, pa.list_(self.session_type)), pa.field(TIMER, pa.int64())]
            ),
            key_columns=layout.keys,
        )
        #: When to look at a key.
        self.timers = timer_schema(layout.key_fields)


class SessionStore:
    """Adds sessions, merges them with those of earlier epochs, and takes out those that have ended.

    A key has one row with all its open sessions, and a timer that is never later than the end of any of them.
    """

    def __init__(
        self,
        layout: WindowLayout,
        tables: SessionLayout,
        *,
        gap_us: int,
        sessions: LastKeyValueView,
        timers: ExpiringTimeKeyView,
    ) -> None:
        self._layout = layout
        self._tables = tables
        self._gap_us = gap_us
        self._sessions = sessions
        self._timers = KeyTimers(timers, tables.timers, grid_us=gap_us // _TIMERS_PER_GAP)
        self._pending: list[Sessions] = []
        self._pending_rows = 0
        self._merged_rows = 0

    def add(self, sessions: Sessions) -> None:
        self._pending.append(sessions)
        self._pending_rows += len(sessions)
        if self._pending_rows > 2 * self._merged_rows + MERGE_ROWS:
            self._pending = [self._merge(self._pending)]
            self._pending_rows = self._merged_rows = len(self._pending[0])

    def take_ended(self, until_us: int) -> Sessions | None:
        """Remove the sessions that end at `until_us` or before, and return them by end; None if there are none."""
        if not self._is_due(until_us):
            return None
        self.absorb()
        keys = self._timers.take_due(until_us)
        if keys is None:
            return None
        stored, rows = self._read(keys)
        has_ended = stored.lasts_us + self._gap_us <= until_us
        timers = rows.column(TIMER).to_numpy()
        self._write(
            rows,
            stored.take(np.flatnonzero(~has_ended)),
            old_timers=np.where(timers <= until_us, NO_TIMER, timers),
        )
        ended = stored.take(np.flatnonzero(has_ended))
        return ended.take(np.lexsort((ended.firsts_us, ended.lasts_us))) if len(ended) else None

    def absorb(self) -> None:
        """Merge what is in memory into the table, for a look at what has ended or for a checkpoint."""
        if not self._pending:
            return
        fresh = self._merge(self._pending)
        self._pending, self._pending_rows, self._merged_rows = [], 0, 0
        first = pa.array(fresh.groups().first_rows())
        keys = self._key_batch([key.take(first) for key in fresh.keys], len(first))
        is_found, rows = self._sessions.get(keys)
        timers = np.full(keys.num_rows, NO_TIMER, dtype=np.int64)
        timers[is_found] = rows.column(TIMER).to_numpy()
        self._write(keys, self._merge([self._flatten(rows), fresh]), old_timers=timers)

    def _is_due(self, until_us: int) -> bool:
        if any(len(each) and int(each.lasts_us.min()) + self._gap_us <= until_us for each in self._pending):
            return True
        return self._timers.is_due(until_us)

    def _merge(self, parts: Sequence[Sessions]) -> Sessions:
        return merge_sessions(concat_sessions(parts), self._layout.plan, gap_us=self._gap_us)

    def _read(self, keys: pa.RecordBatch) -> tuple[Sessions, pa.RecordBatch]:
        """The stored sessions of some keys, and the rows they are in."""
        _, rows = self._sessions.get(keys)
        return self._flatten(rows), rows

    def _flatten(self, rows: pa.RecordBatch) -> Sessions:
        parents, (structs,) = flatten([rows.column(SESSIONS)])
        firsts, lasts, *states = structs.flatten()
        places = pa.array(parents)
        keys = [rows.column(name).take(places) for name in self._layout.keys]
        return Sessions(keys, firsts.to_numpy(), lasts.to_numpy(), list(states))

    def _write(self, keys: pa.RecordBatch, sessions: Sessions, *, old_timers: Times) -> None:
        """Set the sessions of the keys to these, and delete keys that have none.

        `old_timers` are those that the keys have now.
        """
        if keys.num_rows == 0:
            return
        columns = [keys.column(name) for name in self._layout.keys]
        # Keys first, so that their numbers are those of the rows of `keys`.
        joined = [pa.concat_arrays([left, right]) for left, right in zip(columns, sessions.keys, strict=True)]
        everything = Groups.of_columns(joined, keys.num_rows + len(sessions))
        groups = Groups(everything.codes[keys.num_rows :], keys.num_rows, has_empty=True)
        earliest = np.full(keys.num_rows, NO_TIMER - self._gap_us, dtype=np.int64)
        np.minimum.at(earliest, groups.codes, sessions.lasts_us)
        is_open = groups.sizes() > 0
        timers = self._timers.schedule(
            columns, due_us=earliest + self._gap_us, current_us=old_timers, is_wanted=is_open
        )
        structs = pa.StructArray.from_arrays(
            [pa.array(sessions.firsts_us), pa.array(sessions.lasts_us), *sessions.states],
            fields=list(self._tables.session_type),
        )
        (lists,) = gather(groups, [structs])
        rows = pa.RecordBatch.from_arrays([*columns, lists, pa.array(timers)], schema=self._tables.sessions.schema)
        if is_open.all():
            self._sessions.upsert(rows)
        else:
            self._sessions.upsert(rows.filter(pa.array(is_open)))
            self._sessions.delete(rows.filter(pa.array(~is_open)))

    def _key_batch(self, columns: list[pa.Array], rows: int) -> pa.RecordBatch:
        """Keys to look up; with a column that is none, because without keys there would be no rows."""
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows, pa.int64())], names=[*self._layout.keys, TIMER])
