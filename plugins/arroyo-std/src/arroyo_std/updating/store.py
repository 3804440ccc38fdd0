"""`UpdatingStore`: the state of every group as it was last sent, and what came since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArroyoSchema, LastKeyValueState, Registry
from arroyo_core.api.updating import (
    UPDATING_META,
    interleave_updates,
    is_updating,
    make_updates,
    row_ids,
    with_updating,
    without_updating,
)
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.aggregates.keys import check_names, free_name, key_fields
from arroyo_std.aggregates.partials import ROWS, partial_schema
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.timers import NO_TIMER, KeyTimers, timer_schema
from arroyo_std.updating.changes import same_rows

#: Whether a partial row takes back rows.
IS_RETRACT = "_is_retract"
UPDATED = "_updated_us"
TIMER = "_timer_us"

#: Unmerged states in memory are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536


#: Gives keys timers, and returns those they have then.
_Schedule = Callable[[Sequence[pa.Array], Codes], Codes]


class UpdatingLayout:
    """Keys, aggregates and state of one operator, for inputs of one type."""

    def __init__(
        self, keys: Sequence[str], specs: Sequence[AggregateSpec], stream: ArroyoSchema, registry: Registry
    ) -> None:
        self.keys = tuple(keys)
        self.is_updating = is_updating(stream)
        rows = without_updating(stream)
        self.key_fields = key_fields(keys, rows)
        check_names(specs, [*keys, UPDATING_META])
        # A hidden aggregate: how many rows the group has.
        hidden = free_name(ROWS, {spec.name for spec in specs})
        counted = [AggregateSpec(function="count", field="", alias=hidden), *specs]
        self.plan = AggregatePlan(counted, rows.schema, registry, keys=keys, is_updating=self.is_updating)
        self.result_schema = pa.schema([*self.key_fields, *self.plan.output_fields[1:]])
        self.output = with_updating(ArroyoSchema(self.result_schema, None, self.keys))
        times = [pa.field(UPDATED, pa.int64()), pa.field(TIMER, pa.int64())]
        #: The state of a group, when it last changed, and the time of its timer.
        self.state = ArroyoSchema(pa.schema([*self.key_fields, *self.plan.state_fields, *times]), key_columns=self.keys)
        self.timers = timer_schema(self.key_fields)
        #: Partial aggregates on their way through a shuffle.
        self.partial = partial_schema(
            [*self.key_fields, *self.plan.state_fields, pa.field(IS_RETRACT, pa.bool_())], stream
        )

    def states_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return list(rows.columns[len(self.keys) : -2])

    def results(self, keys: Sequence[pa.Array], states: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*keys, *self.plan.finish(states)[1:]], schema=self.result_schema)

    def sent_results(self, keys: Sequence[pa.Array], states: Sequence[pa.Array]) -> pa.RecordBatch:
        """Results as they were sent, to be taken back."""
        return pa.RecordBatch.from_arrays([*keys, *self.plan.finish_sent(states)[1:]], schema=self.result_schema)


@dataclass(frozen=True, slots=True)
class Delta:
    """The states of rows that came, by key; unless `is_distinct`, a key may be there several times."""

    keys: list[pa.Array]
    states: list[pa.Array]
    is_distinct: bool = False

    def __len__(self) -> int:
        return len(self.states[0])


@dataclass(frozen=True, slots=True)
class Changes:
    """What to send, and how many rows were taken back that were not there."""

    rows: pa.RecordBatch
    unknown_retractions: int = 0


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

    def flush(self, now_us: int) -> Changes | None:
        """Apply what came since the last flush; returns the changes, by group, or None if nothing came."""
        appends, retracts = self._appends.take(), self._retracts.take()
        if appends is None and retracts is None:
            return None
        return _Flush(self._layout, self._view, appends or self._none(), retracts or self._none()).run(
            lambda keys, timers: self._schedule(keys, timers, now_us), now_us
        )

    def expire(self, now_us: int) -> pa.RecordBatch | None:
        """Forget the groups that were idle for the time to live; returns what takes back their results."""
        if self._timers is None or not self._timers.is_due(now_us):
            return None
        keys = self._timers.take_due(now_us)
        if keys is None:
            return None
        _, rows = self._view.get(keys)
        is_idle = rows.column(UPDATED).to_numpy() + self._ttl_us <= now_us
        self._reschedule(rows.filter(pa.array(~is_idle)), now_us)
        idle = rows.filter(pa.array(is_idle))
        if idle.num_rows == 0:
            return None
        self._view.delete(idle)
        results = self._layout.sent_results(idle.columns[: len(self._layout.keys)], self._layout.states_of(idle))
        return make_updates(results, is_retract=True, ids=row_ids(results, self._layout.keys))

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

    def _none(self) -> Delta:
        return Delta(
            [pa.array([], field.type) for field in self._layout.key_fields],
            [pa.array([], field.type) for field in self._layout.plan.state_fields],
        )


class _Pending:
    """Deltas since the last flush."""

    def __init__(self, layout: UpdatingLayout) -> None:
        self._layout = layout
        self._deltas: list[Delta] = []
        self._rows = 0
        self._merged_rows = 0

    def add(self, delta: Delta) -> None:
        self._deltas.append(delta)
        self._rows += len(delta)
        if self._rows > 2 * self._merged_rows + MERGE_ROWS:
            self._deltas = [self._merge()]
            self._rows = self._merged_rows = len(self._deltas[0])

    def take(self) -> Delta | None:
        """All of them, one state per key; None if there are none."""
        if not self._deltas:
            return None
        merged = self._merge()
        self._deltas, self._rows, self._merged_rows = [], 0, 0
        return merged

    def _merge(self) -> Delta:
        if len(self._deltas) == 1 and self._deltas[0].is_distinct:
            return self._deltas[0]
        keys = _concat([delta.keys for delta in self._deltas])
        groups = Groups.of_columns(keys, sum(len(delta) for delta in self._deltas))
        first = pa.array(groups.first_rows())
        states = self._layout.plan.merge(_concat([delta.states for delta in self._deltas]), groups)
        return Delta([key.take(first) for key in keys], states, is_distinct=True)


class _Flush:
    """One flush: old and new states of every group that had rows, side by side."""

    def __init__(self, layout: UpdatingLayout, view: LastKeyValueState, appends: Delta, retracts: Delta) -> None:
        self._layout = layout
        self._view = view
        joined = _concat([appends.keys, retracts.keys])
        groups = Groups.of_columns(joined, len(appends) + len(retracts))
        self._count = groups.count
        first = pa.array(groups.first_rows())
        self._keys = [key.take(first) for key in joined]
        self._appends, self._append_of = appends, groups.codes[: len(appends)]
        self._retracts, self._retract_of = retracts, groups.codes[len(appends) :]
        # A column that is not a key, because without keys there would be no rows.
        lookup = pa.RecordBatch.from_arrays(
            [*self._keys, pa.nulls(self._count, pa.int64())], names=[*layout.keys, TIMER]
        )
        self._is_stored, self._stored = view.get(lookup)
        self._unknown = 0

    def run(self, schedule: _Schedule, now_us: int) -> Changes:
        states, is_live = self._new_states()
        live = np.flatnonzero(is_live)
        live_keys, live_states = _take(self._keys, live), _take(states, live)
        timers = np.full(self._count, NO_TIMER, dtype=np.int64)
        timers[self._is_stored] = self._stored.column(TIMER).to_numpy()
        if len(live):
            times = [pa.array(np.full(len(live), now_us)), pa.array(schedule(live_keys, timers[live]))]
            self._view.upsert(
                pa.RecordBatch.from_arrays([*live_keys, *live_states, *times], schema=self._layout.state.schema)
            )
        is_gone = ~is_live[self._is_stored]
        if is_gone.any():
            self._view.delete(self._stored.filter(pa.array(is_gone)))
        return Changes(self._changes(live_keys, live_states, is_live), self._unknown)

    def _new_states(self) -> tuple[list[pa.Array], Mask]:
        """The state of each group, and which groups have rows."""
        layout = self._layout
        known = np.flatnonzero(self._is_stored)
        groups = Groups(np.concatenate([known, self._append_of]), self._count, has_empty=True)
        states = layout.plan.merge(_concat([layout.states_of(self._stored), self._appends.states]), groups)
        is_known = groups.sizes() > 0
        if len(self._retracts):
            has_rows = is_known[self._retract_of]
            unknown = self._retracts.states[0].filter(pa.array(~has_rows)).to_numpy()
            self._unknown += int(unknown.sum())
            rows, chosen = self._retract_of[has_rows], np.flatnonzero(has_rows)
            left = layout.plan.subtract(_take(states, rows), _take(self._retracts.states, chosen))
            places = np.arange(self._count)
            places[rows] = self._count + np.arange(len(rows))
            states = _take(_concat([states, left]), places)
        counts = np.where(is_known, states[0].fill_null(0).to_numpy(), 0)
        self._unknown += int(-counts[counts < 0].sum())
        return states, counts > 0

    def _changes(self, live_keys: list[pa.Array], live_states: list[pa.Array], is_live: Mask) -> pa.RecordBatch:
        layout = self._layout
        width = len(layout.keys)
        old = layout.sent_results(self._stored.columns[:width], layout.states_of(self._stored))
        new = layout.results(live_keys, live_states)
        old_at, new_at = _places(self._is_stored), _places(is_live)
        both = np.flatnonzero(self._is_stored & is_live)
        is_same = np.zeros(self._count, dtype=np.bool_)
        is_same[both] = same_rows(
            _take(old.columns[width:], old_at[both]), _take(new.columns[width:], new_at[both]), len(both)
        )
        back, added = np.flatnonzero(self._is_stored & ~is_same), np.flatnonzero(is_live & ~is_same)
        retracts = old.take(pa.array(old_at[back]))
        appends = new.take(pa.array(new_at[added]))
        return interleave_updates(
            make_updates(retracts, is_retract=True, ids=row_ids(retracts, layout.keys)),
            make_updates(appends, is_retract=False, ids=row_ids(appends, layout.keys)),
            retract_ranks=back,
            append_ranks=added,
        )


def _places(mask: Mask) -> Codes:
    """For each true element its number among those that are true."""
    places: Codes = np.cumsum(mask, dtype=np.int64) - 1
    return places


def _take(columns: Sequence[pa.Array], rows: Codes) -> list[pa.Array]:
    places = pa.array(rows)
    return [column.take(places) for column in columns]


def _concat(parts: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]
