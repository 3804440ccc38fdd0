"""Means: decayed with time, weighted, geometric and harmonic.

The state of no rows is None. A NaN makes the result NaN.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.udf import udaf
from arroyo_udf_stats.settings import read_setting, same_setting

State = dict[str, Any] | None

TIME = pa.timestamp("us", tz="UTC")


class Ewma:
    """Mean of values weighted by age: a value one half-life older than the newest one counts half.

    Ages are relative to the newest time of the group, so that rows may come in any order.
    """

    def init(self) -> State:
        return None

    def update(self, state: State, value: float, time: datetime, half_life_s: float) -> State:
        columns = ([value], pa.float64()), ([time], TIME), ([half_life_s], pa.float64())
        return self.update_batch(state, *(pa.array(*column) for column in columns))

    def update_batch(self, state: State, value: pa.Array, time: pa.Array, half_life_s: pa.Array) -> State:
        half_life = read_setting(half_life_s, name="the half-life")
        if not 0 < half_life < math.inf:
            raise ValueError(f"the half-life is {half_life}: it must be a positive number of seconds")
        times_us = time.view(pa.int64()).to_numpy()
        newest_us = int(times_us.max())
        weights = np.exp2((times_us - newest_us) / (1e6 * half_life))
        total = float((weights * value.to_numpy()).sum())
        rows = {"half_life_s": half_life, "newest_us": newest_us, "weight": float(weights.sum()), "total": total}
        return self.merge(state, rows)

    def merge(self, first: State, second: State) -> State:
        if first is None or second is None:
            return first or second
        half_life = same_setting(first["half_life_s"], second["half_life_s"], name="the half-life")
        newest_us = max(first["newest_us"], second["newest_us"])
        sides = (first, second)
        decays = [2.0 ** ((side["newest_us"] - newest_us) / (1e6 * half_life)) for side in sides]
        return {
            "half_life_s": half_life,
            "newest_us": newest_us,
            "weight": math.fsum(side["weight"] * decay for side, decay in zip(sides, decays, strict=True)),
            "total": math.fsum(side["total"] * decay for side, decay in zip(sides, decays, strict=True)),
        }

    def finish(self, state: State) -> float | None:
        # The newest row has the weight 1: never a division by zero.
        return None if state is None else state["total"] / state["weight"]


class WeightedMean:
    """Mean of values with weights from 0; null where all weights are 0."""

    def init(self) -> State:
        return None

    def update(self, state: State, value: float, weight: float) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()), pa.array([weight], pa.float64()))

    def update_batch(self, state: State, value: pa.Array, weight: pa.Array) -> State:
        weights = weight.to_numpy()
        is_wrong = (weights < 0) | ~np.isfinite(weights)
        if is_wrong.any():
            raise ValueError(f"weight {weights[is_wrong][0]} is not a number from 0")
        rows = {"weight": float(weights.sum()), "total": float((weights * value.to_numpy()).sum())}
        return self.merge(state, rows)

    def merge(self, first: State, second: State) -> State:
        return _sum_states(first, second)

    def finish(self, state: State) -> float | None:
        return None if state is None or state["weight"] == 0 else state["total"] / state["weight"]


class GeometricMean:
    """The n-th root of the product of n values from 0: for growth rates and ratios."""

    def init(self) -> State:
        return None

    def update(self, state: State, value: float) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()))

    def update_batch(self, state: State, value: pa.Array) -> State:
        values = _not_negative(value, "a geometric mean")
        with np.errstate(divide="ignore"):
            logarithms = np.log(values)
        return self.merge(state, {"count": len(values), "total": float(logarithms.sum())})

    def merge(self, first: State, second: State) -> State:
        return _sum_states(first, second)

    def finish(self, state: State) -> float | None:
        return None if state is None else math.exp(state["total"] / state["count"])


class HarmonicMean:
    """The reciprocal of the mean of the reciprocals of values from 0: for speeds over equal distances."""

    def init(self) -> State:
        return None

    def update(self, state: State, value: float) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()))

    def update_batch(self, state: State, value: pa.Array) -> State:
        values = _not_negative(value, "a harmonic mean")
        with np.errstate(divide="ignore"):
            reciprocals = 1 / values
        return self.merge(state, {"count": len(values), "total": float(reciprocals.sum())})

    def merge(self, first: State, second: State) -> State:
        return _sum_states(first, second)

    def finish(self, state: State) -> float | None:
        if state is None:
            return None
        return state["count"] / state["total"] if state["total"] else math.inf


def _not_negative(value: pa.Array, what: str) -> Any:
    # Adding 0 makes a 0 of -0, whose reciprocal would be negative.
    values = value.to_numpy() + 0.0
    if (values < 0).any():
        raise ValueError(f"{what} has no negative values, and got {values[values < 0][0]}")
    return values


def _sum_states(first: State, second: State) -> State:
    if first is None or second is None:
        return first or second
    return {name: first[name] + second[name] for name in first}


_EWMA_STATE = pa.struct(
    [("half_life_s", pa.float64()), ("newest_us", pa.int64()), ("weight", pa.float64()), ("total", pa.float64())]
)
_WEIGHTED_STATE = pa.struct([("weight", pa.float64()), ("total", pa.float64())])
_COUNTED_STATE = pa.struct([("count", pa.int64()), ("total", pa.float64())])

ewma = udaf(arguments=[pa.float64(), TIME, pa.float64()], state=_EWMA_STATE, returns=pa.float64())(Ewma)
weighted_mean = udaf(arguments=[pa.float64()] * 2, state=_WEIGHTED_STATE, returns=pa.float64())(WeightedMean)
geometric_mean = udaf(arguments=[pa.float64()], state=_COUNTED_STATE, returns=pa.float64())(GeometricMean)
harmonic_mean = udaf(arguments=[pa.float64()], state=_COUNTED_STATE, returns=pa.float64())(HarmonicMean)
