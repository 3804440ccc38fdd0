"""`std.window_join`: joins rows of two streams that are in the same window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArrowCollector, ArroyoSchema, OperatorContext
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import refuse_updating
from arroyo_core.errors import ConfigError
from arroyo_std.joins.layout import LEFT, RIGHT, SIDE_NAMES, JoinLayout, JoinSettings, JoinType, KeyPair, Mask, Side
from arroyo_std.joins.pairs import equal_ranges, pairs_at_once, shared_codes
from arroyo_std.joins.timed import TimedJoin, emit, need_event_times
from arroyo_std.large_rows import Rows, cut_batches, join_rows, split_groups
from arroyo_std.windows.layout import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, WINDOW_TIME
from arroyo_std.windows.times import TIME_TYPE, Times, floor_to_grid, time_array, times_us

#: The last moment of a row's window, by which tables hold rows: it expires exactly when the window has fired.
LAST_MOMENT = "_window_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoinSettings:
    """Windows of `size_us`, or those that the inputs have already where it is None."""

    size_us: int | None
    offset_us: int = 0
    allowed_lateness_us: int = 0


class WindowJoin(TimedJoin):
    """Keeps the rows of both inputs until their window ends, and then joins them, once."""

    def __init__(self, settings: JoinSettings, window: WindowJoinSettings) -> None:
        super().__init__(settings)
        self._window = window

    def name(self) -> str:
        return "std.window_join"

    def display_join(self) -> list[tuple[str, str]]:
        window = self._window
        lateness_us = window.allowed_lateness_us
        return [
            ("size", format_duration_us(window.size_us) if window.size_us else "windows of the inputs"),
            ("offset", format_duration_us(window.offset_us) if window.offset_us else ""),
            ("allowed lateness", format_duration_us(lateness_us) if lateness_us else ""),
        ]

    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        window = self._window
        is_own = window.size_us is not None
        times = " and ".join(str(stream.timestamp_column) for stream in inputs) if is_own else WINDOW_END
        return {
            # Rows that equal nothing are kept for the sides only that come out without a match.
            "type": str(self.settings.type),
            "size": format_duration_us(window.size_us) if window.size_us else "windows of the inputs",
            "offset": format_duration_us(window.offset_us),
            "time": f"event ({times})",
            # With a longer one, rows would open windows again that have fired.
            "allowed lateness": format_duration_us(window.allowed_lateness_us),
        }

    def keys(self) -> tuple[KeyPair, ...]:
        """Without others, those of the inputs' own windows; none where these are made here."""
        windows = () if self._window.size_us is not None else (WINDOW_START, WINDOW_END)
        return self.settings.on or tuple(KeyPair(name, name) for name in windows)

    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        for stream in inputs:
            refuse_updating(stream, operator=self.name())
        if self._window.size_us is None:
            _need_windows(inputs)
        else:
            need_event_times(inputs)
        return JoinLayout(
            replace(self.settings, on=self.keys()),
            inputs,
            added=[pa.field(name, TIME_TYPE) for name in WINDOW_COLUMNS],
            omitted=WINDOW_COLUMNS if self._window.size_us is None else (),
        )

    def output_time(self, layout: JoinLayout) -> str | None:
        return WINDOW_TIME

    def retentions_us(self) -> tuple[int, int]:
        return (self._window.allowed_lateness_us, self._window.allowed_lateness_us)

    def time_column(self, side: Side) -> str | None:
        return WINDOW_END if self._window.size_us is None else side.time_column

    def own_columns(self) -> tuple[str, ...]:
        return (LAST_MOMENT,)

    def table_schema(self, side: Side) -> ArroyoSchema:
        return ArroyoSchema(side.schema.append(pa.field(LAST_MOMENT, TIME_TYPE)), LAST_MOMENT, side.keys)

    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        manager = ctx.table_manager
        self._views = [manager.get_expiring_time_key_table(side.name) for side in layout.sides]

    def last_times_us(self, index: int, times: Times) -> Times:
        return self._last_moments(times) + self._window.allowed_lateness_us

    def add(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        side = self.layout.sides[index]
        rows = side.plain(batch)
        rows = rows.append_column(LAST_MOMENT, time_array(self._last_moments(times)))
        is_null = self._equals_nothing(side, rows)
        if is_null is not None and not self.settings.type.keeps[index]:
            rows = rows.filter(pa.array(~is_null))
        self._views[index].insert_batch(rows)

    def fire(self, watermark_us: int, collector: ArrowCollector) -> int:
        until_us = watermark_us
        if watermark_us < END_OF_TIME_US:
            until_us -= self._window.allowed_lateness_us
        due = [self._views[index].take_parts_before(until_us) for index in (LEFT, RIGHT)]
        if any(due):
            names = [self._equal_columns(index) for index in (LEFT, RIGHT)]
            for left, right in split_groups(due, names):
                emit(self._joined(self._all_rows(LEFT, left), self._all_rows(RIGHT, right)), collector)
        return until_us

    def _all_rows(self, index: int, parts: Sequence[pa.RecordBatch]) -> Rows:
        if not parts:
            return pa.RecordBatch.from_pylist([], schema=self.table_schema(self.layout.sides[index]).schema)
        return join_rows(parts)

    def _joined(self, left: Rows, right: Rows) -> Iterator[pa.RecordBatch]:
        codes = list(
            shared_codes(
                [left.column(name) for name in self._equal_columns(LEFT)],
                [right.column(name) for name in self._equal_columns(RIGHT)],
            )
        )
        for index, rows in enumerate((left, right)):
            is_null = self._equals_nothing(self.layout.sides[index], rows)
            if is_null is not None:
                # No row of the other side has this number.
                codes[index] = np.where(is_null, -1 - index, codes[index])
        order = np.argsort(codes[RIGHT], kind="stable")
        ranges = equal_ranges(codes[LEFT], codes[RIGHT][order])
        is_matched = [ranges.has_match, np.isin(codes[RIGHT], codes[LEFT])]
        if self.condition is not None:
            is_matched = [np.zeros(rows.num_rows, dtype=np.bool_) for rows in (left, right)]
        if self.condition is not None or not self.settings.type.is_filter:
            windows = left.select([LAST_MOMENT, *([WINDOW_START] if self._window.size_us is None else [])])
            for left_rows, places in ranges.chunks(pairs_at_once(left, right)):
                window = self._window_of(windows.take(pa.array(left_rows)))
                found = self.layout.matching(left, left_rows, right, order[places], window, self.condition)
                for pairs, mine, theirs in found:
                    is_matched[LEFT][mine], is_matched[RIGHT][theirs] = True, True
                    if not self.settings.type.is_filter:
                        yield pairs
        for index, rows in enumerate((left, right)):
            is_sent = is_matched[index] if self.settings.type is JoinType.SEMI else ~is_matched[index]
            if self.settings.type.asks[index] and is_sent.any():
                for alone in cut_batches(rows.filter(pa.array(is_sent))):
                    yield self.layout.padded(index, alone, self._window_of(alone))

    def _equal_columns(self, index: int) -> list[str]:
        return [*self._compared(self.layout.sides[index]), LAST_MOMENT]

    def _equals_nothing(self, side: Side, rows: Rows) -> Mask | None:
        return side.null_keys(rows, self._compared(side))

    def _compared(self, side: Side) -> list[str]:
        start = [WINDOW_START] if self._window.size_us is None and WINDOW_START not in side.keys else []
        return [*side.keys, *start]

    def _window_of(self, rows: Rows) -> list[pa.Array]:
        """The columns that the join adds."""
        last = times_us(rows.column(LAST_MOMENT))
        if self._window.size_us is None:
            start = rows.column(WINDOW_START)
            starts = pa.array(times_us(start.fill_null(0)), mask=start.is_null().to_numpy(zero_copy_only=False))
            return [starts.cast(TIME_TYPE), time_array(last + 1), time_array(last)]
        return [time_array(last + 1 - self._window.size_us), time_array(last + 1), time_array(last)]

    def _last_moments(self, times: Times) -> Times:
        """The last moment of the window of each row."""
        if self._window.size_us is None:
            return times - 1
        return floor_to_grid(times, self._window.size_us, self._window.offset_us) + (self._window.size_us - 1)


def _need_windows(inputs: Sequence[ArroyoSchema]) -> None:
    for name, stream in zip(SIDE_NAMES, inputs, strict=True):
        for column in (WINDOW_START, WINDOW_END):
            if column not in stream.names:
                raise ConfigError(
                    f"the {name} input has no windows (no column {column!r}): give the size of windows to make",
                    field="size",
                )
            kind = stream.schema.field(column).type
            if not pa.types.is_timestamp(kind):
                raise ConfigError(f"column {column!r} of the {name} input is {kind}, not a timestamp", field="size")
    for column in (WINDOW_START, WINDOW_END):
        kinds = [stream.schema.field(column).type for stream in inputs]
        if kinds[LEFT] != kinds[RIGHT]:
            raise ConfigError(
                f"windows must be of one type: {column!r} is {kinds[LEFT]} on the left and {kinds[RIGHT]} on the right"
            )
