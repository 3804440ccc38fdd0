"""`SessionStore`: the open sessions of every key in a table, and timers that tell when to look at a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArroyoSchema, DeleteKey, ExpiringTimeKeyState, KeyTimeState, LastKeyValueState
from arroyo_std import large_rows
from arroyo_std.aggregates.groups import Codes, Groups, Mask, order_by_code
from arroyo_std.aggregates.keys import free_name
from arroyo_std.aggregates.lists import flatten, gather, lengths_of
from arroyo_std.large_rows import Rows, as_batch, batches_of, cut_batches, join_rows, take_batches
from arroyo_std.timers import NO_TIMER, KeyTimers, timer_schema
from arroyo_std.windows.layout import WindowLayout
from arroyo_std.windows.pending_sessions import PendingSessions
from arroyo_std.windows.sessions import Sessions, concat_sessions, merge_sessions
from arroyo_std.windows.times import Times

SESSIONS = "_sessions"
TIMER = "_timer_us"

#: Sessions of so many keys are looked at together: what that takes in memory is several times as large as they are.
SETTLED_KEYS = 65_536
#: Timers lie on a grid of this part of the gap.
_TIMERS_PER_GAP = 32


class SessionLayout:
    """The columns of sessions, and of the tables."""

    def __init__(self, window: WindowLayout) -> None:
        self.window = window
        state_fields = window.plan.state_fields
        self.session_type = pa.struct(
            [pa.field("first_us", pa.int64()), pa.field("last_us", pa.int64()), *state_fields]
        )
        #: The open sessions of a key, and the time of its timer; none of a key whose sessions are in `apart`.
        self.sessions = ArroyoSchema(
            pa.schema(
                [*window.key_fields, pa.field(SESSIONS, pa.list_(self.session_type)), pa.field(TIMER, pa.int64())]
            ),
            key_columns=window.keys,
        )
        times = [pa.field(free_name(name, window.keys), pa.int64()) for name in ("_first_us", "_last_us")]
        #: Sessions, one in a row.
        self.apart = ArroyoSchema(pa.schema([*window.key_fields, *times, *state_fields]), key_columns=window.keys)
        #: When to look at a key.
        self.timers = timer_schema(window.key_fields)

    def make(self, keys: Sequence[pa.Array], firsts_us: Times, lasts_us: Times, states: Sequence[pa.Array]) -> Sessions:
        columns = [*keys, pa.array(firsts_us), pa.array(lasts_us), *states]
        return self.of_rows(pa.RecordBatch.from_arrays(columns, schema=self.apart.schema))

    def of_rows(self, rows: Rows) -> Sessions:
        return Sessions(rows, len(self.window.keys))

    def none(self) -> Sessions:
        return self.of_rows(pa.RecordBatch.from_pylist([], schema=self.apart.schema))

    def key_batch(self, columns: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
        """Keys to look up; with a column that is none, because without keys there would be no rows."""
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows, pa.int64())], names=[*self.window.keys, TIMER])


class SessionStore:
    """Adds sessions, merges them with those of earlier epochs, and takes out those that have ended.

    A key has one row with all its open sessions, and a timer that is never later than the end of any of them. Where
    a row could not hold them, they are in a table of their own.
    """

    def __init__(
        self,
        layout: SessionLayout,
        *,
        gap_us: int,
        sessions: LastKeyValueState,
        apart: KeyTimeState,
        timers: ExpiringTimeKeyState,
    ) -> None:
        self._layout = layout
        self._keys = layout.window.keys
        self._gap_us = gap_us
        self._sessions = sessions
        self._apart = apart
        self._timers = KeyTimers(timers, layout.timers, grid_us=gap_us // _TIMERS_PER_GAP)
        self._pending = PendingSessions(layout.window.plan, gap_us=gap_us)

    def add(self, sessions: Sessions) -> None:
        self._pending.add(sessions)

    def take_ended(self, until_us: int) -> Iterator[Sessions]:
        """Remove the sessions that end at `until_us` or before; returns those of some keys at a time, by end."""
        if not self._pending.is_due(until_us) and not self._timers.is_due(until_us):
            return
        fresh = self._pending.take_begun(until_us) or self._layout.none()
        if self._timers.is_empty():
            # No key has a row in the table.
            has_ended = fresh.lasts_us + self._gap_us <= until_us
            self._pending.put_back(fresh.take(np.flatnonzero(~has_ended)))
            if has_ended.any():
                yield _by_end(fresh.take(np.flatnonzero(has_ended)))
            return
        looked_at = list(self._timers.take_due(until_us))
        keys = self._all_keys(fresh, looked_at)
        groups = Groups.of_columns(keys.columns[:-1], keys.num_rows)
        codes = groups.codes[: len(fresh)]
        # Keys with a session in memory that ends, and those whose timer is due; all others may stay in memory.
        is_due = np.zeros(groups.count, dtype=np.bool_)
        is_due[codes[fresh.lasts_us + self._gap_us <= until_us]] = True
        is_due[groups.codes[len(fresh) :]] = True
        is_chosen = is_due[codes]
        self._pending.put_back(fresh.take(np.flatnonzero(~is_chosen)))
        chosen = fresh.take(np.flatnonzero(is_chosen))
        # For each chosen session the place of its key among those that are due.
        places = (np.cumsum(is_due) - 1)[codes[is_chosen]]
        yield from self._settle(keys, groups.first_rows()[is_due], chosen, places, until_us=until_us)

    def absorb(self) -> None:
        """Merge what is in memory into the table, for its checkpoint."""
        fresh = self._pending.take_all()
        if fresh is None:
            return
        keys = self._all_keys(fresh, [])
        groups = Groups.of_columns(keys.columns[:-1], keys.num_rows)
        for _ in self._settle(keys, groups.first_rows(), fresh, groups.codes, until_us=None):
            raise AssertionError("a session ended before any time")

    def _settle(
        self, keys: Rows, numbers: Codes, fresh: Sessions, places: Codes, *, until_us: int | None
    ) -> Iterator[Sessions]:
        """Merge sessions into those that the table has of some keys; returns those that have ended by then.

        `numbers` are the rows of these keys, `places` for each session that of its key among them.
        """
        done = 0
        for start in range(0, len(numbers), SETTLED_KEYS):
            for some in take_batches(keys, numbers[start : start + SETTLED_KEYS]):
                at = done
                for is_stored, rows in self._sessions.get_parts(some):
                    end = done + len(is_stored)
                    own = (places >= done) & (places < end)
                    theirs = fresh if own.all() else fresh.take(np.flatnonzero(own))
                    ended = self._settle_keys(
                        some.slice(done - at, end - done), theirs, is_stored, rows, until_us=until_us
                    )
                    if ended is not None:
                        yield ended
                    done = end

    def _settle_keys(
        self, keys: pa.RecordBatch, fresh: Sessions, is_stored: Mask, rows: pa.RecordBatch, *, until_us: int | None
    ) -> Sessions | None:
        timers = np.full(keys.num_rows, NO_TIMER, dtype=np.int64)
        timers[is_stored] = rows.column(TIMER).to_numpy()
        sessions = self._merge([*self._stored(rows), fresh])
        if until_us is None:
            self._write(keys, sessions, is_stored=is_stored, timers=timers)
            return None
        # Timers up to then have been taken out.
        timers[timers <= until_us] = NO_TIMER
        has_ended = sessions.lasts_us + self._gap_us <= until_us
        self._write(keys, sessions.take(np.flatnonzero(~has_ended)), is_stored=is_stored, timers=timers)
        ended = sessions.take(np.flatnonzero(has_ended))
        return _by_end(ended) if len(ended) else None

    def _merge(self, parts: Sequence[Sessions]) -> Sessions:
        return merge_sessions(concat_sessions(parts), self._layout.window.plan, gap_us=self._gap_us)

    def _all_keys(self, sessions: Sessions, others: Sequence[pa.RecordBatch]) -> Rows:
        """The keys of sessions, then others, to look up."""
        width = len(self._keys)
        parts = [(batch.columns[:width], batch.num_rows) for batch in batches_of(sessions.rows)]
        parts += [([batch.column(name) for name in self._keys], batch.num_rows) for batch in others]
        return join_rows([self._layout.key_batch(columns, rows) for columns, rows in parts])

    def _stored(self, rows: pa.RecordBatch) -> Iterator[Sessions]:
        """The sessions of rows of the table; those of a key that are apart are taken out of there."""
        lists = rows.column(SESSIONS)
        parents, (structs,) = flatten([lists])
        done = 0
        for keys in take_batches(rows.select([*self._keys, TIMER]), parents):
            part = structs.slice(done, keys.num_rows)
            columns = [*keys.columns[:-1], *part.flatten()]
            yield self._layout.of_rows(pa.RecordBatch.from_arrays(columns, schema=self._layout.apart.schema))
            done += keys.num_rows
        is_apart = lengths_of(lists) == 0
        if is_apart.any():
            keys = rows.filter(pa.array(is_apart))
            for found in list(self._apart.lookup_parts(keys)):
                yield self._layout.of_rows(found.batch)
            self._apart.delete(DeleteKey(), keys)

    def _write(self, keys: pa.RecordBatch, sessions: Sessions, *, is_stored: Mask, timers: Times) -> None:
        """Set the sessions of the keys, which have `timers`, to these; delete stored keys that have none."""
        columns = keys.columns[:-1]
        # Keys first, so that their numbers are those of the rows of `keys`.
        joined = join_rows([keys, *batches_of(self._all_keys(sessions, []))])
        codes = Groups.of_columns(joined.columns[:-1], joined.num_rows).codes[keys.num_rows :]
        earliest = np.full(keys.num_rows, NO_TIMER - self._gap_us, dtype=np.int64)
        np.minimum.at(earliest, codes, sessions.lasts_us)
        is_open = np.bincount(codes, minlength=keys.num_rows) > 0
        timers = self._timers.schedule(columns, due_us=earliest + self._gap_us, current_us=timers, is_wanted=is_open)
        rows = pa.RecordBatch.from_arrays([*columns, pa.array(timers)], names=keys.schema.names)
        if len(sessions):
            if not bool((codes[:-1] <= codes[1:]).all()):
                order = order_by_code(codes, keys.num_rows)
                sessions, codes = sessions.take(order), codes[order]
            places = np.cumsum(is_open) - 1
            self._put(rows if is_open.all() else rows.filter(pa.array(is_open)), sessions.rows, places[codes])
        self._sessions.delete(rows.filter(pa.array(is_stored & ~is_open)))

    def _put(self, keys: pa.RecordBatch, rows: Rows, codes: Codes) -> None:
        """Set the sessions of keys, with their timers, to these; `codes` are the numbers of their keys, in order."""
        if isinstance(rows, pa.Table) and rows.nbytes > large_rows.BATCH_BYTES:
            half = keys.num_rows // 2
            if half == 0:
                self._put_apart(keys, rows)
                return
            first = int(np.searchsorted(codes, half))
            self._put(keys.slice(0, half), rows.slice(0, first), codes[:first])
            self._put(keys.slice(half), rows.slice(first), codes[first:] - half)
            return
        columns = as_batch(rows).columns[len(self._keys) :]
        structs = pa.StructArray.from_arrays(columns, fields=list(self._layout.session_type))
        (lists,) = gather(Groups(codes, keys.num_rows), [structs])
        self._upsert(keys, lists)

    def _put_apart(self, key: pa.RecordBatch, rows: pa.Table) -> None:
        for batch in cut_batches(rows):
            self._apart.insert(batch)
        self._upsert(key, pa.array([[]], self._layout.sessions.schema.field(SESSIONS).type))

    def _upsert(self, keys: pa.RecordBatch, lists: pa.Array) -> None:
        *columns, timers = keys.columns
        self._sessions.upsert(
            pa.RecordBatch.from_arrays([*columns, lists, timers], schema=self._layout.sessions.schema)
        )


def _by_end(sessions: Sessions) -> Sessions:
    return sessions.take(np.lexsort((sessions.firsts_us, sessions.lasts_us)))
