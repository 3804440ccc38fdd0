"""Streams of changes in files: written as Debezium's envelopes, read back, or refused."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from arroyo_formats.debezium.changes import envelopes
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import UPDATING_META, is_updating, make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

UTC = pa.timestamp("us", tz="UTC")
ROWS = pa.schema({"k": pa.string(), "v": pa.int64(), "at": UTC, "tags": pa.list_(pa.string())})
WRITTEN = {"k": "string", "v": "int64", "at": "timestamp", "tags": "list<string>"}
STREAM = with_updating(ArroyoSchema(ROWS, "at"))


def changes(rows: Sequence[tuple[bool, str | None, int | None]]) -> pa.RecordBatch:
    """Updates with ids by `k`, of (is_retract, k, v)."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([key for _, key, _ in rows], pa.string()),
            pa.array([value for *_, value in rows], pa.int64()),
            pa.array([value for *_, value in rows], pa.int64()).cast(UTC),
            pa.array([[key, "x"] if key else None for _, key, _ in rows], pa.list_(pa.string())),
        ],
        schema=ROWS,
    )
    mask = np.array([is_retract for is_retract, *_ in rows], dtype=np.bool_)
    return make_updates(batch, is_retract=mask, ids=row_ids(batch, ["k"]))


def shown(rows: list[dict[str, Any]]) -> list[tuple[bool, Any, Any]]:
    return [(row[UPDATING_META]["is_retract"], row["k"], row["v"]) for row in rows]


def lines_of(url: str) -> list[dict[str, Any]]:
    fs, root = fsspec.core.url_to_fs(url)
    paths = sorted(path for path in fs.find(root) if "/_committed/" not in path)
    return [json.loads(line) for path in paths for line in fs.cat_file(path).splitlines()]


CHANGES = st.lists(
    st.tuples(st.booleans(), st.none() | st.sampled_from(["a", "b"]), st.none() | st.integers(0, 3)), max_size=10
)


@given(batches=st.lists(CHANGES, min_size=1, max_size=4), batch_rows=st.integers(1, 4))
def test_what_the_sink_writes_the_source_reads_as_the_same_changes_of_each_row(files, batches, batch_rows):
    url = f"memory://{uuid.uuid4().hex}"
    written = [changes(rows) for rows in batches]
    files.write(url, pa.Table.from_batches(written), format="debezium_json")
    if not sum(map(len, batches)):
        return
    read = files.read(url, format="debezium_json", schema=WRITTEN, batch_rows=batch_rows, primary_key=["k"])
    assert read.schema == STREAM.schema
    before, after = ([row for batch in tables for row in batch.to_pylist()] for tables in (written, read.to_batches()))
    for key in ("a", "b", None):
        # Within an id nothing changes places, also not by being made one update.
        assert [row for row in before if row["k"] == key] == [row for row in after if row["k"] == key]


@given(rows=CHANGES)
def test_envelopes_are_the_changes_as_a_slow_model_pairs_them(rows):
    expected: list[dict[str, Any]] = []
    open_retracts: dict[Any, dict[str, Any]] = {}
    for is_retract, key, value in rows:
        if is_retract:
            expected.append({"op": "d", "before": (key, value), "after": None})
            open_retracts[key] = expected[-1]
        elif key in open_retracts:
            retract = open_retracts.pop(key)
            expected = [each for each in expected if each is not retract]
            expected.append({"op": "u", "before": retract["before"], "after": (key, value)})
        else:
            expected.append({"op": "c", "before": None, "after": (key, value)})
    found = [
        {
            "op": row["op"],
            **{side: row[side] and (row[side]["k"], row[side]["v"]) for side in ("before", "after")},
        }
        for row in envelopes(changes(rows))[0].to_pylist()
    ]
    assert found == expected


