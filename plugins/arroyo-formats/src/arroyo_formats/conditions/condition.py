"""Conditions, and what they may be for rows of which only bounds are known.

Of a condition it is told apart whether it may be true, false, and null: `AND`, `OR` and `NOT` follow from that of their
parts. Each may be told of a condition that never is so, and never the other way round.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.conditions.bounds import ANYTHING, Bounds, Kind, Value, kind_of
from arroyo_formats.conditions.literals import Constant, candidates, fits

Lookup = Callable[[str], Bounds]

#: With more columns of floats than that, one that may be NaN may be anything.
MAX_FLOATS = 4


class Outcome(NamedTuple):
    """What a condition may be."""

    true: bool
    false: bool
    null: bool


class Condition(ABC):
    """True, false or null for each row, as SQL has it."""

    @abstractmethod
    def judge(self, bounds: Lookup) -> Outcome:
        """What it may be for rows with these bounds of their columns."""

    @abstractmethod
    def tests(self) -> Iterator[ColumnTest]:
        """All that read a column."""


class ColumnTest(Condition):
    """A condition on one column."""

    column: str

    @property
    @abstractmethod
    def kinds(self) -> Sequence[Kind]:
        """Of which kinds the column may be."""

    def tests(self) -> Iterator[ColumnTest]:
        yield self


@dataclass(frozen=True, slots=True)
class Comparison(ColumnTest):
    """`column OPERATOR constant`."""

    column: str
    operator: str
    constant: Constant
    written: str

    @property
    def kinds(self) -> Sequence[Kind]:
        return [kind for kind in Kind if fits(self.constant, kind)]

    def judge(self, bounds: Lookup) -> Outcome:
        found = bounds(self.column)
        if not found.may_be_value:
            return Outcome(false=False, true=False, null=found.may_be_null)
        if found.low is None or found.high is None:
            return Outcome(true=True, false=True, null=found.may_be_null)
        may, may_not = _COMPARED[self.operator], _COMPARED[_OPPOSITE[self.operator]]
        true = false = is_known = False
        for each in candidates(self.constant, found):
            is_known = True
            low, high = each.bound(found.low), each.bound(found.high)
            true = true or may(low, high, each.value)
            false = false or may_not(low, high, each.value)
        return Outcome(true=true or not is_known, false=false or not is_known, null=found.may_be_null)


@dataclass(frozen=True, slots=True)
class Prefix(ColumnTest):
    """`column LIKE 'beginning%...'`."""

    column: str
    beginning: bytes
    written: str

    @property
    def kinds(self) -> Sequence[Kind]:
        return [Kind.TEXT]

    def judge(self, bounds: Lookup) -> Outcome:
        found = bounds(self.column)
        low, high = found.low, found.high
        true = found.may_be_value
        if true and isinstance(low, bytes) and isinstance(high, bytes):
            true = low[: len(self.beginning)] <= self.beginning <= high
        return Outcome(true=true, false=found.may_be_value, null=found.may_be_null)


@dataclass(frozen=True, slots=True)
class IsNull(ColumnTest):
    """`column IS NULL`."""

    column: str

    @property
    def kinds(self) -> Sequence[Kind]:
        return []

    def judge(self, bounds: Lookup) -> Outcome:
        found = bounds(self.column)
        return Outcome(true=found.may_be_null, false=found.may_be_value, null=False)


@dataclass(frozen=True, slots=True)
class Not(Condition):
    part: Condition

    def judge(self, bounds: Lookup) -> Outcome:
        part = self.part.judge(bounds)
        return Outcome(true=part.false, false=part.true, null=part.null)

    def tests(self) -> Iterator[ColumnTest]:
        yield from self.part.tests()


@dataclass(frozen=True, slots=True)
class Both(Condition):
    """All of the parts: `AND`."""

    parts: tuple[Condition, ...]

    def judge(self, bounds: Lookup) -> Outcome:
        found = [part.judge(bounds) for part in self.parts]
        return Outcome(
            true=all(each.true for each in found),
            false=any(each.false for each in found),
            null=any(each.null for each in found),
        )

    def tests(self) -> Iterator[ColumnTest]:
        for part in self.parts:
            yield from part.tests()


@dataclass(frozen=True, slots=True)
class Either(Condition):
    """Any of the parts: `OR`."""

    parts: tuple[Condition, ...]

    def judge(self, bounds: Lookup) -> Outcome:
        found = [part.judge(bounds) for part in self.parts]
        return Outcome(
            true=any(each.true for each in found),
            false=all(each.false for each in found),
            null=any(each.null for each in found),
        )

    def tests(self) -> Iterator[ColumnTest]:
        for part in self.parts:
            yield from part.tests()


def columns_of(condition: Condition) -> list[str]:
    """The columns that it reads, each once."""
    return list(dict.fromkeys(test.column for test in condition.tests()))


def check_columns(condition: Condition, schema: pa.Schema, *, field: str) -> None:
    """Raise `ConfigError` for a column that is not there, or cannot be compared with its constant."""
    for test in condition.tests():
        name = test.column
        if name not in schema.names:
            near = get_close_matches(name, schema.names, n=1)
            raise ConfigError(
                f"no column {name!r}",
                field=field,
                value=name,
                allowed=schema.names,
                suggestion=near[0] if near else None,
            )
        kind = schema.field(name).type
        if test.kinds and kind_of(kind) not in test.kinds:
            written = getattr(test, "written", "")
            raise ConfigError(
                f"column {name!r} is {kind}, which is not compared with {written} here: that is for a std.filter",
                field=field,
                value=written,
            )


def may_hold(condition: Condition, bounds: Lookup) -> bool:
    """Whether the condition may be true for one of the rows that have these bounds."""
    found = {name: bounds(name) for name in columns_of(condition)}
    floats = [name for name, each in found.items() if each.may_be_nan]
    if len(floats) > MAX_FLOATS:
        found |= {name: replace(ANYTHING, may_be_null=found[name].may_be_null) for name in floats[MAX_FLOATS:]}
    # Of one row, each of these is a number, or NaN: greater than all numbers, or less if it has a sign.
    cases = [[found[name], *_nans(found[name])] for name in floats[:MAX_FLOATS]]
    return any(
        condition.judge({**found, **dict(zip(floats, chosen, strict=False))}.__getitem__).true
        for chosen in itertools.product(*cases)
    )


def _nans(bounds: Bounds) -> Iterator[Bounds]:
    for value in (math.inf, -math.inf):
        yield replace(bounds, low=value, high=value, may_be_nan=False)


def _less(low: Value, high: Value, value: Value) -> bool:
    return low < value  # type: ignore[operator]


def _at_most(low: Value, high: Value, value: Value) -> bool:
    return low <= value  # type: ignore[operator]


def _greater(low: Value, high: Value, value: Value) -> bool:
    return high > value  # type: ignore[operator]


def _at_least(low: Value, high: Value, value: Value) -> bool:
    return high >= value  # type: ignore[operator]


def _equal(low: Value, high: Value, value: Value) -> bool:
    return low <= value <= high  # type: ignore[operator]


def _other(low: Value, high: Value, value: Value) -> bool:
    return not low == value == high


_COMPARED: Mapping[str, Callable[[Value, Value, Value], bool]] = {
    "<": _less,
    "<=": _at_most,
    ">": _greater,
    ">=": _at_least,
    "=": _equal,
    "<>": _other,
}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
#: The same with the sides exchanged.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
