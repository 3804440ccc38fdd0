"""Which rows of an epoch are left of each key, whatever was compacted in between."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from arroyo_iceberg import changes
from arroyo_iceberg.changes import Changes

from arroyo_core.api.updating import make_updates, row_ids

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.string())])
Event = tuple[bool, int, str]


def batch(events: list[Event]) -> pa.RecordBatch:
    rows = pa.RecordBatch.from_pylist([{"key": key, "value": value} for _, key, value in events], schema=SCHEMA)
    gone = pa.array([is_gone for is_gone, _, _ in events], pa.bool_()).to_numpy(zero_copy_only=False)
    return make_updates(rows, is_retract=gone, ids=row_ids(rows, ["key"]))


def expected(events: list[Event]) -> tuple[dict[int, str], set[int]]:
    """By a loop: the last row of each key that was not taken back after it was added; and keys that have none."""
    last: dict[tuple[int, str], tuple[int, bool]] = {}
    for place, (is_gone, key, value) in enumerate(events):
        last[key, value] = (place, is_gone)
    kept: dict[int, tuple[int, str]] = {}
    for (key, value), (place, is_gone) in last.items():
        if not is_gone and place >= kept.get(key, (-1, ""))[0]:
            kept[key] = (place, value)
    keys = {key for _, key, _ in events}
    return {key: value for key, (_, value) in kept.items()}, keys - set(kept)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("compacted", [3, 1 << 20])
def test_the_last_row_that_was_not_taken_back_is_left(monkeypatch, seed, compacted):
    monkeypatch.setattr(changes, "COMPACTED_ROWS", compacted)
    chance = random.Random(seed)
    has_gone = seed % 4 > 0
    events = [
        (has_gone and chance.random() < 0.4, chance.randint(0, 5), f"v{chance.randint(0, 3)}")
        for _ in range(chance.randint(0, 60))
    ]
    made = Changes(SCHEMA, ["key"])
    left = list(events)
    while left:
        size = chance.randint(1, 7)
        made.add(batch(left[:size]))
        del left[:size]
    rows, deleted = made.result()
    kept, gone = expected(events)
    assert rows.num_rows == len(kept)
    assert {row["key"]: row["value"] for row in rows.to_pylist()} == kept
    assert sorted(deleted.column("key").to_pylist()) == sorted(gone)
