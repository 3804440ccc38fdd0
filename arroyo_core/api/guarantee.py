"""What can happen to a row when something fails: how often it counts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Guarantee(StrEnum):
    """How often a row counts, through failure and restart, at one operator or from end to end."""

    EXACTLY_ONCE = "exactly_once"
    #: A row may count again.
    AT_LEAST_ONCE = "at_least_once"
    #: A row may be lost.
    AT_MOST_ONCE = "at_most_once"
    #: A row may count again, or be lost.
    NONE = "none"

    @property
    def may_repeat(self) -> bool:
        return self in (Guarantee.AT_LEAST_ONCE, Guarantee.NONE)

    @property
    def may_lose(self) -> bool:
        return self in (Guarantee.AT_MOST_ONCE, Guarantee.NONE)

    @property
    def label(self) -> str:
        """In words: `exactly once`, `at least once`, `at most once`, `no guarantee`."""
        return "no guarantee" if self is Guarantee.NONE else self.value.replace("_", " ")

    @classmethod
    def combine(cls, guarantees: Iterable[Guarantee]) -> Guarantee:
        """What all of them together give: where one may repeat and another may lose, nothing is left."""
        parts = list(guarantees)
        may_repeat, may_lose = any(part.may_repeat for part in parts), any(part.may_lose for part in parts)
        if may_repeat and may_lose:
            return cls.NONE
        if may_repeat:
            return cls.AT_LEAST_ONCE
        return cls.AT_MOST_ONCE if may_lose else cls.EXACTLY_ONCE
