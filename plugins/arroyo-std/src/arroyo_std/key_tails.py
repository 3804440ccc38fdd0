"""The last rows of each key, for rows that look at those before and behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, DeleteKey, OperatorContext
from arroyo_core.state import ColumnRules, take_in_parts, timestamp_table_config
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.large_rows import Rows, batches_of, join_rows, merge_groups, take, take_batches
from arroyo_std.ranking import ranks_in_groups
from arroyo_std.timers import NO_TIMER, KeyTimers, timer_schema
from arroyo_std.windows.times import Times, times_us

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TAILS_TABLE = "k"
TIMERS_TABLE = "d"

#: The place of a row among those of its key that are kept.
_PLACE = "_place"
#: Whether a row has not been sent yet.
_WAITS = "_waits"
#: The timer of the row's key.
_TIMER = "_timer"
#: Names that columns of the input cannot have.
OWN_COLUMNS = frozenset({_PLACE, _WAITS, _TIMER, "_timer_at"})

#: Longer than any stream, for rows that are never forgotten.
_FOREVER = timedelta(days=10_000_000)
#: A key is looked at too early by so much of its time to live at most.
_TIMERS_PER_TTL = 64
#: Keys that are looked up at once.
_KEYS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A column with the value of another row: of the one `places` behind, or before if negative.

    `default` is SQL. `field` is the path in the config.
    """

    name: str
    column: str
    places: int
    default: str | None
    field: str

    def shown(self) -> str:
        """For people."""
        function = "lead" if self.places > 0 else "lag"
        default = "" if self.default is None else f", {self.default}"
        return f"{function}({self.column}, {abs(self.places)}{default})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What is kept of a key: as many rows as later ones look back at, and those that wait for the rows behind."""

    rows: ArroyoSchema
    neighbors: tuple[Neighbor, ...]
    ttl_us: int | None

    @property
    def before(self) -> int:
        """How far back rows look."""
        return max(0, *(-each.places for each in self.neighbors))

    @property
    def behind(self) -> int:
        """For how many rows a row waits."""
        return max(0, *(each.places for each in self.neighbors))

    @property
    def time_column(self) -> str:
        return self.rows.timestamp_column or ""

    @property
    def keys(self) -> tuple[str, ...]:
        return self.rows.key_columns or ()

    def kept(self) -> pa.Schema:
        """The columns of a row that are kept: all of those that wait."""
        if self.behind:
            return self.rows.schema
        wanted = {*self.keys, self.time_column, *(each.column for each in self.neighbors)}
        return pa.schema([field for field in self.rows.schema if field.name in wanted])

    def stored(self) -> ArroyoSchema:
        """The columns of the table."""
        own = [pa.field(_PLACE, pa.int64())]
        if self.behind:
            own += [pa.field(_WAITS, pa.bool_()), pa.field(_TIMER, pa.int64())]
        return ArroyoSchema(pa.schema([*self.kept(), *own]), self.time_column, self.keys)

    def retention(self) -> timedelta:
        """A row that waits may have come a ttl ago, and looks back by one."""
        if self.ttl_us is None:
            return _FOREVER
        return timedelta(microseconds=self.ttl_us) * (2 if self.before and self.behind else 1)

    def timers(self) -> ArroyoSchema:
        return timer_schema([self.rows.schema.field(key) for key in self.keys])


def tail_tables(tail: Tail) -> dict[str, TableConfig]:
    """The tables that `KeyTails` needs."""
    stored = tail.stored()
    own = tuple(name for name in stored.names if name not in tail.rows.names)
    rows = timestamp_table_config(
        TAILS_TABLE, "the last rows of each key", tail.retention(), False, stored, column_rules=ColumnRules(fixed=own)
    )
    timers = timestamp_table_config(
        TIMERS_TABLE, "when rows go on without those behind them", _FOREVER, False, tail.timers()
    )
    return {TAILS_TABLE: rows, **({TIMERS_TABLE: timers} if tail.behind else {})}


