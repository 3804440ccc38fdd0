"""One flush of an updating aggregate: old and new states of every group that had rows, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api.updating import make_updates, row_ids
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.large_rows import Rows, as_batch, batches_of, concat_arrays, interleave, is_large, take
from arroyo_std.timers import NO_TIMER
from arroyo_std.updating.changes import same_rows
from arroyo_std.updating.layout import TIMER, UpdatingLayout


@dataclass(frozen=True, slots=True)
class Changes:
    """What to send, and how many rows were taken back that were not there."""

    rows: pa.RecordBatch
    unknown_retractions: int = 0


@dataclass(frozen=True, slots=True)
class Came:
    """Rows of the layout's `delta`, one at most for each of some groups, and the numbers of these."""

    rows: Rows
    groups: Codes

    def between(self, start: int, stop: int) -> Came:
        """Those of some groups, which are numbered from 0 again."""
        is_theirs = (self.groups >= start) & (self.groups < stop)
        if is_theirs.all():
            return Came(self.rows, self.groups - start)
        numbers = np.flatnonzero(is_theirs)
        return Came(take(self.rows, numbers), self.groups[numbers] - start)


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Some groups: their keys, what came for them, which of them are in the table, and their rows there."""

    keys: pa.RecordBatch
    appends: Came
    retracts: Came
    is_stored: Mask
    stored: pa.RecordBatch

    @property
    def is_large(self) -> bool:
        """Whether these are several groups, and one batch might not hold what there is of them."""
        parts = [self.stored, *batches_of(self.appends.rows), *batches_of(self.retracts.rows)]
        return self.keys.num_rows > 1 and is_large(parts)

    def halves(self) -> Iterator[GroupPart]:
        count = self.keys.num_rows
        for start, stop in ((0, count // 2), (count // 2, count)):
            first, last = (int(self.is_stored[:end].sum()) for end in (start, stop))
            yield GroupPart(
                self.keys.slice(start, stop - start),
                self.appends.between(start, stop),
                self.retracts.between(start, stop),
                self.is_stored[start:stop],
                self.stored.slice(first, last - first),
            )


class Flush:
    """What becomes of some groups: `live` are rows of the layout's `delta`, `gone` those whose rows are taken back."""

    def __init__(self, layout: UpdatingLayout, part: GroupPart) -> None:
        self._layout = layout
        self._part = part
        self._unknown = 0
        self._count = part.keys.num_rows
        states, self._is_live = self._new_states()
        keys = part.keys.columns[: len(layout.keys)]
        columns = [*keys, *states]
        if not self._is_live.all():
            columns = _take(columns, np.flatnonzero(self._is_live))
        self.live = pa.RecordBatch.from_arrays(columns, schema=layout.delta)
        is_gone = ~self._is_live[part.is_stored]
        self.gone = part.stored.filter(pa.array(is_gone)) if is_gone.any() else part.stored.slice(0, 0)

    def live_timers(self) -> Codes:
        """The timers that live groups had."""
        timers = np.full(self._count, NO_TIMER, dtype=np.int64)
        timers[self._part.is_stored] = self._part.stored.column(TIMER).to_numpy()
        return timers[self._is_live]

    def changes(self) -> Iterator[Changes]:
        """The old result of each group to be taken back, and its new one behind it, where they differ."""
        layout, is_stored, is_live = self._layout, self._part.is_stored, self._is_live
        width = len(layout.keys)
        old = layout.sent_results(self._part.stored.columns[:width], layout.states_of(self._part.stored))
        new = layout.results(self.live.columns[:width], layout.states_of(self.live))
        old_at, new_at = _places(is_stored), _places(is_live)
        both = np.flatnonzero(is_stored & is_live)
        is_same = np.zeros(self._count, dtype=np.bool_)
        is_same[both] = same_rows(
            _take(old.columns[width:], old_at[both]), _take(new.columns[width:], new_at[both]), len(both)
        )
        back, added = np.flatnonzero(is_stored & ~is_same), np.flatnonzero(is_live & ~is_same)
        retracts = old.take(pa.array(old_at[back]))
        appends = new.take(pa.array(new_at[added]))
        unknown = self._unknown
        for rows in interleave(
            make_updates(retracts, is_retract=True, ids=row_ids(retracts, layout.keys)),
            make_updates(appends, is_retract=False, ids=row_ids(appends, layout.keys)),
            retract_ranks=back,
            append_ranks=added,
        ):
            yield Changes(rows, unknown)
            unknown = 0

    def _new_states(self) -> tuple[list[pa.Array], Mask]:
        """The state of each group, and which groups have rows."""
        layout, part = self._layout, self._part
        appends = as_batch(part.appends.rows)
        groups = Groups(
            np.concatenate([np.flatnonzero(part.is_stored), part.appends.groups]), self._count, has_empty=True
        )
        states = layout.plan.merge(_concat([layout.states_of(part.stored), layout.states_of(appends)]), groups)
        is_known = groups.sizes() > 0
        if len(part.retracts.groups):
            states = self._subtract(states, is_known)
        counts = np.where(is_known, states[0].fill_null(0).to_numpy(), 0)
        self._unknown += int(-counts[counts < 0].sum())
        return states, counts >= 0 if layout.keeps_empty else counts > 0

    def _subtract(self, states: list[pa.Array], is_known: Mask) -> list[pa.Array]:
        """The states without what is taken back."""
        layout = self._layout
        retracts, retract_of = layout.states_of(as_batch(self._part.retracts.rows)), self._part.retracts.groups
        has_rows = is_known[retract_of]
        self._unknown += int(retracts[0].filter(pa.array(~has_rows)).to_numpy().sum())
        rows, chosen = retract_of[has_rows], np.flatnonzero(has_rows)
        left = layout.plan.subtract(_take(states, rows), _take(retracts, chosen))
        places = np.arange(self._count)
        if len(rows) == self._count:
            places[rows] = np.arange(len(rows))
            return _take(left, places)
        places[rows] = self._count + np.arange(len(rows))
        return _take(_concat([states, left]), places)


def _places(mask: Mask) -> Codes:
    """For each true element its number among those that are true."""
    places: Codes = np.cumsum(mask, dtype=np.int64) - 1
    return places


def _take(columns: Sequence[pa.Array], rows: Codes) -> list[pa.Array]:
    places = pa.array(rows)
    return [column.take(places) for column in columns]


def _concat(parts: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    return [concat_arrays(columns) for columns in zip(*parts, strict=True)]