def test_a_change_a_creation_and_a_deletion_are_written_as_debezium_does(files, folder):
    table = pa.Table.from_batches([changes([(False, "a", 1), (True, "b", 5), (True, "a", 1), (False, "a", 2)])])
    files.write(folder, table, format="debezium_json")
    sides = [
        {"k": key, "v": value, "at": f"1970-01-01T00:00:00.00000{value}Z", "tags": [key, "x"]}
        for key, value in (("a", 1), ("b", 5), ("a", 2))
    ]
    assert lines_of(folder) == [
        {"before": None, "after": sides[0], "op": "c"},
        {"before": sides[1], "after": None, "op": "d"},
        {"before": sides[0], "after": sides[2], "op": "u"},
    ]


def test_a_stream_that_only_adds_is_written_as_creations(files, folder):
    files.write(folder, pa.table({"a": [1, 2]}), format="debezium_json", compression="gzip")
    read = files.read(folder, format="debezium_json")
    assert is_updating(ArroyoSchema(read.schema))
    assert [(row["a"], row[UPDATING_META]["is_retract"]) for row in read.to_pylist()] == [(1, False), (2, False)]


def test_what_debezium_itself_writes_is_read(files, tmp_path):
    lines = [
        {"before": None, "after": {"id": 1, "at": 1_000_000}, "op": "r", "ts_ms": 7, "source": {"db": "x"}},
        {"before": None, "after": {"id": 2, "at": 2_000_000}, "op": "c"},
        {"before": {"id": 1, "at": 1_000_000}, "after": {"id": 1, "at": 3_000_000}, "op": "u"},
        {"before": {"id": 2, "at": 2_000_000}, "after": None, "op": "d"},
    ]
    (tmp_path / "changes.jsonl").write_text("\n\n".join(json.dumps(line) for line in lines))
    config = {"format": "debezium_json", "schema": {"id": "int64", "at": "timestamp"}, "event_time_field": "at"}
    read = files.read(tmp_path, **config, primary_key=["id"])
    found = [(row["id"], row["at"].second, row[UPDATING_META]["is_retract"]) for row in read.to_pylist()]
    assert found == [(1, 1, False), (2, 2, False), (1, 1, True), (1, 3, False), (2, 2, True)]
    ids = [row[UPDATING_META]["id"] for row in read.to_pylist()]
    assert Counter(ids) == Counter({ids[0]: 3, ids[1]: 2})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"after": {"v": 1}, "op": "x"}, "op is 'x'"),
        ({"after": {"v": 1}}, "there is no op"),
        ({"before": {"v": 1}, "op": "c"}, "after is missing"),
        ({"after": {"v": 1}, "op": "u"}, "before is missing"),
        ({"after": {"v": 1}, "op": "d"}, "before is missing"),
        ({"after": {"v": "one"}, "op": "c"}, "v"),
        ({"after": 3, "op": "c"}, "after"),
    ],
)
def test_a_line_that_is_no_change_is_bad_and_alone(files, tmp_path, line, reason):
    good = json.dumps({"after": {"v": 1}, "op": "c"})
    (tmp_path / "changes.jsonl").write_text("\n".join([good, good, json.dumps(line), good]))
    config = {"format": "debezium_json", "schema": {"v": "int64"}}
    assert files.read(tmp_path, **config, bad_data="drop").num_rows == 3
    with pytest.raises(Exception, match=r"changes\.jsonl") as caught:
        files.read(tmp_path, **config)
    assert reason in str(caught.value)


def test_changes_are_partitioned_by_the_folder_of_each_row(files, names, folder):
    table = pa.Table.from_batches([changes([(False, "a", 1), (True, "a", 1), (False, "b", 1), (False, "a", 2)])])
    files.write(folder, table, format="debezium_json", partition_by=["k"])
    assert [name.partition("/")[0] for name in names(folder)] == ["k=a", "k=b"]
    read = files.read(folder, format="debezium_json", schema=WRITTEN, primary_key=["k"])
    assert shown(read.to_pylist()) == [(False, "a", 1), (True, "a", 1), (False, "a", 2), (False, "b", 1)]
    ids = {row["k"]: row[UPDATING_META]["id"] for row in read.to_pylist()}
    assert ids == {row["k"]: row[UPDATING_META]["id"] for row in table.to_pylist()}