class KeyTails:
    """Takes the rows of each key in order, and gives those that know their neighbors, with the values of these."""

    def __init__(self, tail: Tail, output: pa.Schema, defaults: Sequence[pa.Array], ctx: OperatorContext) -> None:
        self._tail = tail
        self._kept = tail.kept()
        self._stored = tail.stored().schema
        self._output = output
        self._defaults = defaults
        self._view = ctx.table_manager.get_key_time_table(TAILS_TABLE, ctx.watermark())
        self._timers: KeyTimers | None = None
        if tail.behind:
            view = ctx.table_manager.get_expiring_time_key_table(TIMERS_TABLE)
            self._timers = KeyTimers(view, tail.timers(), grid_us=(tail.ttl_us or 0) // _TIMERS_PER_TTL)

    def append(self, keys: pa.RecordBatch, rows: Rows, codes: Codes) -> Rows:
        """Add rows, those of each key in order and behind all that came before; gives the rows that go on.

        `codes` are the numbers of the rows' keys in `keys`.
        """
        return self._move(keys, rows, codes, until_us=None, is_fired=False)

    def expire(self, watermark_us: int) -> Iterator[Rows]:
        """The rows that wait no longer, and forget those that nothing will look at."""
        if self._timers is not None:
            is_end = watermark_us >= END_OF_TIME_US
            if self._tail.ttl_us is not None:
                for keys in self._timers.take_due(watermark_us - 1):
                    yield from self._release(keys, watermark_us)
            if is_end:
                for keys in self._waiting_keys():
                    yield from self._release(keys, watermark_us)
        if self._tail.ttl_us is not None:
            self._view.expire(watermark_us, self._tail.retention() // timedelta(microseconds=1))

    def _release(self, keys: pa.RecordBatch, watermark_us: int) -> Iterator[Rows]:
        for start in range(0, keys.num_rows, _KEYS_AT_ONCE):
            some = keys.slice(start, _KEYS_AT_ONCE)
            none = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self._kept], schema=self._kept)
            yield self._move(some, none, np.empty(0, np.int64), until_us=watermark_us, is_fired=True)

    def _waiting_keys(self) -> Iterator[pa.RecordBatch]:
        names = list(dict.fromkeys([*self._tail.keys, self._tail.time_column]))
        parts = [part.filter(part.column(_WAITS)).select(names) for part in self._view.get_all_parts()]
        yield from merge_groups([part for part in parts if part.num_rows], self._tail.keys, self._distinct)

    def _distinct(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = Groups.of_columns([rows.column(key) for key in self._tail.keys], rows.num_rows)
        return rows.take(pa.array(groups.first_rows()))

    def _move(self, keys: pa.RecordBatch, rows: Rows, codes: Codes, *, until_us: int | None, is_fired: bool) -> Rows:
        """Send what can be sent, with the rows added, and write what is left.

        All rows before `until_us` are known; those behind a row by more than the ttl do not matter to it.
        """
        known = [each for each in self._view.lookup_parts(keys) if each.batch.num_rows]
        stored = [each.batch.select(self._kept.names) for each in known]
        every = join_rows([*stored, *batches_of(rows.select(self._kept.names))])
        is_known = np.zeros(keys.num_rows, dtype=np.bool_)
        former = _concat([each.query_rows for each in known])
        is_known[former] = True
        order = np.lexsort(
            [
                _concat([*(_numbers(each.batch, _PLACE) for each in known), np.arange(rows.num_rows) + _BEHIND]),
                _concat([former, codes]),
            ]
        )
        run = _Run(_concat([former, codes])[order], _times(every, self._tail.time_column)[order], keys.num_rows)
        waited = [each.batch.column(_WAITS).to_numpy(zero_copy_only=False) for each in known] if self._timers else []
        waits = np.zeros(every.num_rows, dtype=np.bool_)
        waits[len(former) :] = True
        if waited:
            waits[: len(former)] = np.concatenate(waited)
        waits = waits[order]
        goes = waits & (run.behind >= self._tail.behind)
        if until_us is not None:
            ttl_us = self._tail.ttl_us
            is_over = np.full(len(goes), True) if until_us >= END_OF_TIME_US else run.times + (ttl_us or 0) < until_us
            goes |= waits & is_over
        waits &= ~goes
        timers = np.full(keys.num_rows, NO_TIMER, dtype=np.int64)
        if self._timers is not None:
            if not is_fired:
                timers[former] = _concat([_numbers(each.batch, _TIMER) for each in known])
            timers = self._schedule(self._timers, keys, run, waits, timers)
        self._write(keys, is_known, every, order, run, waits, timers)
        sent = np.flatnonzero(goes)
        return self._sent(every, rows, order, run, sent, first=len(former))

    def _schedule(self, timers: KeyTimers, keys: pa.RecordBatch, run: _Run, waits: Mask, current_us: Times) -> Times:
        ttl_us = self._tail.ttl_us
        if ttl_us is None:
            return current_us
        due_us = np.full(keys.num_rows, NO_TIMER, dtype=np.int64)
        waiting = np.flatnonzero(waits)[::-1]
        # Of several assignments to one place the last remains: the first row of the key.
        due_us[run.codes[waiting]] = run.times[waiting] + ttl_us
        columns = [keys.column(name) for name in self._tail.keys]
        return timers.schedule(columns, due_us=due_us, current_us=current_us, is_wanted=due_us < NO_TIMER)

    def _write(
        self, keys: pa.RecordBatch, is_known: Mask, every: Rows, order: Codes, run: _Run, waits: Mask, timers: Times
    ) -> None:
        """The rows that wait, and those before the first of them or before the end that may be looked at."""
        waiting = np.bincount(run.codes[waits], minlength=keys.num_rows)
        kept = np.flatnonzero(run.behind < waiting[run.codes] + self._tail.before)
        if is_known.any():
            self._view.delete(DeleteKey(), keys.filter(pa.array(is_known)))
        start = 0
        for batch in take_batches(every, order[kept]):
            end = start + batch.num_rows
            some = kept[start:end]
            own = [pa.array(run.ranks[some])]
            if self._timers is not None:
                own += [pa.array(waits[some]), pa.array(timers[run.codes[some]])]
            self._view.insert(pa.RecordBatch.from_arrays([*batch.columns, *own], schema=self._stored))
            start = end

    def _sent(self, every: Rows, rows: Rows, order: Codes, run: _Run, sent: Codes, *, first: int) -> Rows:
        """These rows with the values of their neighbors."""
        # Without rows that wait only those go on that came just now, and only of these all columns are there.
        found = take(every, order[sent]) if self._tail.behind else take(rows, order[sent] - first)
        columns = list(found.columns)
        for neighbor, default in zip(self._tail.neighbors, self._defaults, strict=True):
            places, is_there = run.neighbors(sent, neighbor.places, self._tail.ttl_us)
            numbers = np.where(is_there, order[places], every.num_rows)
            columns.append(_take_or(every.column(neighbor.column), default, numbers))
        is_table = any(isinstance(column, pa.ChunkedArray) for column in columns)
        kind = pa.Table if is_table else pa.RecordBatch
        return kind.from_arrays(columns, schema=self._output)


class _Run:
    """Rows of keys, one key after the other, each in its order."""

    def __init__(self, codes: Codes, times: Times, keys: int) -> None:
        self.codes = codes
        self.times = times
        self.ranks = ranks_in_groups(codes)
        #: How many rows of the key are behind each row.
        self.behind: Codes = np.bincount(codes, minlength=keys)[codes] - 1 - self.ranks

    def neighbors(self, rows: Codes, places: int, ttl_us: int | None) -> tuple[Codes, Mask]:
        """The row so many places behind each of these; and whether there is one within the time."""
        is_there = self.behind[rows] >= places if places > 0 else self.ranks[rows] >= -places
        found = np.where(is_there, rows + places, rows)
        if ttl_us is not None:
            is_there &= np.abs(self.times[found] - self.times[rows]) <= ttl_us
        return found, is_there


#: Behind all places of rows that are kept.
_BEHIND = 1 << 40


def _concat(parts: Sequence[Any]) -> Codes:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _numbers(batch: pa.RecordBatch, name: str) -> Codes:
    found: Codes = batch.column(name).to_numpy()
    return found


def _times(rows: Rows, name: str) -> Times:
    return _concat([times_us(part.column(name)) for part in batches_of(rows)])


def _take_or(column: Any, default: pa.Array, numbers: Codes) -> Any:
    """Values by their numbers; the number behind the last one stands for the default."""
    if isinstance(column, pa.ChunkedArray):
        table = pa.table([pa.chunked_array([*column.chunks, default])], names=["values"])
        return take_in_parts(table, numbers).column(0)
    return pa.concat_arrays([column, default]).take(pa.array(numbers))
