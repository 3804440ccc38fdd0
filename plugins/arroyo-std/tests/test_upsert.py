"""std.upsert against a slow and obvious model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

from .support.row_streams import COLUMNS, STREAM, Batch, EndOfEpoch, Row, Step, as_rows, batch_of, in_order, streams

UPDATING = with_updating(STREAM)
CHANGES = st.fixed_dictionaries(
    {
        "k": st.none() | st.sampled_from(["a", "b", "c"]),
        "v": st.none() | st.integers(0, 1),
        "at": st.just(0),
        "is_retract": st.booleans(),
    }
)


def updates_of(rows: Sequence[Row]) -> pa.RecordBatch:
    batch = batch_of(rows)
    mask = np.array([row["is_retract"] for row in rows], dtype=np.bool_)
    return make_updates(batch, is_retract=mask, ids=row_ids(batch, ["k"]))


def model(steps: Sequence[Step]) -> list[Row]:
    """Each key's row at the end of each batch, where it is another one than at its beginning."""
    current: dict[Any, Row] = {}
    found = []
    for step in steps:
        before = dict(current)
        for row in step.rows if isinstance(step, Batch) else ():
            values = {name: row[name] for name in COLUMNS.names}
            if not row["is_retract"]:
                current[row["k"]] = values
            elif current.get(row["k"]) == values:
                del current[row["k"]]
        for key in {**before, **current}:
            if key not in current:
                # Any row that was taken back names the key.
                found.append({"k": key, "_deleted": True})
            elif before.get(key) != current[key]:
                found.append({**current[key], "_deleted": False})
    return found


@settings(max_examples=100, deadline=None)
@given(steps=streams(CHANGES), parallelism=st.integers(1, 3))
def test_every_batch_tells_the_row_of_each_key_that_changed(make, steps, parallelism):
    with ParallelHarness(
        partial(make, "std.upsert", keys=["k"]), inputs=[UPDATING], parallelism=parallelism
    ) as harness:
        for step in steps:
            if isinstance(step, Batch) and step.rows:
                harness.process(updates_of(step.rows))
            if isinstance(step, EndOfEpoch):
                harness.checkpoint()
                if step.parallelism:
                    harness.restore(step.parallelism)
        found = [{"k": row["k"], "_deleted": True} if row["_deleted"] else row for row in as_rows(harness.output)]
        assert in_order(found) == in_order(model(steps))


def test_a_change_is_one_row_and_a_deletion_has_the_values_that_were_taken_back(make, run):
    subtask = run(make("std.upsert", keys=["k"]), [UPDATING])
    row = {"k": "a", "at": 0}
    subtask.feed(updates_of([{**row, "v": 1, "is_retract": False}]))
    subtask.feed(updates_of([{**row, "v": 1, "is_retract": True}, {**row, "v": 2, "is_retract": False}]))
    subtask.feed(updates_of([{**row, "v": 2, "is_retract": True}]))
    assert [(found["v"], found["_deleted"]) for found in as_rows(subtask.output)] == [(1, False), (2, False), (2, True)]
    assert subtask.operator._view.get_all().num_rows == 0


def test_what_is_taken_back_after_the_next_row_was_added_changes_nothing(make, run):
    subtask = run(make("std.upsert", keys=["k"]), [UPDATING])
    row = {"k": "a", "at": 0}
    subtask.feed(updates_of([{**row, "v": 1, "is_retract": False}]))
    subtask.feed(updates_of([{**row, "v": 2, "is_retract": False}]))
    subtask.feed(updates_of([{**row, "v": 1, "is_retract": True}]))
    assert [(found["v"], found["_deleted"]) for found in as_rows(subtask.output)] == [(1, False), (2, False)]


def test_a_stream_that_only_adds_gives_the_last_row_of_each_key_and_batch_and_keeps_nothing(make, run):
    subtask = run(make("std.upsert", keys=["k"], deleted_column="gone"), [STREAM])
    subtask.feed(batch_of([{"k": key, "v": value, "at": 0} for value, key in enumerate("aba")]))
    assert [(row["k"], row["v"], row["gone"]) for row in as_rows(subtask.output)] == [("b", 1, False), ("a", 2, False)]
    assert subtask.operator._view.get_all().num_rows == 0


def test_the_results_of_an_updating_top_n_become_its_places(make, run):
    top = run(make("std.top_n", n=2, order_by=[{"column": "v", "descending": True}], rank_column="rank"), [STREAM])
    upsert = run(make("std.upsert", keys=["rank"]), [top.output_schema])
    for value in (3, 1, 4, 1, 5):
        top.feed(batch_of([{"k": "a", "v": value, "at": 0}]))
        upsert.feed(*top.take_output().to_batches())
    places = {row["rank"]: row["v"] for row in as_rows(upsert.output)}
    assert places == {1: 5, 2: 4}


def test_the_output_is_keyed_and_not_updating(make):
    output = make("std.upsert", keys=["k"]).output_schema([UPDATING])
    assert (output.names, output.key_columns, output.timestamp_column) == (["k", "v", "at", "_deleted"], ("k",), "at")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"keys": []}, "keys"),
        ({"keys": ["z"]}, "keys[0]"),
        ({"keys": ["_updating_meta"]}, "keys[0]"),
        ({"keys": ["k", "k"]}, "keys[1]"),
        ({"keys": ["k"], "deleted_column": "v"}, "deleted_column"),
    ],
)
def test_a_wrong_config_names_its_field(make, config, field):
    with pytest.raises(ConfigError) as caught:
        make("std.upsert", **config).output_schema([UPDATING])
    assert caught.value.field == field


def test_marks_of_another_type_are_refused(make):
    stream = ArroyoSchema(pa.schema({"k": pa.string(), "_updating_meta": pa.int64()}))
    with pytest.raises(ConfigError, match="rename"):
        make("std.upsert", keys=["k"]).output_schema([stream])