def test_one_subtask_reads_all_files_in_the_order_of_their_names(files, tmp_path):
    for number in range(5):
        line = {"before": {"v": number}, "after": {"v": number + 1}, "op": "u"}
        (tmp_path / f"part-{number}.jsonl").write_text(json.dumps(line))
    harness = files.source(tmp_path, format="debezium_json", schema={"v": "int64"}, split_size=1)
    found = [harness.run(rows=3, parallelism=parallelism).table for parallelism in (2, 3, 1, 2)]
    harness.close()
    assert pa.concat_tables(found).column("v").to_pylist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "arrow"])
def test_files_of_rows_refuse_changes_and_say_what_can_be_done(files, tmp_path, kind):
    with pytest.raises(ConfigError, match=r"debezium_json.*std\.upsert.*append_only.*keep_meta") as caught:
        files.make_sink(tmp_path, format=kind).operator.output_schema([STREAM])
    assert caught.value.field == "format"


@pytest.mark.parametrize("kind", ["parquet", "json", "arrow"])
def test_rows_that_are_added_can_be_written_alone(files, folder, kind):
    with files.sink(folder, STREAM.schema, format=kind, updating="append_only") as harness:
        harness.process(changes([(False, "a", 1), (True, "a", 1), (False, "a", 2)]))
        harness.end_of_data()
        harness.commit(harness.checkpoint())
        assert harness.counters["retractions"] == 1
    read = files.read(folder, schema=WRITTEN)
    assert read.schema.names == ROWS.names
    assert read.column("v").to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_changes_kept_with_their_marks_are_read_as_the_same_stream(files, folder, kind):
    table = pa.Table.from_batches([changes([(False, "a", 1), (True, "a", 1), (False, None, None)])])
    files.write(folder, table, format=kind, updating="keep_meta")
    read = files.read(folder)
    assert is_updating(ArroyoSchema(read.schema))
    assert read.equals(table)


def test_marks_that_a_format_cannot_hold_are_refused(files, tmp_path):
    with pytest.raises(ConfigError, match=UPDATING_META):
        files.make_sink(tmp_path, format="json", updating="keep_meta").operator.output_schema([STREAM])


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"format": "parquet", "updating": "all"}, "updating"),
        ({"format": "debezium_json", "updating": "keep_meta"}, "updating"),
        ({"format": "debezium_json", "compression": "zstd"}, "compression"),
    ],
)
def test_a_wrong_sink_names_its_field(files, tmp_path, config, field):
    with pytest.raises(ConfigError) as caught:
        files.make_sink(tmp_path, **config)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"format": "json", "primary_key": ["v"]}, "primary_key"),
        ({"format": "debezium_json", "primary_key": ["w"]}, "primary_key[0]"),
        ({"format": "debezium_json", "schema": {"v": "list<int64>"}, "primary_key": ["v"]}, "primary_key[0]"),
        ({"format": "debezium_json", "schema": {"v": "binary"}}, "schema.v"),
    ],
)
def test_a_wrong_source_names_its_field(files, tmp_path, config, field):
    (tmp_path / "a.jsonl").write_text('{"after": {"v": 1}, "op": "c"}')
    with pytest.raises(ConfigError) as caught:
        files.make_source(tmp_path, **config).source.output_schema([])
    assert caught.value.field == field


def test_lines_that_are_no_envelopes_tell_no_columns(files, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"v": 1}')
    with pytest.raises(ConfigError) as caught:
        files.make_source(tmp_path, format="debezium_json").source.output_schema([])
    assert caught.value.field == "schema"
