"""What a sink writes: columns, partitions, changes; and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import ConfigError, OperatorError

from .support.sinks import Sink, plan_sink, sink_settings
from .support.tables import catalog_config, load_table, make_table

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
NAME = "shop.rows"


def sorted_rows(sink: Sink, key: str = "id") -> list[dict[str, Any]]:
    return sorted(sink.rows(), key=lambda row: row[key])


def test_types_that_iceberg_has_not_become_the_next_larger_ones(tmp_path):
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    rows = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "unsigned": pa.array([2**32 - 1, 0], pa.uint32()),
            "large": pa.array([2**64 - 1, 0], pa.uint64()),
            "half": pa.array([1.5, None], pa.float16()),
            "seconds": pa.array([at, None], pa.timestamp("s", "Europe/Berlin")),
            "nanos": pa.array([at, None], pa.timestamp("ns", "UTC")),
            "word": pa.array(["a", None]).dictionary_encode(),
            "money": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "day": pa.array([date(2026, 1, 31), None]),
            "uuid": pa.array([b"0123456789abcdef", None], pa.binary(16)),
        }
    )
    with Sink(rows.schema, folder=tmp_path) as sink:
        sink.write(rows)
        (first, second) = sink.rows()
    assert first == {
        "small": 1,
        "unsigned": 2**32 - 1,
        "large": Decimal(2**64 - 1),
        "half": 1.5,
        "seconds": at,
        "nanos": at,
        "word": "a",
        "money": Decimal("1.25"),
        "day": date(2026, 1, 31),
        "uuid": b"0123456789abcdef",
    }
    assert [name for name, value in second.items() if value is not None] == ["unsigned", "large"]


def test_digits_that_would_be_lost_are_an_error(tmp_path):
    rows = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with Sink(rows.schema, folder=tmp_path) as sink, pytest.raises(OperatorError, match=r"column 'at': .*lose data"):
        sink.write(rows)


@pytest.mark.parametrize("name", ["duration", "intervals", "null"])
def test_types_without_a_place_in_a_table_are_found_when_it_is_planned(tmp_path, name):
    kinds = {"duration": pa.duration("s"), "intervals": pa.month_day_nano_interval(), "null": pa.null()}
    with pytest.raises(ConfigError, match="which Iceberg has no type for"):
        plan_sink(pa.schema([("x", kinds[name])]), tmp_path)


def partitions(table: Table) -> set[tuple[Any, ...]]:
    found = set()
    for task in table.scan().plan_files():
        found.add(tuple(task.file.partition[place] for place in range(len(table.spec().fields))))
    return found


def test_a_table_may_be_partitioned_by_several_transforms(tmp_path):
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    rows = pa.table(
        {
            "at": pa.array(days * 4, pa.timestamp("us", "UTC")),
            "id": pa.array(range(12), pa.int64()),
            "name": ["ab", "ac", "b", None] * 3,
        }
    )
    with Sink(rows.schema, folder=tmp_path, partition_by=["day(at)", "bucket(4, id)", "truncate(1, name)"]) as sink:
        sink.write(rows)
        assert [field.name for field in sink.table.spec().fields] == ["at_day", "id_bucket", "name_trunc"]
        assert {name for _, _, name in partitions(sink.table)} == {"a", "b", None}
        assert len({day for day, _, _ in partitions(sink.table)}) == 3
        assert sorted(row["id"] for row in sink.rows()) == list(range(12))


def test_files_of_other_days_are_not_planned(tmp_path):
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    rows = pa.table({"at": pa.array(days * 4, pa.timestamp("us", "UTC")), "id": pa.array(range(12), pa.int64())})
    with Sink(rows.schema, folder=tmp_path, partition_by=["day(at)"]) as sink:
        sink.write(rows)
        table = sink.table
        assert isinstance(table.spec().fields[0].transform, DayTransform)
        assert len(partitions(table)) == 3
        scan = table.scan(row_filter="at >= '2026-01-03T00:00:00+00:00'")
        assert len(list(scan.plan_files())) == 1
        assert sorted(scan.to_arrow().column("id").to_pylist()) == [2, 5, 8, 11]


def test_files_have_statistics_that_prune_by_values(tmp_path):
    with Sink(SCHEMA, folder=tmp_path) as sink:
        for first in (0, 100, 200):
            sink.write([{"id": first + number, "name": "x"} for number in range(10)])
        assert len(list(sink.table.scan(row_filter="id > 150").plan_files())) == 1


def test_a_table_of_another_partitioning_is_refused(tmp_path):
    make_table(tmp_path, NAME, pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]}))
    with (
        Sink(SCHEMA, folder=tmp_path, partition_by=["name"], if_missing="fail") as sink,
        pytest.raises(OperatorError, match="is partitioned by nothing, not by name"),
    ):
        sink.write([{"id": 1, "name": "a"}])


def test_a_table_whose_partitioning_changes_before_the_commit_takes_the_files_all_the_same(tmp_path):
    with Sink(SCHEMA, folder=tmp_path, partition_by=["bucket(2, id)"]) as sink:
        rows = [{"id": number, "name": "x"} for number in range(8)]
        sink.write(rows[:4])
        staged = sink.stage(rows[4:])
        with sink.table.update_spec() as update:
            update.remove_field("id_bucket")
            update.add_identity("name")
        sink.commit(staged)
        assert sorted_rows(sink) == rows


def test_a_missing_table_is_an_error_unless_it_is_wanted(tmp_path):
    with (
        Sink(SCHEMA, folder=tmp_path, if_missing="fail") as sink,
        pytest.raises(OperatorError, match=r"there is no table shop\.rows"),
    ):
        sink.write([{"id": 1, "name": "a"}])


def test_a_table_is_made_where_no_row_comes(tmp_path):
    with Sink(SCHEMA, folder=tmp_path, table_properties={"write.parquet.compression-codec": "gzip"}) as sink:
        sink.write([])
        assert sink.rows() == []
        sink.write([{"id": 1, "name": "a"}])
        (task,) = sink.table.scan().plan_files()
    codec = pq.read_metadata(task.file.file_path).row_group(0).column(0).compression
    assert codec == "GZIP"


def test_columns_that_the_table_has_not_are_an_error_or_are_added(tmp_path):
    make_table(tmp_path, NAME, pa.table({"id": pa.array([1], pa.int64())}))
    row = {"id": 2, "name": "b"}
    with (
        Sink(SCHEMA, folder=tmp_path, if_missing="fail") as refusing,
        pytest.raises(OperatorError, match=r"has no column 'name'.*schema_evolution: add"),
    ):
        refusing.write([row])
    with Sink(SCHEMA, folder=tmp_path, schema_evolution="add", parallelism=2) as sink:
        sink.write([row])
        assert sorted_rows(sink) == [{"id": 1, "name": None}, row]


def test_columns_that_the_input_has_not_are_null(tmp_path):
    make_table(tmp_path, NAME, pa.table({"id": pa.array([1], pa.int64()), "name": ["a"], "more": ["x"]}))
    with Sink(SCHEMA, folder=tmp_path) as sink:
        sink.write([{"id": 2, "name": "b"}])
        assert sorted_rows(sink)[1] == {"id": 2, "name": "b", "more": None}


def test_a_column_of_another_type_is_refused(tmp_path):
    make_table(tmp_path, NAME, pa.table({"id": ["one"], "name": ["a"]}))
    with (
        Sink(SCHEMA, folder=tmp_path, if_missing="fail") as sink,
        pytest.raises(OperatorError, match=r"column 'id' is int64, and in table shop\.rows it is string"),
    ):
        sink.write([{"id": 2, "name": "b"}])


def changes(*events: tuple[str, int, str]) -> pa.RecordBatch:
    """An updating batch: `+` adds, `-` takes back."""
    rows = pa.RecordBatch.from_pylist([{"id": key, "name": name} for _, key, name in events], schema=SCHEMA)
    mask = pa.array([sign == "-" for sign, _, _ in events]).to_numpy(zero_copy_only=False)
    return make_updates(rows, is_retract=mask, ids=row_ids(rows, ["id"]))


UPDATING = ArroyoSchema(changes(("+", 1, "a")).schema)


def test_an_updating_input_is_merged(tmp_path):
    with Sink(UPDATING, folder=tmp_path, mode="merge", keys=["id"], parallelism=2) as sink:
        sink.write(changes(("+", 1, "a"), ("+", 2, "b"), ("+", 3, "c"), ("-", 1, "a"), ("+", 1, "aa")))
        assert sorted_rows(sink) == [{"id": 1, "name": "aa"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]
        sink.write(changes(("-", 2, "b"), ("-", 3, "c"), ("+", 3, "cc"), ("+", 4, "d"), ("-", 4, "d")))
        assert sorted_rows(sink) == [{"id": 1, "name": "aa"}, {"id": 3, "name": "cc"}]
        # From two subtasks the next row may come before the one that it follows is taken back.
        sink.write(changes(("+", 1, "next"), ("-", 1, "aa")))
        assert sorted_rows(sink) == [{"id": 1, "name": "next"}, {"id": 3, "name": "cc"}]
        sink.write(changes(("-", 1, "next"), ("-", 3, "cc")))
        assert sink.rows() == []


def test_a_merge_writes_only_files_with_its_keys_again(tmp_path):
    with Sink(SCHEMA, folder=tmp_path, mode="merge", keys=["id"]) as sink:
        for first in (0, 100):
            sink.write([{"id": first + number, "name": "old"} for number in range(10)])
        before = {task.file.file_path for task in sink.table.scan().plan_files()}
        sink.write([{"id": 105, "name": "new"}, {"id": 7000, "name": "new"}])
        after = {task.file.file_path for task in sink.table.scan().plan_files()}
        assert len(before & after) == 1
        assert len(after) == 3
        head = sink.table.current_snapshot()
        assert head is not None
        assert head.summary is not None
        assert head.summary.operation.value == "overwrite"
        assert {row["id"]: row["name"] for row in sink.rows()} == {
            **dict.fromkeys([*range(10), *range(100, 110)], "old"),
            105: "new",
            7000: "new",
        }


def test_a_merge_keeps_null_as_a_key_and_partitions(tmp_path):
    with Sink(SCHEMA, folder=tmp_path, mode="merge", keys=["name"], partition_by=["truncate(1, name)"]) as sink:
        sink.write([{"id": 1, "name": None}, {"id": 2, "name": "ab"}, {"id": 3, "name": "ac"}])
        sink.write([{"id": 4, "name": None}, {"id": 5, "name": "ab"}])
        assert sorted_rows(sink) == [{"id": 3, "name": "ac"}, {"id": 4, "name": None}, {"id": 5, "name": "ab"}]


def test_rows_that_std_upsert_calls_deleted_are_deleted(tmp_path):
    schema = pa.schema([*SCHEMA, ("deleted", pa.bool_())])
    with Sink(schema, folder=tmp_path, mode="merge", keys=["id"], deleted_column="deleted") as sink:
        sink.write([{"id": 1, "name": "a", "deleted": False}, {"id": 2, "name": "b", "deleted": None}])
        sink.write([{"id": 1, "name": None, "deleted": True}, {"id": 3, "name": "c", "deleted": False}])
        assert sorted_rows(sink) == [{"id": 2, "name": "b"}, {"id": 3, "name": "c"}]


def test_partitions_are_replaced_as_they_were_when_the_job_began(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    with Sink(schema, folder=tmp_path, partition_by=["day"]) as before:
        before.write([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    config: dict[str, Any] = {"mode": "overwrite_partitions"}
    with Sink(schema, folder=tmp_path, incarnation="00000000000000b2", **config) as sink:
        sink.write([{"id": 3, "day": "mon"}])
        sink.write([{"id": 4, "day": "mon"}])
        assert sorted_rows(sink) == [{"id": 2, "day": "tue"}, {"id": 3, "day": "mon"}, {"id": 4, "day": "mon"}]
        sink.write([{"id": 5, "day": "tue"}])
        assert [row["id"] for row in sorted_rows(sink)] == [3, 4, 5]


def test_large_epochs_become_several_files_and_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("arroyo_iceberg.writers.ROW_GROUP_BYTES", 4096)
    rows = pa.table({"id": pa.array(range(20_000), pa.int64()), "name": ["x" * 20] * 20_000})
    with Sink(SCHEMA, folder=tmp_path, max_file_size=30_000) as sink:
        for start in range(0, 20_000, 500):
            sink.harness.process(rows.slice(start, 500).to_batches()[0])
        sink.commit(sink.harness.checkpoint())
        files = [task.file for task in sink.table.scan().plan_files()]
        assert len(files) > 1
        assert max(pq.read_metadata(file.file_path).num_row_groups for file in files) > 1
        assert sorted(sink.table.scan().to_arrow().column("id").to_pylist()) == list(range(20_000))


def test_too_many_partitions_are_an_error(tmp_path):
    with (
        Sink(SCHEMA, folder=tmp_path, partition_by=["id"], max_partitions=3) as sink,
        pytest.raises(OperatorError, match="more than 3 partitions"),
    ):
        sink.write([{"id": number, "name": "x"} for number in range(5)])


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"mode": "merge"}, "keys"),
        ({"keys": ["id"]}, "keys"),
        ({"mode": "merge", "keys": ["nme"]}, "keys[0]"),
        ({"mode": "upsert"}, "mode"),
        ({"partition_by": ["week(id)"]}, "partition_by[0]"),
        ({"partition_by": ["bucket(id)"]}, "partition_by[0]"),
        ({"partition_by": ["day(name)"]}, "partition_by[0]"),
        ({"partition_by": ["id", "bucket(2, id)"]}, "partition_by[1]"),
        ({"partition_by": ["day(at)"]}, "partition_by[0]"),
        ({"table": "rows"}, "table"),
        ({"deleted_column": "name"}, "deleted_column"),
        ({"catalog": {"uri": "sqlite:///:memory:"}}, "catalog.uri"),
        ({"catalog": {"uri": "postgresql+psycopg://me:secret@host/db"}}, "catalog.uri"),
        ({"catalog": {"type": "hive", "uri": "thrift://host"}}, "catalog.type"),
        ({"catalog": {"type": "rest", "uri": "sqlite:///x.db"}}, "catalog.uri"),
        ({"catalog": {"uri": "sqlite:///x.db", "properties": {"token": "x"}}}, "catalog.properties.token"),
        ({"catalog": {"uri": "sqlite:///x.db", "token": "x"}}, "catalog.token"),
    ],
)
def test_mistakes_are_found_when_it_is_planned(tmp_path, config: Mapping[str, Any], field):
    with pytest.raises(ConfigError) as caught:
        plan_sink(SCHEMA, tmp_path, **config)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


def test_an_updating_input_needs_a_merge(tmp_path):
    with pytest.raises(ConfigError, match="takes back rows, which only mode: merge does") as caught:
        plan_sink(UPDATING, tmp_path)
    assert caught.value.field == "mode"


def test_settings_do_not_show_secrets(tmp_path):
    settings = sink_settings({**catalog_config(tmp_path), "password": "hunter2", "properties": {"s3.x": "hunter3"}})
    assert "hunter" not in repr(settings)


def test_names_that_parquet_has_not_come_back(tmp_path: Path):
    schema = pa.schema([("a b", pa.int64()), ("1st", pa.string())])
    with Sink(schema, folder=tmp_path) as sink:
        sink.write([{"a b": 1, "1st": "x"}])
        assert sink.rows() == [{"a b": 1, "1st": "x"}]
        assert load_table(tmp_path, NAME).scan().count() == 1
