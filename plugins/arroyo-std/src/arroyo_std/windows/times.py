"""Event times as whole microseconds, and the grids that windows lie on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Times = npt.NDArray[np.int64]

#: The type of every time column that windows make.
TIME_TYPE = pa.timestamp("us", tz="UTC")

#: Of a grid, on which all values of a batch may lie.
_FEW_POINTS = 32

_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def times_us(column: pa.Array) -> Times:
    """Timestamps of any unit, none of them null, in microseconds, rounded down."""
    values: Times = column.cast(pa.int64()).to_numpy()
    unit = column.type.unit
    return values // 1_000 if unit == "ns" else values * _US_PER_UNIT[unit] if unit != "us" else values


def time_array(values_us: Times) -> pa.Array:
    return pa.array(values_us, pa.int64()).cast(TIME_TYPE)


def is_ascending(values_us: Times) -> bool:
    """Whether no time is before the one in front of it."""
    return bool((values_us[:-1] <= values_us[1:]).all())


def floor_to_grid(values_us: Times, step_us: int, offset_us: int) -> Times:
    """The greatest points of the grid `offset + n * step` that are not after the values; before 1970 too."""
    if len(values_us) > _FEW_POINTS and is_ascending(values_us):
        first_us, last_us = floor_to_grid(values_us[[0, -1]], step_us, offset_us).tolist()
        if 0 <= last_us - first_us < _FEW_POINTS * step_us:
            # Mostly times come in order, and few points are enough for many: no need to divide each.
            points = np.arange(first_us, last_us + 1, step_us)
            return np.repeat(points, np.diff(np.searchsorted(values_us, points), append=len(values_us)))
    floored: Times = (values_us - offset_us) // step_us * step_us + offset_us
    return floored


def floor_time(value_us: int, step_us: int, offset_us: int) -> int:
    return (value_us - offset_us) // step_us * step_us + offset_us
