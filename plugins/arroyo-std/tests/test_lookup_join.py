"""std.lookup_join: tables from files of every format, through fsspec, against DuckDB."""

from __future__ import annotations

import json
from collections import Counter

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_std import join_pb2
from arroyo_std.join_constructors import LookupJoinConstructor
from arroyo_std.joins.lookup_table import CACHED_TABLES, PROCESS_CACHE, LookupIndex
from arroyo_testing import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError, RetryHint

TIME = pa.timestamp("us", tz="UTC")
STREAM = ArroyoSchema(pa.schema({"id": pa.int64(), "name": pa.string(), "at": TIME}), "at", ("id",))
TABLE = pa.table({"key": pa.array([1, 2, 2, None], pa.int64()), "name": ["one", "two", "zwei", "none"]})
ON = [{"left": "id", "right": "key"}]


def batch(*ids: int | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids, pa.int64()),
            pa.array([f"row {place}" for place in range(len(ids))]),
            pa.array(range(len(ids)), pa.int64()).cast(TIME),
        ],
        schema=STREAM.schema,
    )


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path)
    return path


def found(table: pa.Table) -> list[tuple[int | None, str | None]]:
    return sorted(((row["id"], row["right_name"]) for row in table.to_pylist()), key=str)


@pytest.mark.parametrize("path", ["./table.parquet", "~/table.parquet"])
def test_the_path_of_the_table_means_the_drivers_folders_in_every_task(parquet, path, monkeypatch):
    monkeypatch.setenv("HOME", str(parquet.parent))
    monkeypatch.chdir(parquet.parent)
    config = join_pb2.LookupJoinConfig(on=[join_pb2.JoinKey(**pair) for pair in ON], table={"path": path})
    # What the plan sends to executors.
    assert LookupJoinConstructor().resolve(config).table.path == str(parquet)
    assert config.table.path == path


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", [(1, "one"), (2, "two"), (2, "zwei")]),
        ("left", [(1, "one"), (2, "two"), (2, "zwei"), (3, None), (None, None)]),
    ],
)
def test_rows_get_every_row_of_their_key(make, run, parquet, kind, expected):
    subtask = run(make("std.lookup_join", type=kind, on=ON, table={"path": str(parquet)}), [STREAM])
    subtask.feed(batch(1, 2, 3, None))
    assert found(subtask.output) == expected
    assert subtask.output.column_names == ["id", "name", "at", "key", "right_name"]
    assert subtask.output_schema.timestamp_column == "at"
    assert subtask.output_schema.key_columns == ("id",)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("table.csv", {}),
        ("table.jsonl", {}),
        ("table.json", {}),
        ("rows", {"format": "csv"}),
        ("rows", {"format": "json"}),
        ("rows", {"format": "parquet"}),
    ],
)
def test_tables_are_read_in_every_format(make, run, tmp_path, name, options):
    path = tmp_path / name
    written = options.get("format") or path.suffix[1:]
    if written == "csv":
        path.write_text("key,name\n1,one\n2,two\n2,zwei\n")
    elif written == "parquet":
        pq.write_table(TABLE.slice(0, 3), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.slice(0, 3).to_pylist()))
    subtask = run(make("std.lookup_join", on=ON, table={"path": str(path), **options}), [STREAM])
    subtask.feed(batch(1, 2, 3))
    assert found(subtask.output) == [(1, "one"), (2, "two"), (2, "zwei")]


