"""A message as msgspec decodes it, for those who decode by themselves."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Bid(msgspec.Struct):
    """The columns of q1; others are skipped."""

    auction: int
    bidder: int
    price: int
    date_time: datetime
    extra: str
