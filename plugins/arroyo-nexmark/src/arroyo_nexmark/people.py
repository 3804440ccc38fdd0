"""The table `person`."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_nexmark.columns import TIMESTAMP, Columns
from arroyo_nexmark.randomness import Int64s, high_below, low_below
from arroyo_nexmark.rules import FIRST_PERSON_ID
from arroyo_nexmark.text import (
    constant_text,
    digits,
    exact_text,
    extra_lengths,
    join_text,
    spaced_text,
)

PERSON = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("email_address", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("date_time", TIMESTAMP),
        ("extra", pa.string()),
    ]
)

_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_NAMES = pa.array([f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES])
_CITIES = pa.array(
    [
        "Phoenix",
        "Los Angeles",
        "San Francisco",
        "Boise",
        "Portland",
        "Bend",
        "Redmond",
        "Seattle",
        "Kent",
        "Cheyenne",
    ]
)
_STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])


class People(Columns):
    """People, each with the next id."""

    prefix = "person"

    @cached_property
    def id(self) -> pa.Array:
        return pa.array(self.last_person + FIRST_PERSON_ID)

    @cached_property
    def name(self) -> pa.Array:
        return _NAMES.take(pa.array(low_below(self.draw("name"), len(_NAMES))))

    @cached_property
    def email_address(self) -> pa.Array:
        rows = len(self.numbers)
        user = spaced_text(self.draw("email_user"), 7)
        host = spaced_text(self.draw("email_host"), 5)
        return join_text([user, constant_text("@", rows), host, constant_text(".com", rows)])

    @cached_property
    def credit_card(self) -> pa.Array:
        space = constant_text(" ", len(self.numbers))
        first, second = self.draw("credit_card_first"), self.draw("credit_card_second")
        quads = [choose(bits, 10_000) for bits in (first, second) for choose in (high_below, low_below)]
        parts = [digits(quad, 4) for quad in quads]
        return join_text([parts[0], space, parts[1], space, parts[2], space, parts[3]])

    @cached_property
    def city(self) -> pa.Array:
        return _CITIES.take(pa.array(low_below(self.draw("city"), len(_CITIES))))

    @cached_property
    def state(self) -> pa.Array:
        return _STATES.take(pa.array(low_below(self.draw("state"), len(_STATES))))

    @cached_property
    def extra(self) -> pa.Array:
        bits = self.draw("extra")
        strings = (self.name, self.email_address, self.credit_card, self.city, self.state)
        used: Int64s = np.sum([pc.binary_length(column).to_numpy() for column in strings], axis=0, dtype=np.int64)
        return join_text([exact_text(bits, extra_lengths(bits, 8 + used, self.rules.avg_person_size))])
