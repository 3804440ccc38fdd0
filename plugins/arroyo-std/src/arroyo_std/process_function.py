"""What authors of `std.process` write: a function of batches and timers, with state by key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, ExpiringTimeKeyState, LastKeyValueState, OperatorContext
from arroyo_std.aggregates.groups import Groups
from arroyo_std.large_rows import concat, split_groups
from arroyo_std.ranking import ranks_in_groups
from arroyo_std.windows.times import TIME_TYPE, Times, times_us

#: The column of the timers that `on_timer` is given, beside their keys: when each was due.
TIMER_AT = "timer_at"
#: The table of timers is by whole steps of this, so that few times have many timers.
_SLOT = "_slot"
SLOT_US = 1_000_000


class OnDue(Protocol):
    """What is called with timers that are due."""

    def __call__(self, due: pa.RecordBatch) -> None: ...


class KeyedState:
    """One row for each key, of the columns that `state_schema` declares; durable with the next checkpoint.

    Every method takes whole batches: the cost of a call is shared by its rows. Batches of keys may have other
    columns, so the batch that came in will do.
    """

    def __init__(self, view: LastKeyValueState, schema: pa.Schema) -> None:
        self._view = view
        #: The key columns, then the columns of the state.
        self.schema = schema

    def get(self, keys: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch]:
        """For each row of `keys` whether the key has a row; and those rows, in the order of `keys`."""
        return self._view.get(keys)

    def get_aligned(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each row of `keys`: the key's row, or all nulls."""
        return self._view.get_aligned(keys)

    def put(self, rows: pa.RecordBatch) -> None:
        """Set the rows of keys; of two rows of one key the later counts."""
        self._view.upsert(rows)

    def delete(self, keys: pa.RecordBatch) -> None:
        """Forget the rows of keys."""
        self._view.delete(keys)


