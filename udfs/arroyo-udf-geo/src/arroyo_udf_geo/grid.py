"""The numbers behind geohashes: 30 bits of longitude and of latitude, interleaved, cut after every five."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from arroyo_udf_geo.points import Floats

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Bits of each axis, and characters of the longest geohash: five bits of both axes each.
BITS = 30
LONGEST = 12

# To spread 30 bits, or to gather them: the shift of a step, and the bits that stay.
_STEPS = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in (
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    )
)


def steps_of(values: Floats, lowest: float) -> Numbers:
    """In which of 2**30 equal steps from `lowest` to its negative each value lies; the highest value is in the last."""
    size = -2 * lowest / (1 << BITS)
    found = np.clip(np.floor((values - lowest) / size), 0, (1 << BITS) - 1).astype(np.int64)
    # The difference above is rounded; the bounds of the steps are exact, and have the last word.
    found -= found * size + lowest > values
    found += (found + 1) * size + lowest <= values
    return np.clip(found, 0, (1 << BITS) - 1)


def bounds_of(steps: Numbers, lowest: float) -> Floats:
    """Where each step begins: exact."""
    return steps.astype(np.float64) * (-2 * lowest / (1 << BITS)) + lowest


def interleave(lons: Numbers, lats: Numbers) -> Words:
    """60 bits: the highest is of the longitude, the next of the latitude, and so on."""
    return (_spread(lons.astype(np.uint64)) << np.uint64(1)) | _spread(lats.astype(np.uint64))


def separate(words: Words) -> tuple[Numbers, Numbers]:
    """The inverse of `interleave`."""
    return _gather(words >> np.uint64(1)).astype(np.int64), _gather(words).astype(np.int64)


def axis_bits(lengths: Numbers) -> tuple[Numbers, Numbers]:
    """How many bits of longitude and of latitude a geohash of this length has."""
    return (lengths * 5 + 1) // 2, lengths * 5 // 2


def _spread(words: Words) -> Words:
    for shift, mask in _STEPS:
        words = (words | (words << shift)) & mask
    return words


def _gather(words: Words) -> Words:
    words = words & _STEPS[-1][1]
    for (shift, _), (_, mask) in zip(_STEPS[::-1], [*_STEPS[-2::-1], (0, np.uint64(0xFFFF_FFFF))], strict=True):
        words = (words | (words >> shift)) & mask
    return words
