"""`std.interval_join`: joins rows of two streams whose event times are not too far apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_core.api.updating import refuse_updating
from arroyo_std.joins.keyed import DistinctKeys, Found, KeyedTable
from arroyo_std.joins.layout import LEFT, JoinLayout, JoinSettings, JoinType, Mask, Rows
from arroyo_std.joins.pairs import Ranges, TimeIndex, pairs_at_once
from arroyo_std.joins.pending import PendingRows
from arroyo_std.joins.timed import TimedJoin, emit, need_event_times
from arroyo_std.setting_texts import signed_duration_text
from arroyo_std.windows.times import TIME_TYPE, Times, time_array


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """How far the right row's time may be from the left row's: from `lower_us` to `upper_us`, both included."""

    lower_us: int
    upper_us: int

    def bounds_us(self, index: int) -> tuple[int, int]:
        """The same, seen from a row of the side `index`: how far the other row's time may be from its own."""
        return (self.lower_us, self.upper_us) if index == LEFT else (-self.upper_us, -self.lower_us)

    @property
    def width_us(self) -> int:
        return self.upper_us - self.lower_us


class IntervalJoin(TimedJoin):
    """Pairs come when the second row does; rows without a match when no match can come any more.

    So do the rows of semi and anti joins: it is enough to look once, and nothing is noted of what has been sent.
    """

    def __init__(self, settings: JoinSettings, interval: Interval, *, time_column: str) -> None:
        super().__init__(settings)
        self._interval = interval
        self._time_name = time_column
        self._keeps = settings.type.keeps
        #: Of each side, whether rows wait until it is known whether they have a match.
        self._waits = settings.type.asks

    def name(self) -> str:
        return "std.interval_join"

    def display_join(self) -> list[tuple[str, str]]:
        return list(self._bounds().items())

    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        # Which rows are still there for others to match, and which have come out alone, depends on all of these.
        return {"type": str(self.settings.type), **self._bounds(), **self.condition_setting()}

    def _bounds(self) -> dict[str, str]:
        lower_us, upper_us = self._interval.lower_us, self._interval.upper_us
        return {"lower": signed_duration_text(lower_us), "upper": signed_duration_text(upper_us)}

    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        for stream in inputs:
            refuse_updating(stream, operator=self.name())
        need_event_times(inputs)
        added = [] if self.settings.type.is_filter else [pa.field(self._time_name, TIME_TYPE)]
        return JoinLayout(self.settings, inputs, added=added, added_field="time_column")

    def output_time(self, layout: JoinLayout) -> str | None:
        return layout.sides[LEFT].time_column if self.settings.type.is_filter else self._time_name

    def retentions_us(self) -> tuple[int, int]:
        left_us, right_us = (self._wait_us(index) for index in (LEFT, 1 - LEFT))
        # A side whose rows wait looks for matches when they are due, and finds only what is still there.
        waits_left, waits_right = self._waits
        width_us = self._interval.width_us
        return (max(left_us, width_us) if waits_right else left_us, max(right_us, width_us) if waits_left else right_us)

    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        self._tables = [KeyedTable(side, ctx) for side in layout.sides]
        self._pending = [PendingRows(), PendingRows()]
        for index, table in enumerate(self._tables):
            if self._waits[index]:
                for rows in table.all_rows():
                    due_us = self._due_us(index, table.times(rows))
                    is_open = due_us >= self.progress[index].fired_for(rows)
                    self._pending[index].add(rows.filter(pa.array(is_open)), due_us[is_open])

    def add(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        side = self.layout.sides[index]
        rows, times, alone, times_alone = side.split_null_keys(side.plain(batch), times)
        if alone is not None and self._keeps[index]:
            emit([self._padded(index, alone, times_alone)], collector)
        if rows.num_rows == 0:
            return
        is_matched = None if self.settings.type.is_filter else self._match(index, rows, times, collector)
        self._tables[index].insert(rows)
        if self._waits[index]:
            due_us = self._due_us(index, times)
            # Where a match must be some time before its row, none can come any more.
            is_over = due_us < self.progress[index].fired_for(rows)
            if is_over.any():
                is_matched = self._match(index, rows, times, None) if is_matched is None else is_matched
                self._send_decided(index, rows, times, is_over, is_matched, collector)
            self._pending[index].add(rows.filter(pa.array(~is_over)), due_us[~is_over])

    def fire(self, watermark_us: int, collector: ArrowCollector) -> int:
        for index in (LEFT, 1 - LEFT):
            for rows, _ in self._pending[index].take(watermark_us):
                times = self._tables[index].times(rows)
                is_due = np.ones(rows.num_rows, dtype=np.bool_)
                self._send_decided(index, rows, times, is_due, self._match(index, rows, times, None), collector)
        for table, retention_us in zip(self._tables, self.retentions_us(), strict=True):
            table.expire(watermark_us, retention_us)
        if watermark_us >= END_OF_TIME_US:
            return watermark_us
        # Rows without a match come late, and must not be behind the watermark that goes on.
        return watermark_us - max((self._wait_us(index) for index in (0, 1) if self._waits[index]), default=0)

    def _wait_us(self, index: int) -> int:
        """How long after a row's time a match may still come."""
        return max(self._interval.bounds_us(index)[1], 0)

    def _due_us(self, index: int, times: Times) -> Times:
        """The last watermark with which a match may still come."""
        return times + self._interval.bounds_us(index)[1]

    def _find(self, index: int, rows: pa.RecordBatch, times: Times) -> Iterator[tuple[Found, TimeIndex, Ranges]]:
        """Parts of the other side's rows that have the keys, and which of them are within each row's interval."""
        keys = DistinctKeys.of_rows([rows.column(name) for name in self.layout.sides[index].keys], rows.num_rows)
        first_us, last_us = self._interval.bounds_us(index)
        for found in self._tables[1 - index].find_parts(keys):
            by_time = found.by_time()
            yield found, by_time, by_time.between(keys.codes, times + first_us, times + last_us)

    def _match(self, index: int, rows: pa.RecordBatch, times: Times, collector: ArrowCollector | None) -> Mask:
        """Which rows have a match by now; with a collector, their pairs are sent."""
        is_matched = np.zeros(rows.num_rows, dtype=np.bool_)
        for found, by_time, ranges in self._find(index, rows, times):
            if collector is None and self.condition is None:
                is_matched |= ranges.has_match
                continue
            for pairs, mine in self._pairs(index, rows, times, found, by_time, ranges):
                is_matched[mine] = True
                if collector is not None:
                    collector.collect(pairs)
        return is_matched

    def _pairs(
        self, index: int, rows: pa.RecordBatch, times: Times, found: Found, by_time: TimeIndex, ranges: Ranges
    ) -> Iterator[tuple[pa.RecordBatch, Rows]]:
        """The pairs for which the condition holds, and the numbers of their rows of this side."""
        for mine, places in ranges.chunks(pairs_at_once(rows, found.batch)):
            theirs = by_time.order[places]
            is_timed = not self.settings.type.is_filter
            added = [time_array(np.maximum(times[mine], found.times[theirs]))] if is_timed else []
            if index == LEFT:
                matching = self.layout.matching(rows, mine, found.batch, theirs, added, self.condition)
                yield from ((pairs, left) for pairs, left, _ in matching)
            else:
                matching = self.layout.matching(found.batch, theirs, rows, mine, added, self.condition)
                yield from ((pairs, right) for pairs, _, right in matching)

    def _send_decided(
        self,
        index: int,
        rows: pa.RecordBatch,
        times: Times,
        is_decided: Mask,
        is_matched: Mask,
        collector: ArrowCollector,
    ) -> None:
        """Send those rows that come out by themselves, now that no more matches can come."""
        is_sent = is_decided & (is_matched if self.settings.type is JoinType.SEMI else ~is_matched)
        emit([self._padded(index, rows.filter(pa.array(is_sent)), times[is_sent])], collector)

    def _padded(self, index: int, rows: pa.RecordBatch, times: Times) -> pa.RecordBatch:
        added = [] if self.settings.type.is_filter else [time_array(times)]
        return self.layout.padded(index, rows, added)
