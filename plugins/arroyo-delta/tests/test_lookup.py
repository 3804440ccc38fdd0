"""A table is looked up in one version, whatever is written meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_delta.delta_pb2 import LookupConfig
from arroyo_delta.lookup import DeltaLookup, check_lookup, resolve_lookup
from arroyo_testing import run_in_process
from deltalake import DeltaTable, write_deltalake
from google.protobuf import json_format

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError, DataError

pytestmark = pytest.mark.once

MANY_BYTES = 2**30


def lookup(table: Path, **config: Any) -> DeltaLookup:
    parsed = json_format.ParseDict({"table": str(table), **config}, LookupConfig())
    return DeltaLookup(check_lookup(resolve_lookup(with_defaults(parsed))))


def read(found: DeltaLookup) -> list[dict[str, Any]]:
    return sorted(found.read(found.schema(), MANY_BYTES).to_pylist(), key=repr)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for code, name in (("NL", "Nederland"), ("BE", "België")):
        write_deltalake(str(path), pa.table({"code": [code], "name": [name]}), mode="append", partition_by=["code"])
    return path


def test_it_is_read_in_the_version_of_the_plan(table):
    planned = lookup(table)
    write_deltalake(str(table), pa.table({"code": ["DE"], "name": ["Deutschland"]}), mode="append")
    assert [row["code"] for row in read(planned)] == ["BE", "NL"]
    assert [row["code"] for row in read(lookup(table))] == ["BE", "DE", "NL"]
    assert read(lookup(table, version=0, columns=["name"])) == [{"name": "Nederland"}]
    assert planned.schema() == pa.schema([("code", pa.string()), ("name", pa.string())])


def name_in_log(table: Path, path: str, size: int) -> None:
    """Make a version of the table that has one more file, as whoever can write its log may."""
    added = {"path": path, "partitionValues": {"code": "X"}, "size": size, "modificationTime": 0, "dataChange": True}
    (table / "_delta_log" / "00000000000000000002.json").write_text(json.dumps({"add": added}) + "\n")


@pytest.mark.parametrize(
    "name",
    [
        "{}",
        "file://{}",
        "../outside.parquet",
        "%2E%2E/outside.parquet",
        "a/../../outside.parquet",
        "n=x%2F..%2F..%2Foutside.parquet",
        "n=x/%252E%252E/outside.parquet",
    ],
)
def test_files_outside_of_the_table_are_not_read(table, name):
    outside = table.parent / "outside.parquet"
    pq.write_table(pa.table({"name": ["a secret"]}), outside)
    name_in_log(table, name.format(outside), outside.stat().st_size)
    # The library itself reads some of them.
    found = lookup(table)
    with pytest.raises(DataError, match="names a file outside of it, which is not read") as caught:
        read(found)
    assert "a secret" not in str(caught.value)


def test_partitions_with_odd_values_are_inside(tmp_path):
    values = ["..", "a:b", "/etc/passwd", "%2e%2e/x", "file:///x", "100%"]
    path = tmp_path / "odd"
    write_deltalake(str(path), pa.table({"code": values, "n": list(range(6))}), partition_by=["code"])
    assert sorted(row["code"] for row in read(lookup(path))) == sorted(values)


def test_versions_have_keys_of_their_own_and_equal_configs_the_same(table):
    assert lookup(table).cache_key() == lookup(table).cache_key() != lookup(table, version=0).cache_key()


def test_a_table_that_is_too_large_is_refused(table):
    found = lookup(table)
    with pytest.raises(DataError, match=r"larger than cache\.max_bytes"):
        found.read(found.schema(), 10)


def test_what_is_not_there_is_refused_while_planning(tmp_path, table):
    with pytest.raises(ConfigError, match="there is no table at"):
        lookup(tmp_path / "none")
    with pytest.raises(ConfigError, match="no column 'none'"):
        lookup(table, columns=["none"])


def test_rows_are_looked_up_in_a_pipeline(table, tmp_path):
    text = f"""
name: looked_up
nodes:
  - id: numbers
    operator: impulse.source
    config: {{count: 4}}
  - id: codes
    operator: std.project
    inputs: [numbers]
    config: {{expressions: {{id: CAST(counter AS BIGINT), code: "CASE counter % 2 WHEN 0 THEN 'NL' ELSE 'BE' END"}}}}
  - id: named
    operator: std.lookup_join
    inputs: [codes]
    config: {{table: {{lookup: delta.lookup, config: {{table: {table}}}}}, on: [{{left: code, right: code}}]}}
  - id: out
    operator: delta.sink
    inputs: [named]
    config: {{table: {tmp_path / "out"}, if_missing: create}}
"""
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    run_in_process(str(tmp_path / "job.yaml"))
    rows = pa.table(DeltaTable(str(tmp_path / "out")).scan()).to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [
        (0, "Nederland"),
        (1, "België"),
        (2, "Nederland"),
        (3, "België"),
    ]
