"""`std.session_window`: windows that last as long as a key is active."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArrowOperator, ArroyoSchema, OperatorContext, Registry
from arroyo_core.api.units import format_duration_us
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std.aggregates.groups import Codes, Groups, Mask, NumberedGroups, number_values
from arroyo_std.aggregates.partials import partial_schema
from arroyo_std.large_rows import cut_batches
from arroyo_std.windows.layout import WINDOW_START, WindowLayout
from arroyo_std.windows.partial import PartialWindow
from arroyo_std.windows.progress import FiringProgress
from arroyo_std.windows.session_store import SESSIONS, SessionLayout, SessionStore
from arroyo_std.windows.sessions import Sessions, derive_sessions
from arroyo_std.windows.times import TIME_TYPE, Times, is_ascending, time_array, times_us
from arroyo_std.windows.windowed import UNLIMITED, WindowOperator, WindowSettings

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

SESSIONS_TABLE = "s"
APART_TABLE = "l"
TIMERS_TABLE = "t"
#: Of a session on its way through a shuffle: the time of its last row.
LAST = "_last"


def aggregate_sessions(
    tables: SessionLayout,
    batch: pa.RecordBatch,
    *,
    times: Times,
    arrivals: Times,
    gap_us: int,
    alone: Mask | None = None,
) -> tuple[Sessions, Groups]:
    """The sessions of a batch by themselves, and which rows are in each; rows that are `alone` are in no other's."""
    layout = tables.window
    keys = layout.key_columns(batch)
    if alone is None and int(times.max()) - int(times.min()) < gap_us:
        # No two rows of a key are as far apart as the gap.
        groups: Groups = NumberedGroups(*number_values(keys, batch.num_rows))
        first = groups.first_rows()
        firsts_us, lasts_us = _extremes(times, groups, first)
    else:
        groups, first, last = _group_sorted(keys, times, gap_us=gap_us, alone=alone)
        firsts_us, lasts_us = times[first], times[last]
    states = layout.plan.partial(batch, groups, times_us=times, arrivals=arrivals)
    places = pa.array(first)
    return tables.make([key.take(places) for key in keys], firsts_us, lasts_us, states), groups


def _extremes(times: Times, groups: Groups, first: Codes) -> tuple[Times, Times]:
    """The least and the greatest time of each group; `first` are their first rows."""
    firsts_us, lasts_us = times[first], times[first]
    if not is_ascending(times):
        np.minimum.at(firsts_us, groups.codes, times)
    np.maximum.at(lasts_us, groups.codes, times)
    return firsts_us, lasts_us


def _group_sorted(
    keys: Sequence[pa.Array], times: Times, *, gap_us: int, alone: Mask | None
) -> tuple[Groups, Codes, Codes]:
    """Rows by session, and the first and the last row of each by time."""
    by_key = Groups.of_columns(keys, len(times))
    order, starts = derive_sessions(by_key.codes, times, times, gap_us=gap_us)
    if alone is not None:
        alone = alone[order]
        starts |= alone
        starts[1:] |= alone[:-1]
    sorted_groups = Groups.of_sorted_starts(starts)
    codes = np.empty(len(times), dtype=np.int64)
    codes[order] = sorted_groups.codes
    first = np.flatnonzero(starts)
    ends = np.append(first[1:], len(order)) - 1
    return Groups(codes, sorted_groups.count), order[first], order[ends]


class PartialSessions(PartialWindow):
    """The sessions of each batch, as far as it has them: rows of the layout's `state`, then the time of the last row.

    Whether a row is late is decided behind the shuffle, row by row. There the watermark is never ahead of the one here,
    so only rows that are late here may be late there: these go on each by itself.
    """

    def __init__(self, name: str, gap_us: int, layout: WindowLayout, stream: ArroyoSchema) -> None:
        fields = [*layout.state.schema, pa.field(LAST, TIME_TYPE), layout.rows_field()]
        super().__init__(name, layout, partial_schema(fields, stream, timestamp_column=WINDOW_START))
        self._gap_us = gap_us
        self._tables = SessionLayout(layout)

    def aggregate(
        self, batch: pa.RecordBatch, ctx: OperatorContext, *, times: Times, arrivals: Times
    ) -> list[pa.Array]:
        watermark_us = ctx.last_present_watermark()
        # Without a watermark here, it is not known what the one there may be.
        late_until_us = END_OF_TIME_US if watermark_us is None else watermark_us - self._gap_us
        alone = times <= late_until_us if times.min() <= late_until_us else None
        sessions, groups = aggregate_sessions(
            self._tables, batch, times=times, arrivals=arrivals, gap_us=self._gap_us, alone=alone
        )
        firsts, lasts = time_array(sessions.firsts_us), time_array(sessions.lasts_us)
        return [*sessions.keys, firsts, *sessions.states, lasts, pa.array(groups.sizes())]


