"""A random sample of fixed size that is the same at every run, and merges: the rows with the lowest hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.api.hashing import hash_columns
from arroyo_core.udf import udaf
from arroyo_udf_stats.settings import read_setting, same_setting

#: A sample has at most this many rows.
MOST_ROWS = 10_000

State = dict[str, Any]
#: A row's hash, its sequence number and its value: rows are compared in this order.
Entry = tuple[int, int, str]


class ReservoirSample:
    """This many rows, each with the same chance; another seed gives another sample.

    The sequence number tells rows apart: rows with the same value and number are one row. With a constant number
    this is a sample of the distinct values.
    """

    def init(self) -> State:
        return {"size": None, "seed": None, "hashes": [], "sequences": [], "values": []}

    def update(self, state: State, value: str, sequence: int, size: int, seed: int) -> State:
        numbers = (pa.array([number], pa.int64()) for number in (sequence, size, seed))
        return self.update_batch(state, pa.array([value], pa.string()), *numbers)

    def update_batch(self, state: State, value: pa.Array, sequence: pa.Array, size: pa.Array, seed: pa.Array) -> State:
        wanted = read_setting(size, name="the size of the sample")
        if not 1 <= wanted <= MOST_ROWS:
            raise ValueError(f"a sample of {wanted} rows: from 1 to {MOST_ROWS} are possible")
        chosen = read_setting(seed, name="the seed")
        # 63 bits, so that they fit a signed number.
        hashes = (hash_columns([seed, sequence, value]) >> np.uint64(1)).astype(np.int64)
        entries: list[Entry] = []
        # The lowest hashes may belong to few rows that come again and again: then take more of them.
        for rows in _lowest_first(hashes, wanted):
            taken = pa.array(rows)
            columns = (hashes[rows].tolist(), sequence.take(taken).to_pylist(), value.take(taken).to_pylist())
            entries = sorted({*entries, *zip(*columns, strict=True)})
            if len(entries) >= wanted:
                break
        return self.merge(state, _state(wanted, chosen, entries[:wanted]))

    def merge(self, first: State, second: State) -> State:
        if first["size"] is None or second["size"] is None:
            return second if first["size"] is None else first
        size = same_setting(first["size"], second["size"], name="the size of the sample")
        seed = same_setting(first["seed"], second["seed"], name="the seed")
        return _state(size, seed, sorted({*_entries(first), *_entries(second)})[:size])

    def finish(self, state: State) -> list[str] | None:
        return None if state["size"] is None else state["values"]


def _lowest_first(hashes: Any, wanted: int) -> Any:
    """Places of hashes, in portions: all of a portion are lower than all of the next one."""
    if len(hashes) <= 2 * wanted:
        yield np.arange(len(hashes))
        return
    bound = np.partition(hashes, wanted)[wanted]
    yield np.flatnonzero(hashes <= bound)
    yield np.flatnonzero(hashes > bound)


def _entries(state: State) -> list[Entry]:
    return list(zip(state["hashes"], state["sequences"], state["values"], strict=True))


def _state(size: int, seed: int, entries: list[Entry]) -> State:
    return {
        "size": size,
        "seed": seed,
        "hashes": [entry[0] for entry in entries],
        "sequences": [entry[1] for entry in entries],
        "values": [entry[2] for entry in entries],
    }


_STATE = pa.struct(
    [
        ("size", pa.int64()),
        ("seed", pa.int64()),
        ("hashes", pa.list_(pa.int64())),
        ("sequences", pa.list_(pa.int64())),
        ("values", pa.list_(pa.string())),
    ]
)

reservoir_sample = udaf(
    arguments=[pa.string(), pa.int64(), pa.int64(), pa.int64()], state=_STATE, returns=pa.list_(pa.string())
)(ReservoirSample)
