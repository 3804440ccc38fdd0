"""`std.asof_join`: gives each row of one stream the nearest earlier (or later) row of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import refuse_updating
from arroyo_std.joins.keyed import DistinctKeys, Found, KeyedTable
from arroyo_std.joins.layout import LEFT, RIGHT, JoinLayout, JoinSettings, Mask, Rows
from arroyo_std.joins.pairs import OUTPUT_ROWS
from arroyo_std.joins.pending import PendingRows
from arroyo_std.joins.timed import TimedJoin, emit, need_event_times
from arroyo_std.windows.times import Times


class Direction(StrEnum):
    """Where a match is looked for."""

    BACKWARD = "backward"
    FORWARD = "forward"


class AsofJoin(TimedJoin):
    """Left rows wait until the watermark says that their match, if there is one, has come."""

    def __init__(self, settings: JoinSettings, *, tolerance_us: int, direction: Direction) -> None:
        super().__init__(settings)
        self._tolerance_us = tolerance_us
        self._direction = direction
        #: How long after its time a left row waits.
        self._wait_us = tolerance_us if direction is Direction.FORWARD else 0

    def name(self) -> str:
        return "std.asof_join"

    def display_join(self) -> list[tuple[str, str]]:
        return [("tolerance", format_duration_us(self._tolerance_us)), ("direction", str(self._direction))]

    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        return {"tolerance": format_duration_us(self._tolerance_us), "direction": str(self._direction)}

    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        for stream in inputs:
            refuse_updating(stream, operator=self.name())
        need_event_times(inputs)
        return JoinLayout(self.settings, inputs)

    def output_time(self, layout: JoinLayout) -> str | None:
        place = layout.columns[LEFT].index(str(layout.sides[LEFT].time_column))
        return layout.names[LEFT][place]

    def retentions_us(self) -> tuple[int, int]:
        return (self._wait_us, self._tolerance_us)

    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        self._tables = [KeyedTable(side, ctx) for side in layout.sides]
        self._pending = PendingRows()
        for rows in self._tables[LEFT].all_rows():
            due_us = self._tables[LEFT].times(rows) + self._wait_us
            is_open = due_us >= self.progress[LEFT].fired_for(rows)
            self._pending.add(rows.filter(pa.array(is_open)), due_us[is_open])

    def add(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        side = self.layout.sides[index]
        rows, times, alone, _ = side.split_null_keys(side.plain(batch), times)
        if alone is not None and index == LEFT and self.settings.type.keeps[LEFT]:
            emit([self.layout.padded(LEFT, alone, [])], collector)
        self._tables[index].insert(rows)
        if index == LEFT:
            self._pending.add(rows, times + self._wait_us)

    def fire(self, watermark_us: int, collector: ArrowCollector) -> int:
        for rows, due_us in self._pending.take(watermark_us):
            emit(self._matched(rows, due_us - self._wait_us), collector)
        for table, retention_us in zip(self._tables, self.retentions_us(), strict=True):
            table.expire(watermark_us, retention_us)
        return watermark_us if watermark_us >= END_OF_TIME_US else watermark_us - self._wait_us

    def _matched(self, rows: pa.RecordBatch, times: Times) -> Iterator[pa.RecordBatch]:
        keys = DistinctKeys.of_rows([rows.column(name) for name in self.layout.sides[LEFT].keys], rows.num_rows)
        parts = self._tables[RIGHT].find_parts(keys)
        # For each row the part and the row in it that is nearest so far; -1 for none.
        place, row, nearest_us = (np.full(rows.num_rows, -1, dtype=np.int64) for _ in range(3))
        for number, found in enumerate(parts):
            has_match, last = self._last_matches(found, keys, times)
            found_us = found.times[last[has_match]]
            old_us = nearest_us[has_match]
            is_nearer = found_us >= old_us if self._direction is Direction.BACKWARD else found_us <= old_us
            # Of several rows of one time the last in the order of arrival, and so the one of the later part.
            better = np.flatnonzero(has_match)[(place[has_match] < 0) | is_nearer]
            place[better], row[better], nearest_us[better] = number, last[better], found.times[last[better]]
        for number, found in enumerate(parts):
            mine = np.flatnonzero(place == number)
            for start in range(0, len(mine), OUTPUT_ROWS):
                chunk = mine[start : start + OUTPUT_ROWS]
                yield from self.layout.matched(rows, chunk, found.batch, row[chunk], [])
        if self.settings.type.keeps[LEFT]:
            yield self.layout.padded(LEFT, rows.filter(pa.array(place < 0)), [])

    def _last_matches(self, found: Found, keys: DistinctKeys, times: Times) -> tuple[Mask, Rows]:
        """Which rows have a match among those found, and for each of them the last row of the nearest time."""
        by_time = found.by_time()
        if self._direction is Direction.BACKWARD:
            ranges = by_time.between(keys.codes, times - self._tolerance_us, times)
            has_match = ranges.has_match
        else:
            ahead = by_time.between(keys.codes, times, times + self._tolerance_us)
            has_match = ahead.has_match
            nearest_us = times.copy()
            nearest_us[has_match] = found.times[by_time.order[ahead.first[has_match]]]
            ranges = by_time.between(keys.codes, nearest_us, nearest_us)
        last = np.zeros(len(times), dtype=np.int64)
        last[has_match] = by_time.order[(ranges.first + ranges.count - 1)[has_match]]
        return has_match, last
