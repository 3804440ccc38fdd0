"""The shape of a distribution and the trend of a series, from sums around the mean, which merge without loss.

The state of no rows is None.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pyarrow as pa

from arroyo_core.udf import udaf
from arroyo_udf_stats.means import TIME

State = dict[str, Any] | None


class Moments:
    """Count, mean, and the sums of the second, third and fourth powers of the distances from it."""

    def init(self) -> State:
        return None

    def update(self, state: State, value: float) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()))

    def update_batch(self, state: State, value: pa.Array) -> State:
        values = value.to_numpy()
        mean = float(values.mean())
        distances = values - mean
        squares = distances * distances
        rows = {
            "count": len(values),
            "mean": mean,
            "second": float(squares.sum()),
            "third": float((squares * distances).sum()),
            "fourth": float((squares * squares).sum()),
        }
        return self.merge(state, rows)

    def merge(self, first: State, second: State) -> State:
        if first is None or second is None:
            return first or second
        a, b = first["count"], second["count"]
        count = a + b
        apart = second["mean"] - first["mean"]
        step = apart / count
        return {
            "count": count,
            "mean": first["mean"] + step * b,
            "second": first["second"] + second["second"] + apart * step * a * b,
            "third": first["third"]
            + second["third"]
            + apart * step**2 * a * b * (a - b)
            + 3 * step * (a * second["second"] - b * first["second"]),
            "fourth": first["fourth"]
            + second["fourth"]
            + apart * step**3 * a * b * (a * a - a * b + b * b)
            + 6 * step**2 * (a * a * second["second"] + b * b * first["second"])
            + 4 * step * (a * second["third"] - b * first["third"]),
        }


class Skewness(Moments):
    """How far the tails differ: 0 where both sides are alike, positive with a long tail of high values.

    Of the whole group, not of a sample. Null where all values are equal.
    """

    def finish(self, state: State) -> float | None:
        if state is None or state["second"] == 0:
            return None
        return float(math.sqrt(state["count"]) * state["third"] / state["second"] ** 1.5)


class Kurtosis(Moments):
    """How heavy the tails are, beyond those of a normal distribution, which has 0.

    Of the whole group, not of a sample. Null where all values are equal.
    """

    def finish(self, state: State) -> float | None:
        if state is None or state["second"] == 0:
            return None
        return float(state["count"] * state["fourth"] / state["second"] ** 2 - 3)


class TrendPerS:
    """The slope of the straight line that fits best (least squares): how much the value rises in a second.

    Null where all times are equal.
    """

    def init(self) -> State:
        return None

    def update(self, state: State, value: float, time: datetime) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()), pa.array([time], TIME))

    def update_batch(self, state: State, value: pa.Array, time: pa.Array) -> State:
        values, times_us = value.to_numpy(), time.view(pa.int64()).to_numpy()
        # Seconds from the first row's time: those since 1970 would leave no digits for microseconds.
        origin_us = int(times_us[0])
        times_s = (times_us - origin_us) / 1e6
        time_mean, mean = float(times_s.mean()), float(values.mean())
        rows = {
            "count": len(values),
            "origin_us": origin_us,
            "time_mean_s": time_mean,
            "mean": mean,
            "time_second": float(((times_s - time_mean) ** 2).sum()),
            "product": float(((times_s - time_mean) * (values - mean)).sum()),
        }
        return self.merge(state, rows)

    def merge(self, first: State, second: State) -> State:
        if first is None or second is None:
            return first or second
        a, b = first["count"], second["count"]
        count = a + b
        moved_s = (second["origin_us"] - first["origin_us"]) / 1e6
        time_apart = second["time_mean_s"] + moved_s - first["time_mean_s"]
        apart = second["mean"] - first["mean"]
        return {
            "count": count,
            "origin_us": first["origin_us"],
            "time_mean_s": first["time_mean_s"] + time_apart * b / count,
            "mean": first["mean"] + apart * b / count,
            "time_second": first["time_second"] + second["time_second"] + time_apart**2 * a * b / count,
            "product": first["product"] + second["product"] + time_apart * apart * a * b / count,
        }

    def finish(self, state: State) -> float | None:
        if state is None or state["time_second"] == 0:
            return None
        return float(state["product"] / state["time_second"])


_MOMENTS = pa.struct(
    [
        ("count", pa.int64()),
        *((name, pa.float64()) for name in ("mean", "second", "third", "fourth")),
    ]
)
_TREND = pa.struct(
    [
        ("count", pa.int64()),
        ("origin_us", pa.int64()),
        *((name, pa.float64()) for name in ("time_mean_s", "mean", "time_second", "product")),
    ]
)

skewness = udaf(arguments=[pa.float64()], state=_MOMENTS, returns=pa.float64())(Skewness)
kurtosis = udaf(arguments=[pa.float64()], state=_MOMENTS, returns=pa.float64())(Kurtosis)
trend_per_s = udaf(arguments=[pa.float64(), TIME], state=_TREND, returns=pa.float64())(TrendPerS)
