"""Functions for queries of Nexmark that are otherwise written in SQL: one of every kind that SQL and windows call."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udaf, udf

RATE = Decimal("0.908")
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = re.compile("(?:&|^)channel_id=([^&]*)")


@udf(arguments=[pa.int64()], returns=pa.decimal128(23, 3))
def in_euros(price: int) -> Decimal:
    return RATE * price


@udf
def is_usual(price: int) -> bool:
    return 1_000_000 < RATE * price < 50_000_000


@udf
def time_type(at: datetime) -> str:
    if 8 <= at.hour <= 18:
        return "dayTime"
    return "nightTime" if at.hour <= 6 or at.hour >= 20 else "otherTime"


@udf
def occurrences(text: pa.StringArray, part: pa.StringArray) -> pa.Int64Array:
    return pc.count_substring(text, pattern=part[0].as_py())


@udf
def channel_id(channel: str, url: str) -> str | None:
    known = CHANNELS.get(channel.lower())
    if known is not None:
        return known
    found = CHANNEL_ID.search(url)
    return found[1] if found else None


@udf
def folder(url: str, place: int) -> str:
    parts = url.split("/")
    return parts[place] if place < len(parts) else ""


@udaf
class UsualChannel:
    """The channel of most bids; of several the least."""

    def init(self) -> dict[str, int]:
        return {}

    def update(self, state: dict[str, int], channel: str) -> dict[str, int]:
        state[channel] = state.get(channel, 0) + 1
        return state

    def merge(self, first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
        for channel, count in second.items():
            first[channel] = first.get(channel, 0) + count
        return first

    def finish(self, state: dict[str, int]) -> str | None:
        return min(state, key=lambda channel: (-state[channel], channel)) if state else None


FUNCTIONS = [in_euros, is_usual, time_type, occurrences, channel_id, folder, UsualChannel]
