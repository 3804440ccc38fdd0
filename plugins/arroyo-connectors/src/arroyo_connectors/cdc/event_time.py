"""The event time of a source that is one partition: a watermark behind its latest row, and idleness. Without I/O."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import END_OF_TIME_US, Watermark

#: No row is earlier: year 1. Says that a source is not idle any more, and nothing about event time.
BEGINNING_OF_TIME_US = -62_135_596_800_000_000


class EventTime:
    """None as lateness: only idleness is told."""

    def __init__(
        self,
        *,
        max_lateness_us: int | None,
        idle_after_us: int | None,
        latest_us: int | None,
        is_idle: bool,
        quiet_us: int,
        now_us: int,
    ) -> None:
        self._lateness_us = max_lateness_us
        self._idle_after_us = idle_after_us
        self.latest_us = latest_us
        self.is_idle = is_idle
        self._last_row_us = now_us - quiet_us
        #: What was sent last in this epoch.
        self._sent: Watermark | None = None

    def observe(self, times: pa.Array | None, now_us: int) -> None:
        """Rows came; `times` are their event times, None where the stream has none."""
        self._last_row_us, self.is_idle = now_us, False
        if times is None:
            return
        latest = pc.max(times.cast(pa.timestamp("us", times.type.tz), safe=False)).cast(pa.int64()).as_py()
        if latest is not None and (self.latest_us is None or latest > self.latest_us):
            self.latest_us = latest

    def check_idle(self, now_us: int) -> None:
        """All that was there has been read."""
        if self._idle_after_us is not None and now_us - self._last_row_us >= self._idle_after_us:
            self.is_idle = True

    def quiet_us(self, now_us: int) -> int:
        """What to keep; nothing where nobody asks, so that state stays as it is."""
        return max(0, now_us - self._last_row_us) if self._idle_after_us is not None else 0

    def take(self) -> Watermark | None:
        """What is to be sent now; None where nothing changed since."""
        current = self._current()
        if current is None or current == self._sent:
            return None
        self._sent = current
        return current

    def _current(self) -> Watermark | None:
        if self.is_idle:
            return Watermark.idle()
        if self._lateness_us is not None:
            if self.latest_us is None:
                return None
            # The end of time is for the end of the stream: a row cannot claim it.
            return Watermark.event_time(min(self.latest_us - self._lateness_us, END_OF_TIME_US - 1))
        return Watermark.event_time(BEGINNING_OF_TIME_US) if self._sent is not None else None
