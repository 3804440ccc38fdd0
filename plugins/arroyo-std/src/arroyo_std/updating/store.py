"""`UpdatingStore`: the state of every group as it was last sent, and what came since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import LastKeyValueState
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.large_rows import Rows, batches_of, join_rows, merge_groups, split_groups, take_batches
from arroyo_std.timers import NO_TIMER, KeyTimers
from arroyo_std.updating.flush import Came, Changes, Flush, GroupPart
from arroyo_std.updating.layout import TIMER, UPDATED, UpdatingLayout

#: Unmerged states in memory are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536
#: The same for their bytes.
MERGE_BYTES = 64 << 20
#: So many groups are flushed together: what that takes in memory is several times as large as their states.
FLUSHED_KEYS = 65_536


@dataclass(frozen=True, slots=True)
class Delta:
    """Rows of the layout's `delta`; unless `is_distinct`, a key may be there several times."""

    rows: pa.RecordBatch
    is_distinct: bool = False


class UpdatingStore:
    """Adds rows and takes them back, tells what has changed, and forgets groups that were idle for long."""

    def __init__(
        self, layout: UpdatingLayout, view: LastKeyValueState, timers: KeyTimers | None, *, ttl_us: int
    ) -> None:
        self._layout = layout
        self._view = view
        self._timers = timers
        self._ttl_us = ttl_us
        self._appends = _Pending(layout)
        self._retracts = _Pending(layout)

    def add(self, delta: Delta, *, is_retract: bool) -> None:
        (self._retracts if is_retract else self._appends).add(delta)

    def add_empty_group(self) -> None:
        """Give the only group there is without keys a state, if it has none."""
        rows = self._layout.group_of_no_rows()
        if not any(is_stored.any() for is_stored, _ in self._view.get_parts(self._layout.key_batch(rows))):
            self.add(Delta(rows, is_distinct=True), is_retract=False)

    def flush(self, now_us: int) -> Iterator[Changes]:
        """Apply what came since the last flush; returns the changes, by group."""
        keys, schema = self._layout.keys, self._layout.delta
        sides = [self._appends.take(), self._retracts.take()]
        for appends, retracts in split_groups(sides, [keys, keys]) if any(sides) else ():
            yield from self._flush(_join(appends, schema), _join(retracts, schema), now_us)

    def expire(self, now_us: int) -> Iterator[pa.RecordBatch]:
        """Forget the groups that were idle for the time to live; returns what takes back their results."""
        if self._timers is None or not self._timers.is_due(now_us):
            return
        for keys in self._timers.take_due(now_us):
            for _, rows in self._view.get_parts(keys):
                is_idle = rows.column(UPDATED).to_numpy() + self._ttl_us <= now_us
                self._reschedule(rows.filter(pa.array(~is_idle)), now_us)
                idle = rows.filter(pa.array(is_idle))
                if idle.num_rows:
                    yield self._forget(idle)

    def _forget(self, idle: pa.RecordBatch) -> pa.RecordBatch:
        self._view.delete(idle)
        results = self._layout.sent_results(idle.columns[: len(self._layout.keys)], self._layout.states_of(idle))
        return make_updates(results, is_retract=True, ids=row_ids(results, self._layout.keys))

    def _flush(self, appends: Rows, retracts: Rows, now_us: int) -> Iterator[Changes]:
        """Apply states of some groups, of each of which either has one at most."""
        keys = join_rows([self._layout.key_batch(part) for rows in (appends, retracts) for part in batches_of(rows)])
        groups = _number(keys, is_distinct=retracts.num_rows == 0)
        codes, first = groups.codes, groups.first_rows()
        added, back = Came(appends, codes[: appends.num_rows]), Came(retracts, codes[appends.num_rows :])
        done = 0
        for start in range(0, groups.count, FLUSHED_KEYS):
            for some in take_batches(keys, first[start : start + FLUSHED_KEYS]):
                at = done
                for is_stored, stored in self._view.get_parts(some):
                    end = done + len(is_stored)
                    part = GroupPart(
                        some.slice(done - at, end - done),
                        added.between(done, end),
                        back.between(done, end),
                        is_stored,
                        stored,
                    )
                    yield from self._apply(part, now_us)
                    done = end

    def _apply(self, part: GroupPart, now_us: int) -> Iterator[Changes]:
        if part.is_large:
            for half in part.halves():
                yield from self._apply(half, now_us)
            return
        flush = Flush(self._layout, part)
        if flush.live.num_rows:
            timers = self._schedule(flush.live.columns[: len(self._layout.keys)], flush.live_timers(), now_us)
            times = [pa.array(np.full(len(timers), now_us)), pa.array(timers)]
            self._view.upsert(
                pa.RecordBatch.from_arrays([*flush.live.columns, *times], schema=self._layout.state.schema)
            )
        self._view.delete(flush.gone)
        yield from flush.changes()

    def _reschedule(self, rows: pa.RecordBatch, now_us: int) -> None:
        """Give those that were looked at too early a timer again."""
        if rows.num_rows == 0 or self._timers is None:
            return
        timers = rows.column(TIMER).to_numpy()
        current = self._timers.schedule(
            rows.columns[: len(self._layout.keys)],
            due_us=rows.column(UPDATED).to_numpy() + self._ttl_us,
            current_us=np.where(timers <= now_us, NO_TIMER, timers),
            is_wanted=np.ones(rows.num_rows, dtype=np.bool_),
        )
        place = rows.schema.get_field_index(TIMER)
        self._view.upsert(rows.set_column(place, rows.schema.field(place), pa.array(current)))

    def _schedule(self, keys: Sequence[pa.Array], timers: Codes, now_us: int) -> Codes:
        if self._timers is None:
            return timers
        count = len(timers)
        return self._timers.schedule(
            keys,
            due_us=np.full(count, now_us + self._ttl_us, dtype=np.int64),
            current_us=timers,
            is_wanted=np.ones(count, dtype=np.bool_),
        )


