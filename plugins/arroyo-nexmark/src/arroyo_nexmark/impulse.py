"""`impulse.source`: rows that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, DisplayableOperator, SourceContext
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_nexmark import nexmark_pb2
from arroyo_nexmark.columns import TIMESTAMP, timestamps
from arroyo_nexmark.counting import CountingSource, check_rate
from arroyo_nexmark.splits import ENDLESS, Slice

IMPULSE = pa.schema([("counter", pa.uint64()), ("subtask_index", pa.uint64()), ("timestamp", TIMESTAMP)])

#: Small, so that short sequences are shared out too.
BLOCK_ROWS = 16
BATCH_ROWS = 32_768


class ImpulseSource(CountingSource):
    """Counts 0, 1, 2, ... once over all subtasks."""

    def __init__(
        self,
        *,
        count: int | None = None,
        rate: float | None = None,
        interval_us: int | None = None,
        start_time_us: int = 0,
    ) -> None:
        """With `interval_us`, event time is a function of the counter; else it is the clock's at emission."""
        super().__init__(
            schema=ArroyoSchema(IMPULSE, "timestamp"), block=BLOCK_ROWS, end=count, rate=rate, budget=BATCH_ROWS
        )
        self._interval_us = interval_us
        self._start_time_us = start_time_us

    def name(self) -> str:
        return "impulse.source"

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """The event times of positions; there may be more rows, or faster."""
        interval_us = self._interval_us
        start = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self._start_time_us)
        return {
            "event_time_interval": "none" if interval_us is None else format_duration_us(interval_us),
            "start_time": start.isoformat(),
        }

    def display(self) -> DisplayableOperator:
        count = "no end" if self._end is None else str(self._end)
        return DisplayableOperator(self.name(), (("count", count),))

    def make(self, positions: Slice, ctx: SourceContext) -> pa.RecordBatch:
        counters = positions.positions()
        if self._interval_us is None:
            times = np.full(len(counters), ctx.clock.now_us(), dtype=np.int64)
        else:
            times = self._start_time_us + counters * self._interval_us
        subtask = np.full(len(counters), ctx.task_info.task_index, dtype=np.uint64)
        return pa.RecordBatch.from_arrays(
            [pa.array(counters.view(np.uint64)), pa.array(subtask), timestamps(times)], schema=IMPULSE
        )


def from_config(config: nexmark_pb2.ImpulseSource) -> ImpulseSource:
    """The operator; raises `ConfigError` naming the field that is wrong."""
    count = config.count if config.HasField("count") else None
    if count is not None and count > ENDLESS:
        raise ConfigError(f"count must be at most {ENDLESS}", field="count", value=count)
    interval_us = config.event_time_interval if config.HasField("event_time_interval") else None
    if interval_us is not None and interval_us < 0:
        raise ConfigError("event_time_interval must not be negative", field="event_time_interval", value=interval_us)
    if config.HasField("start_time") and interval_us is None:
        raise ConfigError(
            "start_time needs event_time_interval: without it, timestamps are the clock's", field="start_time"
        )
    start_time_us = config.start_time.ToMicroseconds()
    if start_time_us + (count or 0) * (interval_us or 0) > END_OF_TIME_US:
        raise ConfigError("the last rows would be after the year 9999", field="count", value=count)
    return ImpulseSource(
        count=count,
        rate=check_rate(config.rate) if config.HasField("rate") else None,
        interval_us=interval_us,
        start_time_us=start_time_us,
    )
