"""Watermarks as levels: what a sender last said holds until it says something else, over any number of epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    #: Where some of what comes together here has come to, if that is further: idleness of all of it leads there. At the
    #: end of time, where this place was before.
    furthest_us: int | None = None

    @property
    def watermark(self) -> Watermark | None:
        """What was said last; None while nothing was."""
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

    @property
    def reached_us(self) -> int | None:
        """The furthest that anything here has come, but for its end."""
        return self.furthest_us if self.has_ended else _latest_us((self.event_time_us, self.furthest_us))

    def after(self, watermark: Watermark) -> Level:
        """The level once this watermark has come; one that is older than an earlier one only ends idleness."""
        if watermark.event_time_us is None:
            return Level(_latest_us((self.event_time_us, self.furthest_us)), is_idle=True)
        latest_us = _latest_us((self.event_time_us, watermark.event_time_us))
        return Level(latest_us).with_furthest(self.reached_us)

    def with_furthest(self, furthest_us: int | None) -> Level:
        """The same where something has come that far."""
        is_behind = self.event_time_us is None or (furthest_us is not None and furthest_us > self.event_time_us)
        return replace(self, furthest_us=furthest_us if is_behind or self.has_ended else None)

    def since(self, known: Level) -> Sequence[Watermark]:
        """What one has to be told who knows an earlier level: the event time, and then idleness."""
        if self.event_time_us is None:
            return [Watermark.idle()] if self.is_idle and not known.is_idle else []
        is_further = known.event_time_us is None or self.event_time_us > known.event_time_us
        told = []
        if is_further or (known.is_idle and not self.is_idle):
            told.append(Watermark.event_time(self.event_time_us))
        if self.is_idle and (is_further or not known.is_idle):
            told.append(Watermark.idle())
        return told


UNSET = Level()


def least_level(levels: Iterable[Level]) -> Level:
    """The minimum over those that are neither idle nor at their end; unset while any is unset.

    Idle if all are, but for those at their end, and then where the furthest has come; at the end if all are.
    """
    found = list(levels)
    counted = [level for level in found if not level.has_ended]
    active = [level for level in counted if not level.is_idle]
    times = [level.event_time_us for level in active if level.event_time_us is not None]
    least = Level(min(times) if times and len(times) == len(active) else None)
    if found and not counted:
        least = Level(END_OF_TIME_US)
    least = least.with_furthest(_latest_us(level.reached_us for level in found))
    return least.after(Watermark.idle()) if counted and not active else least


def _latest_us(times_us: Iterable[int | None]) -> int | None:
    return max((time_us for time_us in times_us if time_us is not None), default=None)


class WatermarkHolder:
    """Merges the levels of a chain's channels into one that never goes backwards.

    Merged: undefined while any channel is unset; else the least event time of those not idle. If all are idle, so is
    it, and where the furthest of them has come: that one may have been the last to become idle, when it alone counted,
    and within an epoch nobody knows. One that has ended does not count, unless all have: idle ones may come back.

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
        #: Of any channel; `merged` knows it also of channels that are no more.
        self._furthest_us = merged.reached_us
        self._merged = merged
        for channel in channels:
            self._set(channel, (restored or {}).get(channel, UNSET))

    @property
    def merged(self) -> Level:
        return self._merged

    @property
    def channels(self) -> Mapping[Channel, Level]:
        return self._channels

    def update(self, channel: Channel, watermark: Watermark) -> Sequence[Watermark]:
        """Take a channel's new watermark; returns what the merged one does, if it moves."""
        self._set(channel, self._channels[channel].after(watermark))
        return self._merge()

    def end_epoch(self, channel: Channel) -> Sequence[Watermark]:
        """The channel has delivered its barrier: nothing follows, so that it counts as idle if it is."""
        self._ended.add(channel)
        self._bind(channel)
        return self._merge()

    def learn(self, restored: Mapping[Channel, Level]) -> None:
        """Take the levels at the end of the last epoch, where only what had come was known when this one began.

        Channels tell all but how far others have come from which a sender's level was merged, and that counts only
        where all channels are idle or at their end: so it is learned before any of them delivers its barrier.
        """
        for channel, level in restored.items():
            known = self._channels[channel]
            self._channels[channel] = known.with_furthest(_latest_us((known.reached_us, level.reached_us)))
            self._furthest_us = _latest_us((self._furthest_us, level.reached_us))
        self._merged = self._merged.with_furthest(self._furthest_us)

    def restate(self) -> Sequence[Watermark]:
        """What the merged watermark does, if the restored channels come to another one than `merged`."""
        return self._merge()

    def _set(self, channel: Channel, level: Level) -> None:
        previous = self._channels.get(channel)
        self._active += _is_active(level) - (previous is not None and _is_active(previous))
        self._open += (not level.has_ended) - (previous is not None and not previous.has_ended)
        self._channels[channel] = level
        self._furthest_us = _latest_us((self._furthest_us, level.reached_us))
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

    def _merge(self) -> Sequence[Watermark]:
        before = self._merged
        self._merged = before.with_furthest(self._furthest_us)
        current = self._current()
        if current is not None:
            self._merged = self._merged.after(current)
        return self._merged.since(before)

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
