"""Watermarks as levels: what a sender last said holds until it says something else, over any number of epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from arroyo_core.api import END_OF_TIME_US, Watermark

#: Of a receiver: which of its inputs, and which subtask upstream sends.
Channel = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Level:
    """How far event time has come at one place, and whether that place is idle.

    The event time survives idleness and never goes backwards.
    """

    #: None before the first watermark.
    event_time_us: int | None = None
    is_idle: bool = False

    @property
    def watermark(self) -> Watermark | None:
        """The level as a message; None while there has been none."""
        if self.is_idle:
            return Watermark.idle()
        return None if self.event_time_us is None else Watermark.event_time(self.event_time_us)

    @property
    def is_unset(self) -> bool:
        return self.event_time_us is None and not self.is_idle

    @property
    def has_ended(self) -> bool:
        """Whether nothing follows; such a place says nothing about when others are."""
        return self.event_time_us is not None and self.event_time_us >= END_OF_TIME_US

    def after(self, watermark: Watermark) -> Level:
        """The level once this watermark has come; one that is older than an earlier one only ends idleness."""
        if watermark.event_time_us is None:
            return Level(self.event_time_us, is_idle=True)
        if self.event_time_us is None:
            return Level(watermark.event_time_us)
        return Level(max(self.event_time_us, watermark.event_time_us))


UNSET = Level()


def least_level(levels: Iterable[Level]) -> Level:
    """The minimum over those that are neither idle nor at their end; unset while any is unset.

    Idle if all are, but for those at their end; at the end if all are.
    """
    found = list(levels)
    levels = [level for level in found if not level.has_ended] or found
    if not levels or any(level.is_unset for level in levels):
        return UNSET
    counted = [level for level in levels if not level.is_idle]
    times = [level.event_time_us for level in counted or levels if level.event_time_us is not None]
    return Level(min(times, default=None), is_idle=not counted)


class WatermarkHolder:
    """Merges the levels of a chain's channels into one that never goes backwards.

    Merged: undefined while any channel is unset; else the least event time of those not idle; idle if all are. One that
    has ended does not count, unless all have: idle ones may come back.

    Idleness counts only once the channel has delivered its barrier. Channels deliver an epoch one after the other, and
    one that says early in the epoch that it is idle, or was idle when the epoch began, may have rows later in it: the
    others must not run ahead of those. So the cut into epochs does not decide which rows are late.
    """

    def __init__(
        self, channels: Iterable[Channel], *, restored: Mapping[Channel, Level] | None = None, merged: Level = UNSET
    ) -> None:
        """`restored` are the levels at the end of the last epoch, and `merged` what they had come to."""
        self._channels: dict[Channel, Level] = {}
        #: Those that have delivered their barrier.
        self._ended: set[Channel] = set()
        #: Neither idle nor at their end.
        self._active = 0
        #: Not at their end.
        self._open = 0
        #: The event time of each channel that holds the merged one back.
        self._bounds: dict[Channel, int | None] = {}
        self._unknown = 0
        #: The bounds, least first; also ones that hold no longer. With it a watermark costs no look at all channels.
        self._least: list[tuple[int, Channel]] = []
        self._merged = merged
        for channel in channels:
            self._set(channel, (restored or {}).get(channel, UNSET))

    @property
    def merged(self) -> Level:
        return self._merged

    @property
    def channels(self) -> Mapping[Channel, Level]:
        return self._channels

    def update(self, channel: Channel, watermark: Watermark) -> Watermark | None:
        """Take a channel's new watermark; returns the merged one if it moved, else None."""
        self._set(channel, self._channels[channel].after(watermark))
        return self._merge()

    def end_epoch(self, channel: Channel) -> Watermark | None:
        """The channel has delivered its barrier: nothing follows, so that it counts as idle if it is."""
        self._ended.add(channel)
        self._bind(channel)
        return self._merge()

    def restate(self) -> Watermark | None:
        """The merged watermark, if the restored channels come to another one than `merged`."""
        return self._merge()

    def _set(self, channel: Channel, level: Level) -> None:
        previous = self._channels.get(channel)
        self._active += _is_active(level) - (previous is not None and _is_active(previous))
        self._open += (not level.has_ended) - (previous is not None and not previous.has_ended)
        self._channels[channel] = level
        self._bind(channel)

    def _bind(self, channel: Channel) -> None:
        level = self._channels[channel]
        if channel in self._bounds and self._bounds.pop(channel) is None:
            self._unknown -= 1
        if level.has_ended or (level.is_idle and channel in self._ended):
            return
        self._bounds[channel] = level.event_time_us
        if level.event_time_us is None:
            self._unknown += 1
        else:
            heappush(self._least, (level.event_time_us, channel))

    def _merge(self) -> Watermark | None:
        current = self._current()
        if current is None:
            return None
        level = self._merged.after(current)
        if level == self._merged:
            return None
        self._merged = level
        return level.watermark

    def _current(self) -> Watermark | None:
        """What the channels come to now; None while that is not known."""
        if self._channels and not self._open:
            return Watermark.event_time(END_OF_TIME_US)
        if not self._active:
            return None if self._bounds else Watermark.idle()
        if self._unknown:
            return None
        while self._bounds.get(self._least[0][1]) != self._least[0][0]:
            heappop(self._least)
        return Watermark.event_time(self._least[0][0])


def _is_active(level: Level) -> bool:
    return not level.is_idle and not level.has_ended
