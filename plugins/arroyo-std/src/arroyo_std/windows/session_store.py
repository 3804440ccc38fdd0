"""`SessionStore`: the open sessions of every key in a table, and timers that tell when to look at a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArroyoSchema, ExpiringTimeKeyState, LastKeyValueState
from arroyo_std.aggregates.groups import Groups, Mask
from arroyo_std.aggregates.lists import flatten, gather
from arroyo_std.timers import NO_TIMER, KeyTimers, timer_schema
from arroyo_std.windows.layout import WindowLayout
from arroyo_std.windows.sessions import Sessions, concat_sessions, merge_sessions
from arroyo_std.windows.times import Times

SESSIONS = "_sessions"
TIMER = "_timer_us"

#: Unmerged sessions in memory are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536
#: Sessions of so many keys are looked at together: what that takes in memory is several times as large as they are.
SETTLED_KEYS = 65_536
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
        sessions: LastKeyValueState,
        timers: ExpiringTimeKeyState,
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
            self._set_pending(self._merge(self._pending))

    def take_ended(self, until_us: int) -> Iterator[Sessions]:
        """Remove the sessions that end at `until_us` or before; returns those of some keys at a time, by end."""
        if not self._is_due(until_us):
            return
        fresh = self._merge(self._pending) if self._pending else self._none()
        looked_at = self._timers.take_due(until_us)
        others = [looked_at.column(name) for name in self._layout.keys] if looked_at is not None else None
        joined = _concat(fresh.keys, others) if others else fresh.keys
        groups = Groups.of_columns(joined, len(fresh) + (looked_at.num_rows if looked_at is not None else 0))
        # Keys with a session in memory that ends, and those whose timer is due; all others may stay in memory.
        is_due = np.zeros(groups.count, dtype=np.bool_)
        is_due[groups.codes[: len(fresh)][fresh.lasts_us + self._gap_us <= until_us]] = True
        is_due[groups.codes[len(fresh) :]] = True
        is_chosen = is_due[groups.codes[: len(fresh)]]
        first = groups.first_rows()[is_due]
        self._set_pending(fresh.take(np.flatnonzero(~is_chosen)))
        keys = self._key_batch([key.take(pa.array(first)) for key in joined], len(first))
        chosen = fresh.take(np.flatnonzero(is_chosen))
        # For each chosen session the place of its key among `keys`.
        places = (np.cumsum(is_due) - 1)[groups.codes[: len(fresh)][is_chosen]]
        for start in range(0, keys.num_rows, SETTLED_KEYS):
            own = np.flatnonzero((places >= start) & (places < start + SETTLED_KEYS))
            ended = self._settle(keys.slice(start, SETTLED_KEYS), chosen.take(own), until_us=until_us)
            if ended is not None:
                yield ended

    def absorb(self) -> None:
        """Merge what is in memory into the table, for its checkpoint."""
        if not self._pending:
            return
        fresh = self._merge(self._pending)
        self._set_pending(None)
        first = pa.array(fresh.groups().first_rows())
        keys = self._key_batch([key.take(first) for key in fresh.keys], len(first))
        self._settle(keys, fresh, until_us=None)

    def _settle(self, keys: pa.RecordBatch, fresh: Sessions, *, until_us: int | None) -> Sessions | None:
        """Merge sessions into those that the table has of the keys; returns those that have ended by then."""
        is_stored, rows = self._sessions.get(keys)
        timers = np.full(keys.num_rows, NO_TIMER, dtype=np.int64)
        timers[is_stored] = rows.column(TIMER).to_numpy()
        sessions = self._merge([self._flatten(rows), fresh])
        if until_us is None:
            self._write(keys, sessions, is_stored=is_stored, timers=timers)
            return None
        # Timers up to then have been taken out.
        timers[timers <= until_us] = NO_TIMER
        has_ended = sessions.lasts_us + self._gap_us <= until_us
        self._write(keys, sessions.take(np.flatnonzero(~has_ended)), is_stored=is_stored, timers=timers)
        ended = sessions.take(np.flatnonzero(has_ended))
        return ended.take(np.lexsort((ended.firsts_us, ended.lasts_us))) if len(ended) else None

    def _is_due(self, until_us: int) -> bool:
        if any(len(each) and int(each.lasts_us.min()) + self._gap_us <= until_us for each in self._pending):
            return True
        return self._timers.is_due(until_us)

    def _merge(self, parts: Sequence[Sessions]) -> Sessions:
        return merge_sessions(concat_sessions(parts), self._layout.plan, gap_us=self._gap_us)

    def _flatten(self, rows: pa.RecordBatch) -> Sessions:
        parents, (structs,) = flatten([rows.column(SESSIONS)])
        firsts, lasts, *states = structs.flatten()
        places = pa.array(parents)
        keys = [rows.column(name).take(places) for name in self._layout.keys]
        return Sessions(keys, firsts.to_numpy(), lasts.to_numpy(), list(states))

    def _write(self, keys: pa.RecordBatch, sessions: Sessions, *, is_stored: Mask, timers: Times) -> None:
        """Set the sessions of the keys, which have `timers`, to these; delete stored keys that have none."""
        columns = [keys.column(name) for name in self._layout.keys]
        # Keys first, so that their numbers are those of the rows of `keys`.
        joined = _concat(columns, sessions.keys)
        everything = Groups.of_columns(joined, keys.num_rows + len(sessions))
        groups = Groups(everything.codes[keys.num_rows :], keys.num_rows, has_empty=True)
        earliest = np.full(keys.num_rows, NO_TIMER - self._gap_us, dtype=np.int64)
        np.minimum.at(earliest, groups.codes, sessions.lasts_us)
        is_open = groups.sizes() > 0
        timers = self._timers.schedule(columns, due_us=earliest + self._gap_us, current_us=timers, is_wanted=is_open)
        structs = pa.StructArray.from_arrays(
            [pa.array(sessions.firsts_us), pa.array(sessions.lasts_us), *sessions.states],
            fields=list(self._tables.session_type),
        )
        (lists,) = gather(groups, [structs])
        rows = pa.RecordBatch.from_arrays([*columns, lists, pa.array(timers)], schema=self._tables.sessions.schema)
        self._sessions.upsert(rows if is_open.all() else rows.filter(pa.array(is_open)))
        self._sessions.delete(rows.filter(pa.array(is_stored & ~is_open)))

    def _set_pending(self, sessions: Sessions | None) -> None:
        self._pending = [sessions] if sessions is not None and len(sessions) else []
        self._pending_rows = self._merged_rows = sum(len(part) for part in self._pending)

    def _none(self) -> Sessions:
        nothing = np.empty(0, dtype=np.int64)
        return Sessions(
            [pa.array([], field.type) for field in self._layout.key_fields],
            nothing,
            nothing,
            [pa.array([], field.type) for field in self._layout.plan.state_fields],
        )

    def _key_batch(self, columns: list[pa.Array], rows: int) -> pa.RecordBatch:
        """Keys to look up; with a column that is none, because without keys there would be no rows."""
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows, pa.int64())], names=[*self._layout.keys, TIMER])


def _concat(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> list[pa.Array]:
    return [pa.concat_arrays([first, second]) for first, second in zip(left, right, strict=True)]
