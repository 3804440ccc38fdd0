from __future__ import annotations

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import (
    UPDATING_META,
    interleave_updates,
    is_updating,
    make_updates,
    refuse_updating,
    row_ids,
    split_updates,
    with_updating,
    without_updating,
)
from arroyo_core.errors import ConfigError

STREAM = ArroyoSchema(pa.schema({"k": pa.string(), "n": pa.int64()}), key_columns=("k",))


def rows(*values):
    return pa.RecordBatch.from_pylist([{"k": k, "n": n} for k, n in values], schema=STREAM.schema)


def test_rows_come_apart_as_they_were_put_together():
    batch = rows(("a", 1), ("b", 2), ("a", 3))
    mask = pa.array([True, False, False]).to_numpy(zero_copy_only=False)
    made = make_updates(batch, is_retract=mask, ids=row_ids(batch, ["k"]))
    assert made.schema == with_updating(STREAM).schema
    appends, retracts = split_updates(made)
    assert appends.to_pylist() == [{"k": "b", "n": 2}, {"k": "a", "n": 3}]
    assert retracts.to_pylist() == [{"k": "a", "n": 1}]


def test_a_stream_without_the_column_only_adds_rows():
    appends, retracts = split_updates(rows(("a", 1)))
    assert (appends.num_rows, retracts.num_rows) == (1, 0)


def test_ids_are_of_the_key_alone_and_never_change():
    ids = row_ids(rows(("a", 1), ("a", 2), ("b", 1)), ["k"]).to_pylist()
    assert ids[0] == ids[1] != ids[2]
    assert ids[0].hex() == "0ec7d95b3492d1805ae0d883532c5edf"
    assert row_ids(rows(("a", 1)), []).to_pylist() == row_ids(rows(("b", 2)), []).to_pylist()


def test_what_is_taken_back_comes_before_what_replaces_it():
    old, new = rows(("a", 1), ("b", 1)), rows(("b", 2), ("c", 2))
    made = interleave_updates(
        make_updates(old, is_retract=True, ids=row_ids(old, ["k"])),
        make_updates(new, is_retract=False, ids=row_ids(new, ["k"])),
        retract_ranks=[0, 1],
        append_ranks=[1, 2],
    )
    found = [(row["k"], row["n"], row[UPDATING_META]["is_retract"]) for row in made.to_pylist()]
    assert found == [("a", 1, True), ("b", 1, True), ("b", 2, False), ("c", 2, False)]


def test_a_stream_is_updating_by_its_column():
    updating = with_updating(STREAM)
    assert is_updating(updating)
    assert updating.key_columns == ("k",)
    assert not is_updating(STREAM)
    assert without_updating(updating) == STREAM
    with pytest.raises(ConfigError, match=r"std\.window cannot take back rows"):
        refuse_updating(updating, operator="std.window")
    refuse_updating(STREAM, operator="std.window")


def test_a_column_of_that_name_with_another_type_is_refused():
    with pytest.raises(ConfigError, match="rename it"):
        is_updating(ArroyoSchema(pa.schema({UPDATING_META: pa.int64()})))