class _Pending:
    """Deltas since the last flush."""

    def __init__(self, layout: UpdatingLayout) -> None:
        self._layout = layout
        self._deltas: list[Delta] = []
        self._rows = self._merged_rows = 0
        self._bytes = self._merged_bytes = 0

    def add(self, delta: Delta) -> None:
        self._deltas.append(delta)
        self._rows += delta.rows.num_rows
        self._bytes += delta.rows.nbytes
        if self._rows > 2 * self._merged_rows + MERGE_ROWS or self._bytes > 2 * self._merged_bytes + MERGE_BYTES:
            self._deltas = [Delta(rows, is_distinct=True) for rows in self._merge()]
            self._rows = self._merged_rows = sum(each.rows.num_rows for each in self._deltas)
            self._bytes = self._merged_bytes = sum(each.rows.nbytes for each in self._deltas)

    def take(self) -> list[pa.RecordBatch]:
        """All of them, one state per key; none if there are none."""
        merged = self._merge()
        self._deltas = []
        self._rows = self._merged_rows = self._bytes = self._merged_bytes = 0
        return merged

    def _merge(self) -> list[pa.RecordBatch]:
        rows = [delta.rows for delta in self._deltas]
        if len(rows) == 1 and self._deltas[0].is_distinct:
            return rows
        return list(merge_groups(rows, self._layout.keys, self._merge_rows))

    def _merge_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        keys = rows.columns[: len(self._layout.keys)]
        groups = Groups.of_columns(keys, rows.num_rows)
        if groups.count == rows.num_rows:
            return rows
        first = pa.array(groups.first_rows())
        states = self._layout.plan.merge(self._layout.states_of(rows), groups)
        return pa.RecordBatch.from_arrays([*(key.take(first) for key in keys), *states], schema=self._layout.delta)


def _join(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> Rows:
    return join_rows(parts) if parts else pa.RecordBatch.from_pylist([], schema=schema)


def _number(keys: Rows, *, is_distinct: bool) -> Groups:
    """The groups of keys, whose last column is none; `is_distinct` says that each is there once."""
    if is_distinct:
        return Groups(np.arange(keys.num_rows), keys.num_rows)
    return Groups.of_columns(keys.columns[:-1], keys.num_rows)
