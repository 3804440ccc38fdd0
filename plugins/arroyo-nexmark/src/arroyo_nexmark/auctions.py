"""The table `auction`."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from arroyo_nexmark.columns import TIMESTAMP, Columns, timestamps
from arroyo_nexmark.randomness import Int64s, high_below, low_below, price
from arroyo_nexmark.rules import CATEGORY_COUNT, FIRST_AUCTION_ID, FIRST_CATEGORY_ID
from arroyo_nexmark.text import exact_text, extra_lengths, join_text, spaced_lengths, spaced_text

AUCTION = pa.schema(
    [
        ("id", pa.int64()),
        ("item_name", pa.string()),
        ("description", pa.string()),
        ("initial_bid", pa.int64()),
        ("reserve", pa.int64()),
        ("date_time", TIMESTAMP),
        ("expires", TIMESTAMP),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)

_NAME_LENGTH = 20
_DESCRIPTION_LENGTH = 100
#: The bytes of an auction beside its strings, as Nexmark counts them: six numbers.
_USED = 48


class Auctions(Columns):
    """Auctions by the hot seller of the last hundred people, or by anyone active."""

    prefix = "auction"

    @cached_property
    def id(self) -> pa.Array:
        return pa.array(self.rules.last_auction(self.numbers) + FIRST_AUCTION_ID)

    @cached_property
    def item_name(self) -> pa.Array:
        return join_text([spaced_text(self.draw("item_name"), _NAME_LENGTH)])

    @cached_property
    def description(self) -> pa.Array:
        return join_text([spaced_text(self.draw("description"), _DESCRIPTION_LENGTH)])

    @cached_property
    def initial_bid(self) -> pa.Array:
        return pa.array(self._initial_bids)

    @cached_property
    def reserve(self) -> pa.Array:
        return pa.array(self._initial_bids + price(self.draw("reserve")))

    @cached_property
    def expires(self) -> pa.Array:
        horizon_ms = max(self.rules.auction_horizon_us() // 1000 * 2, 1)
        length_ms = 1 + high_below(self.draw("expires"), horizon_ms)
        return timestamps(self.event_time_us + length_ms * 1000)

    @cached_property
    def seller(self) -> pa.Array:
        return self.people("seller", hot_ratio=self.rules.hot_seller_ratio, hot_place=0)

    @cached_property
    def category(self) -> pa.Array:
        return pa.array(FIRST_CATEGORY_ID + low_below(self.draw("category"), CATEGORY_COUNT))

    @cached_property
    def extra(self) -> pa.Array:
        bits = self.draw("extra")
        names = spaced_lengths(self.draw("item_name"), _NAME_LENGTH)
        descriptions = spaced_lengths(self.draw("description"), _DESCRIPTION_LENGTH)
        lengths = extra_lengths(bits, _USED + names + descriptions, self.rules.avg_auction_size)
        return join_text([exact_text(bits, lengths)])

    @cached_property
    def _initial_bids(self) -> Int64s:
        return price(self.draw("initial_bid"))
