"""Numbers of a condition, as those of a column are compared with them.

A filter casts a column and a constant to a type that both of them fit before it compares them, and may round either.
Which type that is depends on how the constant is written: `9`, `9.0` and `CAST(9 AS REAL)` differ. So a constant stands
for a few values, and what holds for none of them does not hold in any filter. Where a column would be rounded in a way
that is not followed here, it stands for none, and nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np

from arroyo_formats.conditions.bounds import Bounds, Value

#: From there on a filter may read a whole number as a float64.
_GREATEST_WHOLE = 2**63
#: Below that, a float64 times a power of ten is nearest to the whole number that is meant.
_GREATEST_SHORT = 10**14
_SMALLEST = 5e-324


class NumberType(StrEnum):
    """What a constant is in a filter."""

    WHOLE = "whole"
    REAL = "real"
    DOUBLE = "double"
    DECIMAL = "decimal"
    #: One of several whole and floating-point numbers. Whole columns are cast to a decimal for some of these.
    MIXED = "mixed"
    #: What a filter makes of it is not followed here.
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Number:
    """A constant as it is written, and its type."""

    value: int | Decimal
    type: NumberType

    @property
    def negative(self) -> Number:
        """Of a literal, the same with a minus sign."""
        return literal(-self.value if isinstance(self.value, int) else self.value.copy_negate())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that a constant stands for. With `is_rounded`, values of the column are rounded to float64 first."""

    value: Value
    is_rounded: bool = False

    def bound(self, value: Value) -> Value:
        return as_float(value) if self.is_rounded and not isinstance(value, bytes) else value


#: Whether -0.0 is less than 0.0 is up to the filter.
_AROUND_ZERO = (Candidate(-_SMALLEST), Candidate(_SMALLEST))


def literal(value: int | Decimal) -> Number:
    """A number without a cast."""
    is_whole = isinstance(value, int) and -_GREATEST_WHOLE <= value < 2 * _GREATEST_WHOLE
    return Number(value, NumberType.WHOLE if is_whole else NumberType.DOUBLE)


def as_whole(number: Number) -> Number | None:
    """None for a number that may have a fraction."""
    if not isinstance(number.value, int):
        return None
    return Number(number.value, NumberType.WHOLE if number.type is NumberType.WHOLE else NumberType.UNSURE)


def as_floating(number: Number, kind: NumberType) -> Number:
    """As one of the two floating-point types."""
    is_followed = number.type in (NumberType.WHOLE, NumberType.DOUBLE, kind)
    return Number(number.value, kind if is_followed else NumberType.UNSURE)


def as_decimal(number: Number, precision: int, scale: int) -> Number | None:
    """None where the type has fewer digits than the number."""
    value = Decimal(number.value)
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    if not isinstance(exponent, int) or len(digits) > precision or -exponent > scale:
        return None
    is_short = scale >= 0 and abs(int("".join(map(str, digits)))) * 10 ** (scale + exponent) < _GREATEST_SHORT
    is_followed = number.type in (NumberType.WHOLE, NumberType.DECIMAL)
    is_followed = is_followed or (number.type is NumberType.DOUBLE and is_short)
    return Number(value, NumberType.DECIMAL if is_followed else NumberType.UNSURE)


def common_type(types: Set[NumberType]) -> NumberType:
    """As what a column is compared with all of some constants: those of `IN` and `BETWEEN` are cast to one type."""
    if len(types) == 1:
        return next(iter(types))
    return NumberType.UNSURE if types & {NumberType.DECIMAL, NumberType.UNSURE} else NumberType.MIXED


def as_float(value: int | float | Decimal) -> float:
    """The nearest float64; infinity where there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_candidates(number: Number, bounds: Bounds) -> Iterator[Candidate]:
    """The values that a constant stands for beside numbers with these bounds; none where that is not known."""
    value, kind = number.value, number.type
    if isinstance(bounds.low, float):
        if kind not in (NumberType.DECIMAL, NumberType.UNSURE):
            yield from _beside_floats(value)
    elif isinstance(bounds.low, Decimal):
        if kind in (NumberType.WHOLE, NumberType.DECIMAL):
            yield Candidate(value)
    elif kind in (NumberType.WHOLE, NumberType.DOUBLE):
        yield Candidate(value)
        if kind is NumberType.DOUBLE or not -_GREATEST_WHOLE < value < _GREATEST_WHOLE:
            yield Candidate(as_float(value), is_rounded=True)
        if kind is NumberType.DOUBLE and value == 0:
            yield from _AROUND_ZERO


def _beside_floats(value: int | Decimal) -> Iterator[Candidate]:
    yield Candidate(value)
    yield Candidate(as_float(value))
    # A filter may round to float32 at once or by way of float64, with one of these for its result.
    with np.errstate(over="ignore", under="ignore"):
        nearest = np.float32(as_float(value))
        around = (nearest, np.nextafter(nearest, np.float32(-math.inf)), np.nextafter(nearest, np.float32(math.inf)))
    yield from (Candidate(float(each)) for each in around)
    if value == 0:
        yield from _AROUND_ZERO
