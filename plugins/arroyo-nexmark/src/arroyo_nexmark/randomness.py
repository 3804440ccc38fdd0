"""Randomness by counting: every value is a pure function of (seed, column, event number).

So any subtask can make any events, in any order, and the result is the same on every machine.
All arithmetic is on integers, or on doubles in ways that IEEE 754 defines exactly.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]

#: splitmix64's increment: the golden ratio of 2^64, odd, so that multiples of it never meet early.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_SHIFT_32 = np.uint64(32)

#: Prices span six decades; each of two tables resolves 12 bits of the exponent.
_PRICE_DECADES = 6
_PRICE_STEPS = 4096
_LOW_12 = np.uint64(_PRICE_STEPS - 1)


def column_key(seed: int, column: str) -> np.uint64:
    """The key that tells a column's values from those of all others."""
    digest = hashlib.blake2b(f"{seed}/{column}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def draw(numbers: Int64s, key: np.uint64) -> UInt64s:
    """64 random bits for each number: splitmix64 at position `number` of the stream `key`."""
    state = numbers.view(np.uint64) * GOLDEN
    state += key
    return mix(state)


def mix(state: UInt64s) -> UInt64s:
    """splitmix64's finaliser, in place; returns its argument."""
    shifted = state >> np.uint64(30)
    state ^= shifted
    state *= _FIRST
    np.right_shift(state, np.uint64(27), out=shifted)
    state ^= shifted
    state *= _SECOND
    np.right_shift(state, np.uint64(31), out=shifted)
    state ^= shifted
    return state


def low_below(bits: UInt64s, bound: int) -> Int64s:
    """A number in [0, bound) from the low half of the bits; `bound` is at most 2^32."""
    scaled = bits & _LOW_32
    scaled *= np.uint64(bound)
    scaled >>= _SHIFT_32
    return scaled.view(np.int64)


def high_below(bits: UInt64s, bound: int | Int64s) -> Int64s:
    """A number in [0, bound) from the high half of the bits, independent of `low_below`."""
    scaled = bits >> _SHIFT_32
    scaled *= np.uint64(bound) if isinstance(bound, int) else bound.view(np.uint64)
    scaled >>= _SHIFT_32
    return scaled.view(np.int64)


def price(bits: UInt64s) -> Int64s:
    """A price in cents, 100 to 10^8: its logarithm is uniform, as Nexmark has it."""
    coarse, fine = _price_tables()
    values = coarse[((bits >> np.uint64(12)) & _LOW_12).view(np.int64)]
    values *= fine[(bits & _LOW_12).view(np.int64)]
    return np.rint(values).astype(np.int64)


@cache
def _price_tables() -> tuple[Doubles, Doubles]:
    """100 * 10^(6 i / 2^12) and 10^(6 i / 2^24): made with decimals, because `pow` differs between platforms."""
    with localcontext() as context:
        context.prec = 40
        step = Decimal(10) ** (Decimal(_PRICE_DECADES) / _PRICE_STEPS)
        fine_step = Decimal(10) ** (Decimal(_PRICE_DECADES) / (_PRICE_STEPS * _PRICE_STEPS))
        return _powers(Decimal(100), step), _powers(Decimal(1), fine_step)


def _powers(first: Decimal, step: Decimal) -> Doubles:
    values = np.empty(_PRICE_STEPS, dtype=np.float64)
    value = first
    for index in range(_PRICE_STEPS):
        values[index] = float(value)
        value *= step
    return values