class SessionWindow(WindowOperator):
    """Rows of a key that follow one another by less than the gap are one session, in whatever order they come.

    A session lasts from its first row to the gap after its last. Partial aggregates are kept, not rows.
    """

    def __init__(self, gap_us: int, settings: WindowSettings, registry: Registry) -> None:
        super().__init__(settings, registry)
        self._gap_us = gap_us

    def name(self) -> str:
        return "std.session_window"

    def shortest_us(self) -> int:
        return self._gap_us

    def display_window(self) -> list[tuple[str, str]]:
        return [("gap", format_duration_us(self._gap_us))]

    def geometry(self) -> dict[str, str]:
        return {"gap": format_duration_us(self._gap_us)}

    def state_tables(self, layout: WindowLayout) -> dict[str, TableConfig]:
        tables = SessionLayout(layout)
        retention = timedelta(microseconds=self._gap_us + self._settings.allowed_lateness_us)
        return {
            SESSIONS_TABLE: timestamp_table_config(
                SESSIONS_TABLE,
                "open sessions by key",
                timedelta(0),
                True,
                tables.sessions,
                column_rules=ColumnRules(owners=layout.plan.column_owners(SESSIONS)),
            ),
            APART_TABLE: timestamp_table_config(
                APART_TABLE,
                "open sessions of keys that have more than a row can hold",
                timedelta(0),
                False,
                tables.apart,
                column_rules=ColumnRules(owners=layout.plan.column_owners()),
            ),
            TIMERS_TABLE: timestamp_table_config(
                TIMERS_TABLE,
                "when a session of a key may end",
                UNLIMITED if self._settings.is_processing_time else retention,
                False,
                tables.timers,
            ),
        }

    def open(self, layout: WindowLayout, ctx: OperatorContext) -> None:
        self._tables = SessionLayout(layout)
        manager = ctx.table_manager
        self.store = SessionStore(
            self._tables,
            gap_us=self._gap_us,
            sessions=manager.get_last_key_value_table(SESSIONS_TABLE),
            apart=manager.get_key_time_table(APART_TABLE),
            timers=manager.get_expiring_time_key_table(TIMERS_TABLE),
        )

    def row_ends_us(self, times: Times) -> Times:
        return times + self._gap_us

    def add(self, layout: WindowLayout, batch: pa.RecordBatch, *, times: Times, arrivals: Times) -> None:
        sessions, _ = aggregate_sessions(self._tables, batch, times=times, arrivals=arrivals, gap_us=self._gap_us)
        self.store.add(sessions)

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        layout = self.partial_layout(inputs[0])
        return PartialSessions(self.name(), self._gap_us, layout, inputs[0]) if layout else None

    def partial_times(self, batch: pa.RecordBatch) -> Times:
        # A session is late when its last row is.
        return _lasts(batch)

    def add_partials(self, layout: WindowLayout, batch: pa.RecordBatch) -> None:
        keys = batch.columns[: len(layout.keys)]
        states = batch.columns[len(layout.keys) + 1 : -2]
        firsts_us = times_us(batch.columns[len(layout.keys)])
        self.store.add(self._tables.make(keys, firsts_us, _lasts(batch), states))

    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        for some in self.store.take_ended(until_us):
            for ended in map(self._tables.of_rows, cut_batches(some.rows)):
                yield layout.finish(
                    ended.keys, ended.states, starts_us=ended.firsts_us, ends_us=ended.lasts_us + self._gap_us
                )

    def save(self, epoch: int) -> None:
        self.store.absorb()


def _lasts(batch: pa.RecordBatch) -> Times:
    """By its place: a key may have the column's name."""
    return times_us(batch.columns[-2])
