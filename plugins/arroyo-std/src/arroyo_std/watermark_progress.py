"""How a watermark advances, becomes idle and survives restarts: decisions over times, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arroyo_core.api import END_OF_TIME_US, Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgress:
    """What one subtask keeps between two epochs."""

    #: How many subtasks there were when this was written.
    parallelism: int
    #: The watermark so far; None before the first row.
    watermark_us: int | None
    #: The watermark last sent; None before the first.
    sent_us: int | None
    is_idle: bool
    #: For how long no row had come. A length and not a moment: the time a job was down is nobody's idleness.
    quiet_us: int


def restore_progress(
    stored: Mapping[int, StoredProgress], *, task_index: int, parallelism: int
) -> StoredProgress | None:
    """Where a subtask goes on, given what all subtasks stored.

    With the parallelism unchanged, where it stopped. Otherwise it may get rows of any of the
    old subtasks, so it starts from the least of their watermarks, and from none as long as one
    of them had none; idle ones do not count. If all were idle it is, too.
    """
    own = stored.get(task_index)
    if own is not None and own.parallelism == parallelism:
        return own
    if not stored:
        return None
    active = [each for each in stored.values() if not each.is_idle]
    known = [each.watermark_us for each in active or stored.values() if each.watermark_us is not None]
    if len(known) < len(active):
        return None
    return StoredProgress(
        parallelism=parallelism,
        watermark_us=min(known, default=None),
        sent_us=None,
        is_idle=not active,
        quiet_us=0 if active else min(each.quiet_us for each in stored.values()),
    )


class WatermarkProgress:
    """The watermark of one subtask: never goes back. Methods return what must be sent now, in its order."""

    def __init__(self, stored: StoredProgress | None, *, period_us: int, idle_time_us: int | None, now_us: int) -> None:
        self._period_us = period_us
        self._idle_time_us = idle_time_us
        self._watermark_us = stored.watermark_us if stored else None
        self._sent_us = stored.sent_us if stored else None
        self._is_idle = stored.is_idle if stored else False
        self._last_row_us = now_us - (stored.quiet_us if stored else 0)
        self._has_ended = False

    def observe(self, watermark_us: int | None, *, now_us: int) -> list[Watermark]:
        """Rows came, and ask for this watermark; None when none of them had an event time.

        Rows without event time do not end idleness: there would be nothing to send.
        """
        if watermark_us is None or self._has_ended:
            return []
        self._last_row_us = now_us
        # The end of time is for the end of the stream: a row cannot claim it.
        watermark_us = min(watermark_us, END_OF_TIME_US - 1)
        if self._watermark_us is None or watermark_us > self._watermark_us:
            self._watermark_us = watermark_us
        is_due = self._sent_us is None or self._watermark_us - self._sent_us > self._period_us
        if not is_due and not self._is_idle:
            return []
        self._is_idle = False
        return self._send()

    def check_idle(self, *, now_us: int) -> list[Watermark]:
        """Idle, once, when no row came for the idle time."""
        if self._idle_time_us is None or now_us - self._last_row_us < self._idle_time_us:
            return []
        return self.become_idle()

    def become_idle(self) -> list[Watermark]:
        """Idle, once, until the next row; before that what was held back, for nothing else would ever send it."""
        if self._is_idle or self._has_ended:
            return []
        held_back = self._send() if self._watermark_us != self._sent_us else []
        self._is_idle = True
        return [*held_back, Watermark.idle()]

    def current(self) -> list[Watermark]:
        """What holds now, sent or not; for the barrier, so that nothing is held back over it."""
        if self._has_ended:
            return []
        return [Watermark.idle()] if self._is_idle else self._send()

    def end(self) -> None:
        """The stream has ended; nothing is sent from here on."""
        self._has_ended = True

    def store(self, *, parallelism: int, now_us: int) -> StoredProgress:
        return StoredProgress(
            parallelism=parallelism,
            watermark_us=self._watermark_us,
            sent_us=self._sent_us,
            is_idle=self._is_idle,
            quiet_us=max(now_us - self._last_row_us, 0),
        )

    def _send(self) -> list[Watermark]:
        if self._watermark_us is None:
            return []
        self._sent_us = self._watermark_us
        return [Watermark.event_time(self._watermark_us)]
