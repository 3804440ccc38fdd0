"""A table is looked up in one snapshot, whatever is written meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_iceberg.iceberg_pb2 import LookupConfig
from arroyo_iceberg.lookup import IcebergLookup, check_lookup, resolve_lookup
from arroyo_testing import run_in_process
from google.protobuf import json_format

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError, DataError

from .support.tables import catalog_config, load_table, make_table

pytestmark = pytest.mark.once

NAME = "shop.countries"
MANY_BYTES = 2**30


def countries(*codes: str) -> pa.Table:
    names = {"NL": "Nederland", "BE": "België", "DE": "Deutschland"}
    return pa.table(
        {"code": pa.array(codes, pa.string()), "name": pa.array([names[each] for each in codes], pa.string())}
    )


def resolved(folder: Path, **config: Any) -> LookupConfig:
    written = {"catalog": catalog_config(folder), "table": NAME, **config}
    return resolve_lookup(with_defaults(json_format.ParseDict(written, LookupConfig())))


def lookup(folder: Path, **config: Any) -> IcebergLookup:
    return IcebergLookup(check_lookup(resolved(folder, **config)))


def read(found: IcebergLookup) -> list[dict[str, Any]]:
    return sorted(found.read(found.schema(), MANY_BYTES).to_pylist(), key=repr)


def codes(found: IcebergLookup) -> list[str]:
    return [row["code"] for row in read(found)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with two snapshots."""
    make_table(tmp_path, NAME, countries("NL"))
    make_table(tmp_path, NAME, countries("BE"))
    return tmp_path


def test_it_is_read_in_the_snapshot_of_the_plan(folder):
    planned = lookup(folder)
    table = make_table(folder, NAME, countries("DE"))
    assert codes(planned) == ["BE", "NL"]
    assert codes(lookup(folder)) == ["BE", "DE", "NL"]
    first = str(table.refresh().metadata.snapshots[0].snapshot_id)
    assert read(lookup(folder, snapshot=first, columns=["name"])) == [{"name": "Nederland"}]
    assert planned.schema() == pa.schema([("code", pa.string()), ("name", pa.string())])


def test_rows_that_are_deleted_before_the_plan_are_not_found_and_those_after_it_are(folder):
    planned = lookup(folder)
    load_table(folder, NAME).delete("code == 'NL'")
    assert codes(planned) == ["BE", "NL"]
    assert codes(lookup(folder)) == ["BE"]


def test_a_branch_is_read_apart(folder):
    table = load_table(folder, NAME)
    table.manage_snapshots().create_branch(table.metadata.snapshots[0].snapshot_id, "audit").commit()
    assert codes(lookup(folder, branch="audit")) == ["NL"]
    with pytest.raises(ConfigError, match="has no branch 'autid'"):
        lookup(folder, branch="autid")


def test_snapshots_have_keys_of_their_own_and_equal_configs_the_same(folder):
    first = str(load_table(folder, NAME).metadata.snapshots[0].snapshot_id)
    assert lookup(folder).cache_key() == lookup(folder).cache_key() != lookup(folder, snapshot=first).cache_key()


def test_a_table_without_a_snapshot_has_no_rows(tmp_path):
    table = make_table(tmp_path, NAME, countries())
    table.catalog.drop_table(NAME)
    table.catalog.create_table(NAME, countries().schema)
    assert read(lookup(tmp_path)) == []


def test_a_table_that_is_too_large_is_refused(folder):
    found = lookup(folder)
    with pytest.raises(DataError, match=r"larger than cache\.max_bytes"):
        found.read(found.schema(), 10)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"table": "shop.none"}, "there is no table shop.none"),
        ({"table": "none"}, "with its namespace"),
        ({"columns": ["none"]}, "no column 'none'"),
        ({"snapshot": "12"}, "has no snapshot 12"),
        ({"snapshot": "latest"}, "the id of a snapshot is a number"),
    ],
)
def test_what_is_not_there_is_refused_while_planning(folder, config, message):
    with pytest.raises(ConfigError, match=message):
        lookup(folder, **config)


def test_a_snapshot_that_has_expired_since_the_plan_is_named(folder):
    planned = lookup(folder)
    table = make_table(folder, NAME, countries("DE"))
    table.refresh().maintenance.expire_snapshots().by_id(table.metadata.snapshots[1].snapshot_id).commit()
    with pytest.raises(DataError, match="has expired: start the job again"):
        read(planned)


def test_a_file_that_is_gone_is_named(folder):
    planned = lookup(folder)
    for path in (folder / "warehouse").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(DataError, match="is gone"):
        read(planned)


def test_a_table_that_was_made_again_or_lost_a_column_is_an_error(folder):
    planned = lookup(folder)
    with load_table(folder, NAME).update_schema() as update:
        update.delete_column("name")
    with pytest.raises(DataError, match="has no column 'name' any more"):
        read(planned)
    load_table(folder, NAME).catalog.drop_table(NAME)
    make_table(folder, NAME, countries("NL"))
    with pytest.raises(DataError, match="dropped and made again"):
        read(planned)


def test_rows_are_looked_up_in_a_pipeline(folder):
    uri, warehouse = catalog_config(folder).values()
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
    config:
      table: {{lookup: iceberg.lookup, config: {{catalog: {{uri: "{uri}", warehouse: {warehouse}}}, table: {NAME}}}}}
      on: [{{left: code, right: code}}]
  - id: out
    operator: iceberg.sink
    inputs: [named]
    config: {{catalog: {{uri: "{uri}", warehouse: {warehouse}}}, table: shop.named, if_missing: create}}
"""
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    run_in_process(str(folder / "job.yaml"))
    rows = load_table(folder, "shop.named").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [
        (0, "Nederland"),
        (1, "België"),
        (2, "Nederland"),
        (3, "België"),
    ]