def test_an_empty_value_of_csv_means_what_it_means_to_sources(make, run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('key,name,size\n1,,5\n2,"",\n3,NA,7\n')

    def names(**table):
        subtask = run(make("std.lookup_join", on=ON, table={"path": str(path), **table}), [STREAM])
        subtask.feed(batch(1, 2, 3))
        return [(row["right_name"], row["size"]) for row in subtask.output.to_pylist()]

    assert names() == [(None, 5), ("", None), ("NA", 7)]
    assert names(empty_as_text=True) == [("", 5), ("", None), ("NA", 7)]


def test_only_csv_has_empty_values(make, parquet):
    with pytest.raises(ConfigError, match="only csv has empty values, and the table is parquet") as caught:
        make("std.lookup_join", on=ON, table={"path": str(parquet), "empty_as_text": True})
    assert caught.value.field == "table.empty_as_text"


def test_a_folder_is_one_table_wherever_fsspec_finds_it(make, run):
    memory = fsspec.filesystem("memory")
    for place in (0, 1):
        with memory.open(f"/dimension/part-{place}.parquet", "wb") as file:
            pq.write_table(TABLE.slice(2 * place, 2), file)
    table = {"path": "memory://dimension", "format": "parquet", "columns": ["name", "key"]}
    subtask = run(make("std.lookup_join", on=ON, table=table), [STREAM])
    subtask.feed(batch(1, 2, 3))
    assert found(subtask.output) == [(1, "one"), (2, "two"), (2, "zwei")]
    assert subtask.output.column_names == ["id", "name", "at", "right_name", "key"]


@pytest.mark.usefixtures("limits")
@settings(max_examples=40, deadline=None)
@given(
    table=st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from("ab")), max_size=8),
    rows=st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from("ab")), max_size=8),
    kind=st.sampled_from(["inner", "left"]),
)
def test_a_join_of_two_keys_is_that_of_duckdb(make, run, tmp_path_factory, table, rows, kind):
    path = tmp_path_factory.mktemp("lookup") / "table.parquet"
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    right = pa.Table.from_pylist([dict(zip("ab", row, strict=True)) for row in table], schema=schema)
    left = pa.Table.from_pylist([dict(zip("ab", row, strict=True)) for row in rows], schema=schema)
    pq.write_table(right.append_column("n", pa.array(range(len(table)), pa.int64())), path)
    subtask = run(
        make("std.lookup_join", type=kind, on=[{"left": "a"}, {"left": "b"}], table={"path": str(path)}),
        [ArroyoSchema(schema)],
    )
    for each in left.to_batches(max_chunksize=3):
        subtask.feed(each)
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", pq.read_table(path))
        expected = connection.sql(f"SELECT l.*, r.* FROM l {kind} JOIN r ON l.a = r.a AND l.b = r.b").fetchall()
    assert Counter(tuple(row.values()) for row in subtask.output.to_pylist()) == Counter(expected)


def test_keys_that_only_share_a_hash_are_not_joined(make, run, parquet, monkeypatch):
    """All hashes the same: the values decide."""
    monkeypatch.setattr(
        "arroyo_std.joins.lookup_table.hash_columns", lambda columns: pa.array([7] * len(columns[0])).to_numpy()
    )
    subtask = run(make("std.lookup_join", type="left", on=ON, table={"path": str(parquet)}), [STREAM])
    subtask.feed(batch(2, 3, None))
    assert found(subtask.output) == [(2, "two"), (2, "zwei"), (3, None), (None, None)]


def test_a_table_is_read_once_and_again_when_it_is_too_old(make, run, parquet, monkeypatch):
    reads = []
    real = LookupIndex.__init__

    def counting(self, table, keys):
        reads.append(table.num_rows)
        real(self, table, keys)

    monkeypatch.setattr(LookupIndex, "__init__", counting)
    clock = FakeClock(now_us=1_000_000)
    config = {"on": ON, "table": {"path": str(parquet)}, "cache": {"ttl": 60_000_000}}
    subtask = run(lambda: make("std.lookup_join", **config), [STREAM], clock=clock)
    subtask.feed(batch(1), batch(1))
    pq.write_table(pa.table({"key": pa.array([1], pa.int64()), "name": ["uno"]}), parquet)
    subtask.checkpoint()
    subtask.restore()
    clock.advance(59)
    subtask.feed(batch(1))
    assert reads == [4]
    clock.advance(1)
    subtask.feed(batch(1), batch(1))
    assert reads == [4, 1]
    assert [row["right_name"] for row in subtask.output.to_pylist()] == ["one", "one", "one", "uno", "uno"]


