"""The most frequent values, exactly: a state has every distinct value of its group with its count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from arroyo_core.udf import udaf
from arroyo_udf_stats.settings import read_setting, same_setting

Counts = dict[Any, int]

#: `top_values` gives at most this many.
MOST_VALUES = 10_000


class Mode:
    """The most frequent value; of several the least."""

    def init(self) -> Counts:
        return {}

    def update(self, state: Counts, value: Any) -> Counts:
        state[value] = state.get(value, 0) + 1
        return state

    def update_batch(self, state: Counts, value: pa.Array) -> Counts:
        return self.merge(state, _count(value))

    def merge(self, first: Counts, second: Counts) -> Counts:
        return _add(first, second)

    def finish(self, state: Counts) -> Any:
        ranked = _ranked(state)
        return ranked[0][0] if ranked else None


class TopValues:
    """The most frequent values, as many as asked for, with their counts: the most frequent first, then the least."""

    def init(self) -> dict[str, Any]:
        return {"size": None, "counts": []}

    def update(self, state: dict[str, Any], value: str, size: int) -> dict[str, Any]:
        return self.update_batch(state, pa.array([value], pa.string()), pa.array([size], pa.int64()))

    def update_batch(self, state: dict[str, Any], value: pa.Array, size: pa.Array) -> dict[str, Any]:
        wanted = read_setting(size, name="the number of values")
        if not 1 <= wanted <= MOST_VALUES:
            raise ValueError(f"{wanted} values are not from 1 to {MOST_VALUES}")
        return self.merge(state, {"size": wanted, "counts": list(_count(value).items())})

    def merge(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        if first["size"] is None or second["size"] is None:
            return second if first["size"] is None else first
        size = same_setting(first["size"], second["size"], name="the number of values")
        return {"size": size, "counts": list(_add(dict(first["counts"]), dict(second["counts"])).items())}

    def finish(self, state: dict[str, Any]) -> list[dict[str, Any]] | None:
        if state["size"] is None:
            return None
        ranked = _ranked(dict(state["counts"]))
        return [{"value": value, "count": count} for value, count in ranked[: state["size"]]]


def _count(values: pa.Array) -> Counts:
    counted = values.value_counts()
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def _add(first: Counts, second: Counts) -> Counts:
    for value, count in second.items():
        first[value] = first.get(value, 0) + count
    return first


def _ranked(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


_TOP = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
_TOP_STATE = pa.struct([("size", pa.int64()), ("counts", pa.map_(pa.string(), pa.int64()))])

mode = udaf(name="mode", arguments=[pa.string()], state=pa.map_(pa.string(), pa.int64()), returns=pa.string())(Mode)
mode_int = udaf(name="mode_int", arguments=[pa.int64()], state=pa.map_(pa.int64(), pa.int64()), returns=pa.int64())(
    Mode
)
top_values = udaf(arguments=[pa.string(), pa.int64()], state=_TOP_STATE, returns=_TOP)(TopValues)
