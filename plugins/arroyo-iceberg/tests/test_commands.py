"""`arroyo iceberg` on a table that a pipeline has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.cli.main import main

from .support.sinks import Sink
from .support.tables import load_table

SCHEMA = pa.schema([("counter", pa.int64())])


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    file = tmp_path / "copy.yaml"
    file.write_text(
        f"""
name: copy
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: 10}}}}
  - id: out
    operator: iceberg.sink
    inputs: [numbers]
    config:
      catalog: {{uri: "sqlite:///{tmp_path}/catalog.db", warehouse: "{tmp_path}/warehouse"}}
      table: shop.rows
""",
        encoding="utf-8",
    )
    return str(file)


@pytest.fixture
def sink(tmp_path: Path) -> Any:
    with Sink(SCHEMA, folder=tmp_path) as made:
        for number in range(3):
            made.write([{"counter": number}])
        yield made


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, str]]:
    assert main([*args, "--format", "json"]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_snapshots_are_listed_with_the_job_that_made_them(pipeline, sink, capsys):
    rows = shown(capsys, "iceberg", "snapshots", pipeline, "out")
    assert [row["rows"] for row in rows] == ["1", "2", "3"]
    assert [row["refs"] for row in rows] == ["", "", "main"]
    assert {row["operation"] for row in rows} == {"append"}
    assert all(row["job"] for row in rows)


def test_snapshots_expire_only_when_it_is_said(pipeline, sink, capsys, tmp_path):
    assert len(shown(capsys, "iceberg", "expire", pipeline, "out", "--older-than", "0s")) == 2
    assert len(load_table(tmp_path, "shop.rows").metadata.snapshots) == 3
    assert shown(capsys, "iceberg", "expire", pipeline, "out", "--yes") == []
    assert len(shown(capsys, "iceberg", "expire", pipeline, "out", "--older-than", "0s", "--yes")) == 2
    table = load_table(tmp_path, "shop.rows")
    assert len(table.metadata.snapshots) == 1
    assert table.scan().count() == 3
    sink.write([{"counter": 3}])
    assert load_table(tmp_path, "shop.rows").scan().count() == 4


def test_files_of_nobody_are_found_and_deleted_when_it_is_said(pipeline, sink, capsys, tmp_path):
    sink.harness.process(pa.RecordBatch.from_pylist([{"counter": 7}], schema=SCHEMA))
    sink.harness.checkpoint(is_lost=True)
    sink.harness.crash()
    assert shown(capsys, "iceberg", "orphans", pipeline, "out") == [], "it is too young"
    (orphan,) = shown(capsys, "iceberg", "orphans", pipeline, "out", "--older-than", "0s")
    assert Path(orphan["file"]).exists()
    assert "/data/" in orphan["file"]
    shown(capsys, "iceberg", "orphans", pipeline, "out", "--older-than", "0s", "--yes")
    assert not Path(orphan["file"]).exists()
    assert load_table(tmp_path, "shop.rows").scan().count() == 3
    assert shown(capsys, "iceberg", "orphans", pipeline, "out", "--older-than", "0s") == []


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize("place", ["{}/of others", "file://{}/of others", "{}/warehouse/shop/rows/../../../of others"])
def test_files_of_others_are_not_deleted_whatever_the_table_says(pipeline, sink, capsys, tmp_path, name, place):
    (tmp_path / "of others").mkdir()
    (tmp_path / "of others/thesis.txt").write_text("years of work")
    with load_table(tmp_path, "shop.rows").transaction() as change:
        change.set_properties({name: place.format(tmp_path)})
    assert main(["iceberg", "orphans", pipeline, "out", "--older-than", "0s", "--yes"]) != 0
    assert "others may have files there, and none are deleted" in capsys.readouterr().err
    assert (tmp_path / "of others/thesis.txt").read_text() == "years of work"


def test_files_elsewhere_are_the_tables_where_it_is_said(pipeline, sink, capsys, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/part.parquet").write_text("of nobody")
    with load_table(tmp_path, "shop.rows").transaction() as change:
        change.set_properties({"write.data.path": f"{tmp_path}/elsewhere"})
    place = ["--place", f"file://{tmp_path}/elsewhere"]
    found = shown(capsys, "iceberg", "orphans", pipeline, "out", "--older-than", "0s", "--yes", *place)
    assert [Path(row["file"]).name for row in found] == ["part.parquet"]
    assert not (tmp_path / "elsewhere/part.parquet").exists()


def test_files_of_expired_snapshots_are_of_nobody(pipeline, tmp_path, capsys):
    with Sink(SCHEMA, folder=tmp_path, mode="merge", keys=["counter"]) as sink:
        for _ in range(3):
            sink.write([{"counter": 1}])
        shown(capsys, "iceberg", "expire", pipeline, "out", "--older-than", "0s", "--yes")
        found = shown(capsys, "iceberg", "orphans", pipeline, "out", "--older-than", "0s", "--yes")
        assert len([row for row in found if "/data/" in row["file"]]) == 2
        assert sink.rows() == [{"counter": 1}]


def test_a_node_that_is_none_is_named(pipeline, capsys):
    assert main(["iceberg", "snapshots", pipeline, "numbers"]) != 0
    assert "it has: out" in capsys.readouterr().err