class Timers:
    """Moments of event time at which `on_timer` is to be called, by key. A key may have several; equal ones are one."""

    def __init__(self, view: ExpiringTimeKeyState, schema: ArroyoSchema) -> None:
        self._view = view
        self._schema = schema.schema
        self._keys = list(schema.key_columns or ())
        #: While timers fire: up to when, and those that were set meanwhile and are due, too.
        self._firing_us: int | None = None
        self._set_meanwhile: list[pa.RecordBatch] = []
        self._is_final = False

    def set(self, keys: pa.RecordBatch, times: pa.Array | Times) -> None:
        """Set a timer for each row of `keys`: timestamps, or whole microseconds; none where the time is null.

        A timer fires when the watermark reaches its time; one that is due already, with the next watermark. At
        the end of the data every timer fires, and those that are set then are dropped.
        """
        rows = self._rows(keys, times)
        if rows.num_rows == 0 or self._is_final:
            return
        if self._firing_us is None:
            self._view.insert_batch(rows)
            return
        is_due = times_us(rows.column(TIMER_AT)) <= self._firing_us
        if is_due.any():
            self._set_meanwhile.append(rows.filter(pa.array(is_due)))
            rows = rows.filter(pa.array(~is_due))
        if rows.num_rows:
            self._view.insert_batch(rows)

    def _rows(self, keys: pa.RecordBatch, times: pa.Array | Times) -> pa.RecordBatch:
        moments = times if isinstance(times, pa.Array) else pa.array(times, pa.int64())
        if isinstance(moments, pa.ChunkedArray):
            moments = moments.combine_chunks()
        if len(moments) != keys.num_rows:
            raise ValueError(f"{len(moments)} times for {keys.num_rows} keys")
        columns = [keys.column(name) for name in self._keys]
        if moments.null_count:
            columns = [column.filter(moments.is_valid()) for column in columns]
            moments = moments.filter(moments.is_valid())
        at_us = times_us(moments) if pa.types.is_timestamp(moments.type) else moments.cast(pa.int64()).to_numpy()
        slots = at_us // SLOT_US * SLOT_US
        arrays = [
            *(
                column if column.type == self._schema.field(name).type else column.cast(self._schema.field(name).type)
                for name, column in zip(self._keys, columns, strict=True)
            ),
            pa.array(at_us, pa.int64()).cast(TIME_TYPE),
            pa.array(slots, pa.int64()).cast(TIME_TYPE),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def fire(self, until_us: int, call: OnDue, *, is_final: bool) -> None:
        """Call `call` with the timers up to this time, each key at most once per call, its earliest timer first."""
        taken = self._take(until_us)
        self._firing_us, self._is_final = until_us, is_final
        try:
            # All timers of a key at once, of all keys unless these are large.
            for parts in split_groups([taken], [self._keys]) if taken else ():
                due: pa.RecordBatch | None = concat(parts[0])
                while due is not None and due.num_rows:
                    due = self._fire_rounds(due, call)
        finally:
            self._firing_us, self._is_final = None, False

    def _fire_rounds(self, due: pa.RecordBatch, call: OnDue) -> pa.RecordBatch | None:
        """Fire until nothing is left, or until there are new timers: then what is left, with them."""
        at_us = times_us(due.column(TIMER_AT))
        by_time = np.argsort(at_us, kind="stable")
        due, at_us = due.take(pa.array(by_time)), at_us[by_time]
        groups = Groups.of_columns([due.column(name) for name in self._keys], due.num_rows).codes
        # By key, then by time; the same timer twice is one.
        by_key = np.argsort(groups, kind="stable")
        is_repeated = np.zeros(len(by_key), dtype=np.bool_)
        is_repeated[1:] = (groups[by_key][1:] == groups[by_key][:-1]) & (at_us[by_key][1:] == at_us[by_key][:-1])
        by_key = by_key[~is_repeated]
        rounds = ranks_in_groups(groups[by_key])
        order = np.argsort(rounds, kind="stable")
        due, rounds = due.take(pa.array(by_key[order])), rounds[order]
        ends = np.searchsorted(rounds, np.arange(int(rounds[-1]) + 1), side="right")
        start = 0
        for end in ends.tolist():
            call(due.slice(start, end - start).select([*self._keys, TIMER_AT]))
            start = end
            if self._set_meanwhile:
                added, self._set_meanwhile = self._set_meanwhile, []
                return concat([due.slice(start), *added])
        return None

    def _take(self, until_us: int) -> list[pa.RecordBatch]:
        earliest_us = self._view.get_min_time()
        if earliest_us is None or earliest_us > until_us:
            return []
        due = []
        for rows in self._view.take_parts_before(until_us + 1):
            is_due = times_us(rows.column(TIMER_AT)) <= until_us
            if not is_due.all():
                self._view.insert_batch(rows.filter(pa.array(~is_due)))
            due.append(rows.filter(pa.array(is_due)))
        return due


def timer_schema(key_fields: list[pa.Field]) -> ArroyoSchema:
    """The columns of the table of timers."""
    keys = tuple(field.name for field in key_fields)
    own = [pa.field(TIMER_AT, TIME_TYPE), pa.field(_SLOT, TIME_TYPE)]
    return ArroyoSchema(pa.schema([*key_fields, *own]), _SLOT, keys)


class ProcessFunction(ABC):
    """Computes with state and timers by key, on whole batches.

    Made from the `arguments` of the config, on the driver to plan and on executors to run; one instance serves one
    subtask for one epoch. What is to last longer goes into the state: an attribute is a cache. All rows, state
    and timers of a key are in one subtask.
    """

    #: Whether the function understands `_updating_meta`; else an updating input is refused.
    accepts_updating: ClassVar[bool] = False
    #: The names of the arguments without which state and timers would be misread; None for all. A job whose arguments
    #: among these changed does not go on with its state until a person allows it.
    state_arguments: ClassVar[Collection[str] | None] = None

    def state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        """The columns of the state beside the keys, for an input of this type; called at plan time, too."""
        return pa.schema([])

    def output_schema(self, stream: ArroyoSchema) -> ArroyoSchema:
        """The type of what is collected, for an input of this type (which is keyed); called at plan time.

        Key columns that it keeps must still hold the keys of the subtask.
        """
        return stream

    def on_start(self, ctx: OperatorContext) -> None:
        """Prepare; called once before anything else at run time."""
        return

    @abstractmethod
    def on_batch(
        self,
        batch: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        """Process rows of the input."""

    def on_timer(
        self,
        due: pa.RecordBatch,
        state: KeyedState,
        timers: Timers,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        """Process timers that the watermark has reached: their keys, and `timer_at`.

        A key appears once in a call; its timers come in the order of their times, before the watermark goes on.
        """
        return