def test_a_process_keeps_a_bounded_number_of_tables(make, run, tmp_path):
    for place in range(CACHED_TABLES + 3):
        path = tmp_path / f"{place}.parquet"
        pq.write_table(TABLE, path)
        run(make("std.lookup_join", on=ON, table={"path": str(path)}), [STREAM]).feed(batch(1))
    assert len(PROCESS_CACHE._tables) == CACHED_TABLES
    assert len(PROCESS_CACHE._schemas) == CACHED_TABLES


def test_retractions_pass_with_their_rows(make, run, parquet):
    subtask = run(make("std.lookup_join", type="left", on=ON, table={"path": str(parquet)}), [with_updating(STREAM)])
    plain = batch(2, 3)
    subtask.feed(make_updates(plain, is_retract=True, ids=row_ids(plain, ["id"])))
    assert [row[UPDATING_META]["is_retract"] for row in subtask.output.to_pylist()] == [True] * 3


def test_a_table_that_is_too_large_stops_the_pipeline(make, run, tmp_path):
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({"key": pa.array(range(1000), pa.int64())}), path)
    config = {"on": ON, "table": {"path": str(path)}, "cache": {"max_bytes": 4096}}
    subtask = run(make("std.lookup_join", **config), [STREAM])
    with pytest.raises(OperatorError, match=r"larger than cache\.max_bytes, 4KiB"):
        subtask.feed(batch(1))


def test_a_table_that_cannot_be_read_any_more_is_tried_again_later(make, run, parquet):
    subtask = run(make("std.lookup_join", on=ON, table={"path": str(parquet)}), [STREAM])
    parquet.unlink()
    with pytest.raises(OperatorError, match="cannot read the table") as raised:
        subtask.feed(batch(1))
    assert raised.value.cause_retry is RetryHint.WITH_BACKOFF


def test_a_table_that_has_lost_a_column_stops_the_pipeline(make, run, parquet):
    subtask = run(make("std.lookup_join", on=ON, table={"path": str(parquet)}), [STREAM])
    pq.write_table(TABLE.drop_columns(["name"]), parquet)
    with pytest.raises(OperatorError, match="had a column 'name' when the pipeline was planned"):
        subtask.feed(batch(1))


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"table": {}}, "table.path", "missing"),
        ({"table": {"path": "rows.txt"}}, "table.format", "give 'format'"),
        ({"table": {"path": "no/such/table.csv"}}, "table.path", "cannot read"),
        ({"cache": {"max_bytes": 0}}, "cache.max_bytes", "more than zero"),
        ({"cache": {"ttl": 0}}, "cache.ttl", "more than zero"),
        ({"type": "full"}, "type", "do not come out by themselves"),
        ({"on": [{"left": "id", "right": "kye"}]}, "on[0].right", "no column 'kye'"),
        ({"on": [{"left": "id", "right": "name"}]}, "on[0].right", "'id' on the left is int64, 'name'.*string"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, parquet, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make("std.lookup_join", **{"on": ON, "table": {"path": str(parquet)}, **config}).output_schema([STREAM])
    assert raised.value.field == field


def test_a_column_that_the_table_has_not_is_answered_with_the_nearest(make, parquet):
    table = {"path": str(parquet), "columns": ["key", "nmae"]}
    with pytest.raises(ConfigError, match="no column 'nmae'") as raised:
        make("std.lookup_join", on=ON, table=table).output_schema([STREAM])
    assert (raised.value.field, raised.value.suggestion) == ("table.columns[1]", "name")


def test_storage_options_are_not_shown(make, parquet):
    operator = make("std.lookup_join", on=ON, table={"path": str(parquet), "storage_options": {"key": "SECRET"}})
    assert "SECRET" not in repr(operator.display())
    assert "SECRET" not in repr(operator._source)
