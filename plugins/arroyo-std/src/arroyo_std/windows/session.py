"""`std.session_window`: windows that last as long as a key is active."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import OperatorContext, Registry
from arroyo_core.api.units import format_duration_us
from arroyo_core.state import timestamp_table_config
from arroyo_std.aggregates.groups import Groups
from arroyo_std.windows.layout import WindowLayout
from arroyo_std.windows.progress import FiringProgress
from arroyo_std.windows.session_store import SessionLayout, SessionStore
from arroyo_std.windows.sessions import Sessions, derive_sessions
from arroyo_std.windows.times import Times
from arroyo_std.windows.windowed import UNLIMITED, WindowOperator, WindowSettings

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig

SESSIONS_TABLE = "s"
TIMERS_TABLE = "t"


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

    def state_tables(self, layout: WindowLayout | None) -> dict[str, TableConfig]:
        tables = SessionLayout(layout) if layout else None
        retention = timedelta(microseconds=self._gap_us + self._settings.allowed_lateness_us)
        return {
            SESSIONS_TABLE: timestamp_table_config(
                SESSIONS_TABLE, "open sessions by key", timedelta(0), True, tables.sessions if tables else None
            ),
            TIMERS_TABLE: timestamp_table_config(
                TIMERS_TABLE,
                "when a session of a key may end",
                UNLIMITED if self._settings.is_processing_time else retention,
                False,
                tables.timers if tables else None,
            ),
        }

    def open(self, layout: WindowLayout, ctx: OperatorContext) -> None:
        tables = SessionLayout(layout)
        manager = ctx.table_manager
        manager.define_table(SESSIONS_TABLE, tables.sessions)
        manager.define_table(TIMERS_TABLE, tables.timers)
        self.store = SessionStore(
            layout,
            tables,
            gap_us=self._gap_us,
            sessions=manager.get_last_key_value_table(SESSIONS_TABLE),
            timers=manager.get_expiring_time_key_table(TIMERS_TABLE),
        )

    def row_ends_us(self, times: Times) -> Times:
        return times + self._gap_us

    def add(self, layout: WindowLayout, batch: pa.RecordBatch, *, times: Times, arrivals: Times) -> None:
        keys = layout.key_columns(batch)
        by_key = Groups.of_columns(keys, batch.num_rows)
        order, starts = derive_sessions(by_key.codes, times, times, gap_us=self._gap_us)
        sorted_groups = Groups.of_sorted_starts(starts)
        codes = np.empty(batch.num_rows, dtype=np.int64)
        codes[order] = sorted_groups.codes
        states = layout.plan.partial(batch, Groups(codes, sorted_groups.count), times_us=times, arrivals=arrivals)
        first = np.flatnonzero(starts)
        ends = np.append(first[1:], len(order)) - 1
        places = pa.array(order[first])
        self.store.add(Sessions([key.take(places) for key in keys], times[order[first]], times[order[ends]], states))

    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        for ended in self.store.take_ended(until_us):
            yield layout.finish(
                ended.keys, ended.states, starts_us=ended.firsts_us, ends_us=ended.lasts_us + self._gap_us
            )

    def save(self, epoch: int) -> None:
        self.store.absorb()
