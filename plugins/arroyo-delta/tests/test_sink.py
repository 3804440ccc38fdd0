"""What the sink makes of columns, types, partitions, updating streams and tables of others."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_delta.sink import DeltaSink
from arroyo_delta.sink_settings import check_sink
from arroyo_delta.staging import StagedEpoch, decode_epochs
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import UPDATING_META, UPDATING_TYPE
from arroyo_core.errors import ConfigError, OperatorError, UnsafePathError

from .support.sinks import Sink, sink_config
from .support.tables import rows

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("id", pa.int64()), ("place", pa.string())])
ROW = {"id": 1, "place": "x"}
UPDATING = pa.schema([*SCHEMA, pa.field(UPDATING_META, UPDATING_TYPE)])


def change(number: int, place: str | None, *, is_retract: bool = False) -> dict[str, Any]:
    return {"id": number, "place": place, UPDATING_META: {"is_retract": is_retract, "id": bytes(16)}}


def output_schema(schema: pa.Schema, **config: Any) -> ArroyoSchema:
    return DeltaSink(check_sink(sink_config(table="/t", **config))).output_schema([ArroyoSchema(schema)])


def entries(table: Path) -> list[dict[str, Any]]:
    """The actions of the newest version."""
    path = table / "_delta_log" / f"{DeltaTable(str(table)).version():020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def statistics(table: Path) -> dict[str, Any]:
    [added] = [each["add"] for each in entries(table) if "add" in each]
    found: dict[str, Any] = json.loads(added["stats"])
    return found


def write_all(folder: Path, schema: pa.Schema, given: list[dict[str, Any]], **config: Any) -> Path:
    with Sink(folder / "t", schema, parallelism=1, **config) as sink:
        sink.write(given, epoch=1)
    return folder / "t"


def test_values_of_every_type_come_back(tmp_path):
    utc = datetime.UTC
    given = {
        "bool": (pa.bool_(), True),
        "small": (pa.uint8(), 255),
        "long": (pa.uint64(), 2**63 - 1),
        "float": (pa.float32(), 0.5),
        "text": (pa.large_string(), "x" * 100),
        "bytes": (pa.binary(2), b"ab"),
        "date": (pa.date32(), datetime.date(999, 1, 2)),
        "zoned": (pa.timestamp("ms", "Europe/Berlin"), datetime.datetime(2026, 1, 31, 12, tzinfo=utc)),
        "plain": (pa.timestamp("us"), datetime.datetime(2026, 1, 31, 12, 0, 0, 1)),
        "amount": (pa.decimal128(38, 10), decimal.Decimal("-1234567890123456789.0123456789")),
        "list": (pa.list_(pa.int16()), [1, None]),
        "struct": (pa.struct([("a", pa.large_string())]), {"a": "b"}),
        "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
        "word": (pa.dictionary(pa.int8(), pa.string()), "again"),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in given.items()])
    table = write_all(tmp_path, schema, [{name: value for name, (_, value) in given.items()}, dict.fromkeys(given)])
    found, empty = sorted(pa.table(DeltaTable(str(table)).scan()).to_pylist(), key=lambda row: row["bool"] is None)
    expected = {name: value for name, (_, value) in given.items()}
    expected["plain"] = expected["plain"].replace(tzinfo=utc)
    assert found == expected
    assert set(empty.values()) == {None}
    assert DeltaTable(str(table)).protocol().min_reader_version == 1


def test_statistics_hold_all_values(tmp_path):
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("nan", pa.float64()),
            ("x", pa.float64()),
            ("text", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("amount", pa.decimal128(20, 2)),
            ("gone", pa.int32()),
            ("list", pa.list_(pa.int64())),
        ]
    )
    at = datetime.datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=datetime.UTC)
    row = {"n": 3, "nan": math.nan, "x": -1.5, "text": "b" * 40, "at": at, "amount": decimal.Decimal("123456789012.34")}
    found = statistics(write_all(tmp_path, schema, [row, {**row, "n": -3, "nan": 1.0, "text": "a"}, {}]))
    assert found["numRecords"] == 3
    assert found["minValues"] == {
        "n": -3,
        "x": -1.5,
        "text": "a",
        "at": "2026-01-31T12:00:00.123456Z",
        "amount": 123456789012.34,
    }
    assert found["maxValues"]["text"] == "b" * 32 + "\U0010ffff"
    assert found["nullCount"] == {"n": 1, "nan": 1, "x": 1, "text": 1, "at": 1, "amount": 1, "gone": 3}


@pytest.mark.parametrize(
    "predicate", ["n = -3", "x < -1", "text = 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'", "nan > 5", "amount > 1.01"]
)
def test_readers_that_look_at_statistics_find_what_is_there(tmp_path, predicate):
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("x", pa.float64()),
            ("text", pa.string()),
            ("nan", pa.float64()),
            ("amount", pa.decimal128(9, 2)),
        ]
    )
    given = [{"n": -3, "x": -1.5, "text": "b" * 40, "nan": math.inf, "amount": decimal.Decimal("1.02")}]
    table = write_all(tmp_path, schema, [*given, {"n": 1, "x": 1.0, "text": "c", "nan": math.nan, "amount": None}])
    assert pa.table(DeltaTable(str(table)).scan(predicate=predicate)).num_rows >= 1


def test_partitions_of_every_type_come_back(tmp_path):
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("text", pa.string()),
            ("whole", pa.int32()),
            ("is", pa.bool_()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("amount", pa.decimal128(9, 2)),
        ]
    )
    at = datetime.datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=datetime.UTC)
    row = {
        "n": 1,
        "text": "a b/c%",
        "whole": -1,
        "is": True,
        "day": at.date(),
        "at": at,
        "amount": decimal.Decimal("1.50"),
    }
    given = [row, {**row, "n": 2, "text": None}, {**row, "n": 3, "is": False}, {"n": 4}]
    names = schema.names[1:]
    table = write_all(tmp_path, schema, given, partition_by=names)
    found = sorted(pa.table(DeltaTable(str(table)).scan()).to_pylist(), key=lambda row: row["n"])
    assert found == [{**dict.fromkeys(schema.names), **each} for each in given]
    with Sink(table, schema, parallelism=1, mode="overwrite_partitions") as sink:
        sink.write([{**each, "n": each["n"] + 10} for each in given], epoch=2)
    found = sorted(pa.table(DeltaTable(str(table)).scan()).to_pylist(), key=lambda row: row["n"])
    assert [each["n"] for each in found] == [11, 12, 13, 14]


def test_an_empty_text_is_not_made_the_null_partition(tmp_path):
    with pytest.raises(OperatorError, match="has an empty text, and the table is partitioned by it"):
        write_all(tmp_path, SCHEMA, [{"id": 1, "place": ""}], partition_by=["place"])


def test_files_are_rolled_by_size_and_none_is_made_for_nothing(tmp_path):
    schema = pa.schema([("text", pa.string())])
    with Sink(tmp_path / "t", schema, parallelism=1, max_file_size=1) as sink:
        for number in range(3):
            batch = pa.RecordBatch.from_pylist([{"text": f"{number}-{each}"} for each in range(2**20)], schema=schema)
            sink.harness.process(batch)
        sink.commit(sink.harness.checkpoint(), epoch=1)
        assert len(DeltaTable(str(sink.table)).file_uris()) == 3
        assert DeltaTable(str(sink.table)).count() == 3 * 2**20


def test_too_many_partitions_are_refused(tmp_path):
    with pytest.raises(OperatorError, match="more than 2 partitions"):
        write_all(
            tmp_path, SCHEMA, [{"id": n, "place": str(n)} for n in range(3)], partition_by=["place"], max_partitions=2
        )


def test_an_updating_stream_becomes_its_last_rows(tmp_path):
    with Sink(tmp_path / "t", UPDATING, mode="merge", keys=["id"]) as sink:
        sink.write([change(1, "a"), change(2, "b"), change(3, None)], epoch=1)
        taken_back = [change(1, "a", is_retract=True), change(2, "b", is_retract=True)]
        gone_again = [change(5, "e"), change(5, "e", is_retract=True)]
        sink.write([*taken_back, change(1, "A"), change(4, "d"), *gone_again], epoch=2)
        assert rows(sink.table, "id", "place") == [(1, "A"), (3, None), (4, "d")]
        sink.write([change(2, "b", is_retract=True)], epoch=3)
        assert rows(sink.table, "id", "place") == [(1, "A"), (3, None), (4, "d")]


def test_null_is_a_key_like_others(tmp_path):
    with Sink(tmp_path / "t", SCHEMA, mode="merge", keys=["id", "place"]) as sink:
        sink.write([{"id": None, "place": "a"}, {"id": 1, "place": None}], epoch=1)
        sink.write([{"id": None, "place": "a"}, {"id": None, "place": None}], epoch=2)
        assert rows(sink.table) == [(1, None), (None, "a"), (None, None)]


def test_rows_that_std_upsert_calls_deleted_are_deleted(tmp_path):
    schema = pa.schema([*SCHEMA, ("deleted", pa.bool_())])
    gone = {"place": None, "deleted": True}
    with Sink(tmp_path / "t", schema, mode="merge", keys=["id"], deleted_column="deleted") as sink:
        sink.write([{"id": 1, "place": "a", "deleted": False}, {"id": 2, "place": "b", "deleted": None}], epoch=1)
        sink.write([{"id": 1, **gone}, {"id": 3, "place": "c", "deleted": False}, {"id": 4, **gone}], epoch=2)
        assert rows(sink.table) == [(2, "b"), (3, "c")]
        # Of one epoch the last one counts, and a key that is not there is no row.
        sink.write([{"id": 3, **gone}, {"id": 3, "place": "d", "deleted": False}, {"id": 9, **gone}], epoch=3)
        sink.write([{"id": 2, "place": "e", "deleted": False}, {"id": 2, **gone}], epoch=4)
        assert rows(sink.table) == [(3, "d")]


def test_a_merge_leaves_columns_alone_that_the_input_has_not(tmp_path):
    wide = pa.table({"id": [1, 2], "place": ["a", "b"], "kept": [10, 20]})
    write_deltalake(str(tmp_path / "t"), wide)
    with Sink(tmp_path / "t", SCHEMA, mode="merge", keys=["id"]) as sink:
        sink.write([{"id": 2, "place": "B"}, {"id": 3, "place": "c"}], epoch=1)
        assert rows(sink.table) == [(1, "a", 10), (2, "B", 20), (3, "c", None)]


@pytest.mark.parametrize("mode", [{}, {"mode": "merge", "keys": ["id"]}])
def test_new_columns_are_refused_or_added(tmp_path, mode):
    more = pa.schema([*SCHEMA, pa.field("added", pa.int64())])
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [0], "place": ["old"]}))
    with pytest.raises(OperatorError, match="the table has no column 'added'"):
        write_all(tmp_path, more, [{"id": 1, "place": "x", "added": 2}], **mode)
    write_all(tmp_path, more, [{"id": 1, "place": "x", "added": 2}], schema_evolution="add", **mode)
    assert rows(tmp_path / "t", "id", "place", "added") == [(0, "old", None), (1, "x", 2)]


def test_columns_that_are_narrower_or_missing_fit_and_others_do_not(tmp_path):
    table = pa.table({"id": pa.array([1], pa.int64()), "x": pa.array([1.0], pa.float64()), "place": ["a"]})
    write_deltalake(str(tmp_path / "t"), table)
    write_all(tmp_path, pa.schema([("x", pa.float32()), ("id", pa.int16())]), [{"id": 2, "x": 0.5}])
    assert rows(tmp_path / "t", "id", "x", "place") == [(1, 1.0, "a"), (2, 0.5, None)]
    with pytest.raises(OperatorError, match="column 'id' is string in the input and int64 in the table"):
        write_all(tmp_path, pa.schema([("id", pa.string())]), [{"id": "x"}])
    with pytest.raises(OperatorError, match="column 'id', which is int64 in the table: Integer value"):
        write_all(tmp_path, pa.schema([("id", pa.uint64())]), [{"id": 2**63}])


def test_a_null_in_a_column_without_nulls_is_found_before_the_checkpoint(tmp_path):
    fields = [Field("id", PrimitiveType("long"), nullable=False), Field("place", PrimitiveType("string"))]
    DeltaTable.create(str(tmp_path / "t"), Schema(fields))
    write_all(tmp_path, SCHEMA, [ROW])
    with pytest.raises(OperatorError, match="column 'id' has a null, and the table has none there"):
        write_all(tmp_path, SCHEMA, [{"id": None, "place": "x"}])
    with pytest.raises(OperatorError, match="the input has no column 'id', which the table needs"):
        write_all(tmp_path, pa.schema([("place", pa.string())]), [{"place": "x"}])


@pytest.mark.parametrize(
    ("configuration", "mode", "reason"),
    [
        (
            {"delta.setTransactionRetentionDuration": "interval 1 day"},
            "append",
            "the markers of this sink would expire",
        ),
        ({"delta.appendOnly": "true"}, "merge", "this mode takes rows away"),
        ({"delta.appendOnly": "true"}, "append", None),
    ],
)
def test_tables_with_rules_that_the_sink_does_not_keep_are_refused(tmp_path, configuration, mode, reason):
    DeltaTable.create(str(tmp_path / "t"), Schema.from_arrow(SCHEMA), configuration=configuration)
    config = {"mode": mode, **({"keys": ["id"]} if mode == "merge" else {})}
    if reason is None:
        write_all(tmp_path, SCHEMA, [ROW], **config)
        return
    with pytest.raises(OperatorError, match=reason):
        write_all(tmp_path, SCHEMA, [ROW], **config)


def test_a_table_with_a_constraint_is_refused(tmp_path):
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "place": ["a"]}))
    DeltaTable(str(tmp_path / "t")).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(OperatorError, match=r"constraint delta\.constraints\.positive"):
        write_all(tmp_path, SCHEMA, [ROW])


def test_a_table_is_made_only_on_request(tmp_path):
    with pytest.raises(OperatorError, match=r"there is no table at .*; if_missing: create makes one"):
        write_all(tmp_path, SCHEMA, [ROW], if_missing="fail")


def test_a_table_keeps_its_partitions(tmp_path):
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "place": ["a"]}), partition_by=["place"])
    write_all(tmp_path, SCHEMA, [ROW])
    assert rows(tmp_path / "t", "id", "place") == [(1, "a"), (1, "x")]
    with pytest.raises(OperatorError, match=r"is partitioned by \['place'\], and partition_by is \['id'\]"):
        write_all(tmp_path, SCHEMA, [ROW], partition_by=["id"])


def test_columns_that_others_add_between_checkpoint_and_commit_do_no_harm(tmp_path):
    with Sink(tmp_path / "t", SCHEMA) as sink:
        sink.write([ROW], epoch=1)
        staged = sink.stage([{"id": 2, "place": "y"}])
        DeltaTable(str(sink.table)).alter.add_columns([Field("other", PrimitiveType("long"))])
        sink.commit(staged, epoch=2)
        assert rows(sink.table, "id", "place") == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"mode": "merge"}, "keys", "needs keys"),
        ({"keys": ["id"]}, "keys", "has no keys"),
        ({"mode": "merge", "keys": ["none"]}, "keys[0]", "no column 'none'"),
        ({"deleted_column": "place"}, "deleted_column", "is of mode: merge"),
        ({"mode": "merge", "keys": ["id"], "deleted_column": "none"}, "deleted_column", "no column 'none'"),
        ({"mode": "merge", "keys": ["id"], "deleted_column": "place"}, "deleted_column", "is string, not bool"),
        ({"partition_by": ["none"]}, "partition_by[0]", "no column 'none'"),
        ({"partition_by": ["id", "place"]}, "partition_by", "a column that it is not partitioned by"),
        (
            {"storage_options": {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}},
            "storage_options.AWS_S3_ALLOW_UNSAFE_RENAME",
            "lost",
        ),
    ],
)
def test_a_config_that_cannot_work_is_refused_while_planning(config, field, message):
    with pytest.raises(ConfigError, match=message) as refused:
        output_schema(SCHEMA, **config)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("a b", pa.int64())]),
        pa.schema([("a", pa.int64()), ("A", pa.int64())]),
        pa.schema([("at", pa.time64("us"))]),
        pa.schema([("list", pa.list_(pa.duration("s")))]),
    ],
)
def test_columns_that_a_table_cannot_have_are_refused_while_planning(schema):
    with pytest.raises(ConfigError):
        output_schema(schema)


def test_an_updating_stream_is_not_appended():
    with pytest.raises(ConfigError, match="mode: merge with the keys"):
        output_schema(UPDATING)


def test_an_updating_stream_has_no_deleted_column():
    schema = pa.schema([*UPDATING, pa.field("deleted", pa.bool_())])
    with pytest.raises(ConfigError, match="an updating input needs no deleted_column"):
        output_schema(schema, mode="merge", keys=["id"], deleted_column="deleted")


@pytest.mark.parametrize(
    "path", ["../secret.parquet", "/etc/passwd", "arroyo/other/1/part-000-0-" + "0" * 32 + ".parquet"]
)
def test_commit_data_of_others_make_no_file_part_of_the_table(tmp_path, path):
    with Sink(tmp_path / "t", SCHEMA) as sink:
        sink.write([ROW], epoch=1)
        staged = sink.stage([{"id": 2, "place": "y"}])
        forged = {}
        for subtask, data in staged["files"].items():
            if data:
                epoch = msgspec.msgpack.decode(data, type=StagedEpoch)
                files = tuple(msgspec.structs.replace(file, path=path) for file in epoch.files)
                forged[subtask] = msgspec.msgpack.encode(msgspec.structs.replace(epoch, files=files))
        with pytest.raises(OperatorError) as refused:
            sink.commit({"files": forged}, epoch=2)
        assert isinstance(refused.value.__cause__, UnsafePathError)
        assert rows(sink.table, "id", "place") == [(1, "x")]


def test_a_merge_brings_no_file_from_outside_into_the_table(tmp_path):
    outside = tmp_path / "outside.parquet"
    pq.write_table(pa.table({"id": pa.array([7], pa.int64()), "place": ["a secret"]}), outside)
    with Sink(tmp_path / "t", SCHEMA, mode="merge", keys=["id"]) as sink:
        sink.write([ROW], epoch=1)
        log = sorted((sink.table / "_delta_log").glob("*.json"))
        added = {"partitionValues": {}, "size": outside.stat().st_size, "modificationTime": 0, "dataChange": True}
        entry = json.dumps({"add": {**added, "path": str(outside)}})
        (sink.table / "_delta_log" / f"{len(log):020}.json").write_text(entry + "\n")
        with pytest.raises(OperatorError, match="names a file outside of it"):
            sink.write([{"id": 7, "place": "y"}], epoch=2)
    inside = [row for path in sink.table.rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert "a secret" not in str(inside)


@pytest.mark.parametrize("data", [b"\xc1", b"\x90" * 2000, b"{}"])
def test_commit_data_that_are_none_are_refused(data):
    with pytest.raises(Exception, match="commit data are not a list of staged files"):
        decode_epochs({0: data}, "arroyo/node")
