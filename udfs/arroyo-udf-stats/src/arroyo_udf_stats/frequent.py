"""The most frequent values, exactly: a state has every distinct value of its group with its count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from arroyo_core.udf import udaf
from arroyo_udf_stats.settings import read_setting, same_setting

Counts = dict[Any, int]
State = dict[str, Any]

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
    """The most frequent values, as many as asked for, with their counts: the most frequent first, then the least.

    A value may be in a state more than once: counts are added up when half of them may be repeated, and at the end.
    """

    def init(self) -> State:
        return {"size": None, "distinct": 0, "values": [], "counts": []}

    def update(self, state: State, value: str, size: int) -> State:
        return self.update_batch(state, pa.array([value], pa.string()), pa.array([size], pa.int64()))

    def update_batch(self, state: State, value: pa.Array, size: pa.Array) -> State:
        wanted = read_setting(size, name="the number of values")
        if not 1 <= wanted <= MOST_VALUES:
            raise ValueError(f"{wanted} values are not from 1 to {MOST_VALUES}")
        return self.merge(state, _top_state(wanted, _count(value)))

    def merge(self, first: State, second: State) -> State:
        if first["size"] is None or second["size"] is None:
            return second if first["size"] is None else first
        same_setting(first["size"], second["size"], name="the number of values")
        first["values"].extend(second["values"])
        first["counts"].extend(second["counts"])
        is_full = len(first["values"]) > 2 * max(first["distinct"], second["distinct"])
        return _top_state(first["size"], _summed(first)) if is_full else first

    def finish(self, state: State) -> list[dict[str, Any]] | None:
        if state["size"] is None:
            return None
        ranked = _ranked(_summed(state))
        return [{"value": value, "count": count} for value, count in ranked[: state["size"]]]


def _top_state(size: int, counts: Counts) -> State:
    return {"size": size, "distinct": len(counts), "values": list(counts), "counts": list(counts.values())}


def _summed(state: State) -> Counts:
    summed: Counts = {}
    for value, count in zip(state["values"], state["counts"], strict=True):
        summed[value] = summed.get(value, 0) + count
    return summed


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
_TOP_STATE = pa.struct(
    [
        ("size", pa.int64()),
        ("distinct", pa.int64()),
        ("values", pa.list_(pa.string())),
        ("counts", pa.list_(pa.int64())),
    ]
)

mode = udaf(name="mode", arguments=[pa.string()], state=pa.map_(pa.string(), pa.int64()), returns=pa.string())(Mode)
mode_int = udaf(name="mode_int", arguments=[pa.int64()], state=pa.map_(pa.int64(), pa.int64()), returns=pa.int64())(
    Mode
)
top_values = udaf(arguments=[pa.string(), pa.int64()], state=_TOP_STATE, returns=_TOP)(TopValues)
