"""How a change is cut before it is written."""

import numpy as np
import pyarrow as pa
import pytest

from arroyo_core.state import expiring_time_key_map
from arroyo_core.state.expiring_time_key_map import parts_by_key_hash


def table(hashes, first):
    numbers = np.arange(first, first + len(hashes))
    return pa.table({"_key_hash": np.array(hashes, dtype=np.uint64), "number": numbers})


SORTED = [table([1, 1, 4, 7], 0), table([], 4), table([1, 2, 4, 4, 9], 4)]
UNSORTED = [table([4, 1, 7, 1], 0), table([9, 1, 4, 2, 4], 4)]


@pytest.mark.parametrize("tables", [SORTED, UNSORTED], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("part_bytes", [1, 40, 60, 1000])
def test_every_row_is_in_one_part_and_rows_of_a_key_stay_together_in_order(tables, part_bytes, monkeypatch):
    monkeypatch.setattr(expiring_time_key_map, "PART_BYTES", part_bytes)
    parts = list(parts_by_key_hash(tables))
    rows = [row for one in tables for row in one.to_pylist()]
    assert sorted(row["number"] for part in parts for row in part.to_pylist()) == [row["number"] for row in rows]
    found = [set(part.column("_key_hash").to_pylist()) for part in parts]
    assert sum(map(len, found)) == len(set().union(*found))
    for hashed in set().union(*found):
        in_parts = [r["number"] for part in parts for r in part.to_pylist() if r["_key_hash"] == hashed]
        assert in_parts == [row["number"] for row in rows if row["_key_hash"] == hashed]
    if part_bytes < 1000:
        assert len(parts) > 1


def test_sorted_tables_are_sliced_not_copied(monkeypatch):
    monkeypatch.setattr(expiring_time_key_map, "PART_BYTES", 40)
    owned = {chunk.buffers()[1].address for one in SORTED for chunk in one.column("number").chunks if len(chunk)}
    for part in parts_by_key_hash(SORTED):
        assert all(chunk.buffers()[1].address in owned for chunk in part.column("number").chunks if len(chunk))
