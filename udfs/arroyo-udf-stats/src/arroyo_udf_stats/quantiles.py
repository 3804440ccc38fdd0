"""Quantiles from states of about 8 kB: t-digest, by Apache DataSketches.

Its answers are values whose rank is within about 1 % of the one that was asked for; least and greatest are exact.
Unlike the other sketches of that library it throws no dice: the same rows in the same order give the same answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.udf import udaf
from arroyo_udf_stats.settings import read_setting, same_setting

#: Decides size and error.
COMPRESSION = 400
#: What a summary has beside the count, the least and the greatest value.
SUMMARY_RANKS = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}

State = dict[str, Any]


class TdigestQuantile:
    """The value below which this share of all values lies: 0.5 for the median. NaN does not count."""

    def init(self) -> State:
        return {"rank": None, "digest": b""}

    def update(self, state: State, value: float, rank: float) -> State:
        return self.update_batch(state, pa.array([value], pa.float64()), pa.array([rank], pa.float64()))

    def update_batch(self, state: State, value: pa.Array, rank: pa.Array) -> State:
        wanted = read_setting(rank, name="the rank")
        if not 0 <= wanted <= 1:
            raise ValueError(f"rank {wanted} is not from 0 to 1: 0.95 for the 95th percentile")
        return self.merge(state, {"rank": wanted, "digest": _digested(value)})

    def merge(self, first: State, second: State) -> State:
        if first["rank"] is None or second["rank"] is None:
            return second if first["rank"] is None else first
        rank = same_setting(first["rank"], second["rank"], name="the rank")
        return {"rank": rank, "digest": _merged(first["digest"], second["digest"])}

    def finish(self, state: State) -> float | None:
        if not state["digest"]:
            return None
        return float(_library().tdigest_double.deserialize(state["digest"]).get_quantile(state["rank"]))


class TdigestSummary:
    """Count, least, greatest and six quantiles of a column. NaN does not count."""

    def init(self) -> bytes:
        return b""

    def update(self, state: bytes, value: float) -> bytes:
        return self.update_batch(state, pa.array([value], pa.float64()))

    def update_batch(self, state: bytes, value: pa.Array) -> bytes:
        return self.merge(state, _digested(value))

    def merge(self, first: bytes, second: bytes) -> bytes:
        return _merged(first, second)

    def finish(self, state: bytes) -> dict[str, Any] | None:
        if not state:
            return None
        digest = _library().tdigest_double.deserialize(state)
        return {
            "count": digest.get_total_weight(),
            "min": digest.get_min_value(),
            **{name: digest.get_quantile(rank) for name, rank in SUMMARY_RANKS.items()},
            "max": digest.get_max_value(),
        }


def _digested(value: pa.Array) -> bytes:
    """The digest of these values; no bytes where there are none but NaN."""
    values = value.to_numpy()
    values = values[~np.isnan(values)]
    if not len(values):
        return b""
    digest = _library().tdigest_double(COMPRESSION)
    digest.update(np.ascontiguousarray(values))
    return bytes(digest.serialize())


def _merged(first: bytes, second: bytes) -> bytes:
    if not first or not second:
        return first or second
    kind = _library().tdigest_double
    digest = kind.deserialize(first)
    digest.merge(kind.deserialize(second))
    return bytes(digest.serialize())


@cache
def _library() -> Any:
    import datasketches  # type: ignore[import-untyped]

    return datasketches


_SUMMARY = pa.struct(
    [
        ("count", pa.int64()),
        *((name, pa.float64()) for name in ("min", *SUMMARY_RANKS, "max")),
    ]
)
_RANKED = pa.struct([("rank", pa.float64()), ("digest", pa.binary())])

tdigest_quantile = udaf(arguments=[pa.float64()] * 2, state=_RANKED, returns=pa.float64())(TdigestQuantile)
tdigest_summary = udaf(arguments=[pa.float64()], state=pa.binary(), returns=_SUMMARY)(TdigestSummary)
