"""Merging the watermarks of several channels into one that never goes backwards."""

from __future__ import annotations

from collections.abc import Iterable

from arroyo_core.api import Watermark

Channel = tuple[int, int]


class WatermarkHolder:
    """The watermarks of a chain's channels, each `(input, sender)`.

    Merged: undefined while any channel is unset; else the least event time of those not idle;
    idle if all are. A channel, and the merged value, never goes backwards.
    """

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels: dict[Channel, Watermark | None] = dict.fromkeys(channels)
        self._merged: Watermark | None = None
        self._last_present_us: int | None = None

    @property
    def merged(self) -> Watermark | None:
        return self._merged

    @property
    def last_present_us(self) -> int | None:
        """The last event time, through idleness."""
        return self._last_present_us

    def restore(self, channel: Channel, watermark: Watermark | None) -> None:
        """Set what a channel had at the end of the last epoch; nothing fires."""
        self._channels[channel] = watermark
        self._merge()

    def update(self, channel: Channel, watermark: Watermark) -> Watermark | None:
        """Take a channel's new watermark; returns the merged one if it moved, else None."""
        previous = self._channels[channel]
        if _is_backwards(previous, watermark):
            return None
        self._channels[channel] = watermark
        before = self._merged
        self._merge()
        return self._merged if self._merged != before else None

    def input_watermark(self, index: int) -> Watermark | None:
        """The merged watermark of one input's channels, to carry into the next epoch."""
        mine = [watermark for (number, _), watermark in self._channels.items() if number == index]
        return least_watermark(mine)

    def _merge(self) -> None:
        merged = least_watermark(self._channels.values())
        if merged is None or _is_backwards(self._merged, merged):
            return
        if merged.event_time_us is not None:
            # After an idle spell the slowest channel may return with an older time: the promise stands.
            if self._last_present_us is not None and merged.event_time_us < self._last_present_us:
                return
            self._last_present_us = merged.event_time_us
        self._merged = merged


def least_watermark(watermarks: Iterable[Watermark | None]) -> Watermark | None:
    """The minimum over those that are not idle; None while any is unset, idle if all are."""
    times = []
    is_idle = False
    for watermark in watermarks:
        if watermark is None:
            return None
        if watermark.event_time_us is None:
            is_idle = True
        else:
            times.append(watermark.event_time_us)
    if times:
        return Watermark.event_time(min(times))
    return Watermark.idle() if is_idle else None


def _is_backwards(previous: Watermark | None, new: Watermark) -> bool:
    if previous is None or previous.event_time_us is None or new.event_time_us is None:
        return False
    return new.event_time_us < previous.event_time_us
