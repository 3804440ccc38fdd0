"""What the rows of all tables share: an event number, a time, ids that refer to people."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from arroyo_nexmark.randomness import Int64s, UInt64s, column_key, draw, high_below, low_below
from arroyo_nexmark.rules import FIRST_PERSON_ID, HOT_GROUP, ID_LEAD, Rules

TIMESTAMP = pa.timestamp("us", tz="UTC")


class Columns:
    """The columns of the events `numbers`, each made when it is first asked for.

    A subclass has one property per column of its table, named as the column, and a `prefix`
    that sets its random draws apart from those of other tables.
    """

    prefix: str

    def __init__(self, rules: Rules, numbers: Int64s) -> None:
        self.rules = rules
        self.numbers = numbers

    @cached_property
    def date_time(self) -> pa.Array:
        return timestamps(self.event_time_us)

    @cached_property
    def event_time_us(self) -> Int64s:
        return self.rules.event_time_us(self.numbers)

    @cached_property
    def last_person(self) -> Int64s:
        return self.rules.last_person(self.numbers)

    def draw(self, column: str) -> UInt64s:
        """The random bits of a column; the same at every call."""
        return draw(self.numbers, column_key(self.rules.seed, f"{self.prefix}.{column}"))

    def people(self, column: str, *, hot_ratio: int, hot_place: int) -> pa.Array:
        """Ids of people: the hot one of the last hundred, or one of the last active ones and a few to come."""
        bits = self.draw(column)
        last = self.last_person
        hot = last // HOT_GROUP * HOT_GROUP + hot_place
        active = np.minimum(last + 1, self.rules.active_people)
        other = last + 1 - active + high_below(bits, active + ID_LEAD)
        ids = np.where(low_below(bits, hot_ratio) > 0, hot, other)
        ids += FIRST_PERSON_ID
        return pa.array(ids)


def timestamps(times_us: Int64s) -> pa.Array:
    return pa.array(times_us).view(TIMESTAMP)
