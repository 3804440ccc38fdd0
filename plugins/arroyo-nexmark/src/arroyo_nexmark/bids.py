"""The table `bid`."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_nexmark.columns import TIMESTAMP, Columns
from arroyo_nexmark.randomness import Int64s, column_key, draw, high_below, low_below, price
from arroyo_nexmark.rules import FIRST_AUCTION_ID, HOT_GROUP, ID_LEAD
from arroyo_nexmark.text import Text, constant_text, exact_text, extra_lengths, join_text, spaced_text

BID = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("date_time", TIMESTAMP),
        ("extra", pa.string()),
    ]
)

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNEL_COUNT = 10_000
#: The bytes of a bid beside `extra`, as Nexmark counts them: four numbers.
_USED = 32


class Bids(Columns):
    """Bids on the hot auction of the last hundred, or on any that is likely to be open."""

    prefix = "bid"

    @cached_property
    def auction(self) -> pa.Array:
        bits = self.draw("auction")
        last = self.rules.last_auction(self.numbers)
        hot = last // HOT_GROUP * HOT_GROUP
        first = np.maximum(last - self.rules.in_flight_auctions, 0)
        other = first + high_below(bits, last - first + (1 + ID_LEAD))
        ids = np.where(low_below(bits, self.rules.hot_auction_ratio) > 0, hot, other)
        ids += FIRST_AUCTION_ID
        return pa.array(ids)

    @cached_property
    def bidder(self) -> pa.Array:
        # The second of the hundred: the first is the hot seller.
        return self.people("bidder", hot_ratio=self.rules.hot_bidder_ratio, hot_place=1)

    @cached_property
    def price(self) -> pa.Array:
        return pa.array(price(self.draw("price")))

    @cached_property
    def channel(self) -> pa.Array:
        return _channels().take(self._channel_index)

    @cached_property
    def url(self) -> pa.Array:
        return _urls(self.rules.seed).take(self._channel_index)

    @cached_property
    def extra(self) -> pa.Array:
        bits = self.draw("extra")
        return join_text([exact_text(bits, extra_lengths(bits, _USED, self.rules.avg_bid_size))])

    @cached_property
    def _channel_index(self) -> pa.Array:
        """Half of the bids come through one of the hot channels, which stand after the others."""
        bits = self.draw("channel")
        hot = CHANNEL_COUNT + high_below(bits, len(HOT_CHANNELS))
        return pa.array(np.where((bits & np.uint64(1)).view(np.int64) == 1, hot, high_below(bits, CHANNEL_COUNT)))


@lru_cache(maxsize=1)
def _channels() -> pa.StringArray:
    numbered = pc.binary_join_element_wise(
        pa.scalar("channel"), pa.array(np.arange(CHANNEL_COUNT)).cast(pa.string()), "-"
    )
    return pa.concat_arrays([numbered, pa.array(HOT_CHANNELS)])


@lru_cache(maxsize=4)
def _urls(seed: int) -> pa.StringArray:
    """One address per channel; nine in ten of the numbered channels carry an id."""
    numbers = np.arange(CHANNEL_COUNT + len(HOT_CHANNELS), dtype=np.int64)
    parts: list[Text] = [constant_text("https://www.nexmark.com/", len(numbers))]
    for part in range(3):
        word = spaced_text(draw(numbers, column_key(seed, f"bid.url.{part}")), 5)
        underscored = np.where(word.block == ord(" "), np.uint8(ord("_")), word.block)
        parts += [Text(underscored, word.lengths), constant_text("/", len(numbers))]
    parts.append(constant_text("item.htm?query=1", len(numbers)))
    plain = join_text(parts)
    ids = pa.array(_channel_ids(numbers)).cast(pa.string())
    with_id = pc.binary_join_element_wise(plain, ids, "&channel_id=")
    chosen = low_below(draw(numbers, column_key(seed, "bid.url.id")), 10) > 0
    return pc.if_else(pa.array(chosen & (numbers < CHANNEL_COUNT)), with_id, plain)


def _channel_ids(numbers: Int64s) -> Int64s:
    """The numbers with their 32 bits reversed, read as signed, without the sign."""
    reversed_bits = np.zeros_like(numbers)
    for bit in range(32):
        reversed_bits |= (numbers >> bit & 1) << (31 - bit)
    signed = np.where(reversed_bits >= 2**31, reversed_bits - 2**32, reversed_bits)
    return np.abs(signed)
