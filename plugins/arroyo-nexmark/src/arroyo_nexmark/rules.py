"""The rules of the Nexmark generator that do not depend on chance: who is which event, when, with which id."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from arroyo_core.api import with_defaults
from arroyo_nexmark.nexmark_pb2 import NexmarkSource
from arroyo_nexmark.randomness import Int64s

_DEFAULTS = with_defaults(NexmarkSource())

FIRST_AUCTION_ID = 1000
FIRST_PERSON_ID = 1000
FIRST_CATEGORY_ID = 10
CATEGORY_COUNT = 5
#: One in this many people or auctions can be hot.
HOT_GROUP = 100
#: How far ahead of the last one an id may point, as if two events had been swapped on their way.
ID_LEAD = 10
#: The factor that scatters the events of an out-of-order group; a prime.
SCATTER = 953


class Kind(IntEnum):
    """The kind of an event, in the order in which the kinds follow each other in a cycle."""

    PERSON = 0
    AUCTION = 1
    BID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The options of the generator; see the comments of `nexmark.proto`."""

    seed: int = _DEFAULTS.seed
    person_proportion: int = _DEFAULTS.person_proportion
    auction_proportion: int = _DEFAULTS.auction_proportion
    bid_proportion: int = _DEFAULTS.bid_proportion
    event_rate: int = _DEFAULTS.event_rate
    base_time_us: int = _DEFAULTS.base_time.ToMicroseconds()
    out_of_order_group_size: int = _DEFAULTS.out_of_order_group_size
    hot_auction_ratio: int = _DEFAULTS.hot_auction_ratio
    hot_seller_ratio: int = _DEFAULTS.hot_seller_ratio
    hot_bidder_ratio: int = _DEFAULTS.hot_bidder_ratio
    in_flight_auctions: int = _DEFAULTS.in_flight_auctions
    active_people: int = _DEFAULTS.active_people
    avg_person_size: int = _DEFAULTS.avg_person_size
    avg_auction_size: int = _DEFAULTS.avg_auction_size
    avg_bid_size: int = _DEFAULTS.avg_bid_size

    @property
    def cycle(self) -> int:
        """The events after which the kinds repeat: 50."""
        return self.person_proportion + self.auction_proportion + self.bid_proportion

    def offsets(self, kind: Kind) -> tuple[int, int]:
        """The half-open range of a cycle in which the events of this kind are."""
        first_bid = self.person_proportion + self.auction_proportion
        return {
            Kind.PERSON: (0, self.person_proportion),
            Kind.AUCTION: (self.person_proportion, first_bid),
            Kind.BID: (first_bid, self.cycle),
        }[kind]

    def kinds(self, numbers: Int64s) -> Int64s:
        """The kind of each event."""
        offset = numbers % self.cycle
        first_bid = self.person_proportion + self.auction_proportion
        return (offset >= self.person_proportion).astype(np.int64) + (offset >= first_bid)

    def numbers_at(self, positions: Int64s, events: int | None) -> Int64s:
        """The events emitted at these positions.

        In order, unless there are out-of-order groups: within one, position p has event number
        p * 953 modulo the group's size. A last group cut short by `events` stays in order, so that
        the events are 0 to `events` - 1 either way.
        """
        size = self.out_of_order_group_size
        if size == 1:
            return positions
        offset = positions % size
        first = positions - offset
        # offset < size <= 2^32, so that the product cannot overflow.
        numbers = first + offset * SCATTER % size
        return numbers if events is None else np.where(first + size <= events, numbers, positions)

    def event_time_us(self, numbers: Int64s) -> Int64s:
        """Event time in microseconds since 1970; whole seconds are split off so that nothing overflows."""
        seconds = numbers // self.event_rate
        rest = numbers - seconds * self.event_rate
        times: Int64s = self.base_time_us + seconds * 1_000_000 + rest * 1_000_000 // self.event_rate
        return times

    def last_person(self, numbers: Int64s) -> Int64s:
        """The last person (counted from 0) at each event: itself where it is one."""
        cycle, offset = self._place(numbers)
        return cycle * self.person_proportion + np.minimum(offset, self.person_proportion - 1)

    def last_auction(self, numbers: Int64s) -> Int64s:
        """The last auction (counted from 0) at each event: itself where it is one; -1 before the first."""
        cycle, offset = self._place(numbers)
        within = np.clip(offset - self.person_proportion, -1, self.auction_proportion - 1)
        return cycle * self.auction_proportion + within

    def auction_horizon_us(self) -> int:
        """The event time in which `in_flight_auctions` auctions are made: the mean length of an auction."""
        events = self.in_flight_auctions * self.cycle // self.auction_proportion
        return events * 1_000_000 // self.event_rate

    def _place(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        cycle = numbers // self.cycle
        return cycle, numbers - cycle * self.cycle
