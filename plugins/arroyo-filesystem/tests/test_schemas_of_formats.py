"""Formats that have a schema of their own, through source and sink: Avro files, and JSON lines with a JSON Schema."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from arroyo_filesystem.plugin import SourceConstructor
from arroyo_formats.avro import files as avro_files

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError

Names = Callable[[str], list[str]]
ROWS = 400
AT = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "name": pa.array([None if n % 7 == 0 else f"row {n}" for n in range(ROWS)]),
        "at": pa.array([AT + datetime.timedelta(seconds=n) for n in range(ROWS)], pa.timestamp("us", "UTC")),
        "price": pa.array([decimal.Decimal(n).scaleb(-2) for n in range(ROWS)], pa.decimal128(9, 2)),
        "tags": pa.array([[f"t{n}", None][: n % 3] for n in range(ROWS)], pa.list_(pa.string())),
    }
)
#: Neither field has a default: each is wanted of every row.
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "double"}, {"name": "name", "type": ["null", "string"]}],
}
JSON = {"properties": {"id": {"type": "number"}, "name": {"type": "string"}}, "required": ["id"]}


def write_epochs(files: Any, folder: str, epochs: list[pa.Table], **config: Any) -> None:
    with files.sink(folder, epochs[0].schema, **config) as sink:
        for table in epochs:
            for batch in table.to_batches(max_chunksize=10):
                sink.process(batch)
            sink.commit(sink.checkpoint())


@pytest.mark.parametrize("compression", ["none", "deflate", "snappy", "zstd"])
def test_avro_files_keep_every_row_over_epochs_of_sink_and_source(
    files: Any, folder: str, names: Names, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    monkeypatch.setattr(avro_files, "BLOCK_BYTES", 1000)
    write_epochs(files, folder, [TABLE[:150], TABLE[150:]], format="avro", compression=compression)
    found = names(folder)
    assert len(found) == 2
    assert all(name.endswith(".avro") for name in found)

    # The names tell the format, the files the columns.
    source = files.source(folder, split_size=1500, batch_rows=16)
    epochs = [source.run(rows=30, parallelism=2), source.run(rows=50, parallelism=3, is_lost=True)]
    read = [epochs[0].table, source.run_all(rows=50, parallelism=3)]
    again = source.run(parallelism=2)
    source.close()
    assert 0 < epochs[0].table.num_rows < ROWS
    assert 0 < epochs[1].table.num_rows < ROWS
    assert read[0].schema == TABLE.schema
    assert pa.concat_tables(read).sort_by("id").combine_chunks() == TABLE
    assert again.is_final
    assert not again.batches


def test_avro_files_of_the_sink_are_read_by_others_with_their_codec(files: Any, tmp_path: Path, names: Names) -> None:
    write_epochs(files, str(tmp_path), [TABLE], format="avro", compression="deflate")
    (name,) = names(str(tmp_path))
    with (tmp_path / name).open("rb") as stream:
        reader = fastavro.reader(stream)
        assert reader.codec == "deflate"
        assert list(reader) == TABLE.to_pylist()


def test_avro_files_are_written_and_read_by_a_given_schema(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row.avsc").write_text(json.dumps(AVRO))
    monkeypatch.chdir(tmp_path)
    chosen = {"name": "avro", "schema_file": "row.avsc"}
    rows = TABLE.select(["id", "name"])
    files.write("data", rows, format=chosen)
    read = files.read("data")
    assert read.schema == pa.schema([pa.field("id", pa.float64()), ("name", pa.string())])
    assert read["id"].to_pylist() == rows["id"].to_pylist()
    only = {"type": "record", "name": "row", "fields": [{"name": "name", "type": ["null", "string"]}]}
    assert files.read("data", format={"name": "avro", "schema": json.dumps(only)}) == rows.select(["name"])


@pytest.mark.parametrize(
    ("format", "columns", "message"),
    [
        ({"name": "avro", "schema": json.dumps(AVRO)}, ["id"], "there is no column 'name'"),
        ({"name": "avro", "schema": json.dumps(AVRO)}, ["id", "name", "at"], "has no field 'at'"),
        ({"name": "json", "schema": json.dumps(JSON)}, ["name"], "requires 'id'"),
        ({"name": "json", "schema": json.dumps(JSON)}, ["id", "at"], "has no property 'at'"),
    ],
)
def test_columns_that_do_not_fit_the_schema_are_found_when_the_pipeline_is_planned(
    files: Any, tmp_path: Path, format: dict[str, str], columns: list[str], message: str
) -> None:
    sink = files.make_sink(tmp_path, format=format).operator
    with pytest.raises(ConfigError, match=message) as raised:
        sink.output_schema([ArroyoSchema(TABLE.select(columns).schema)])
    assert raised.value.field == "format.schema"


def test_lines_of_json_have_the_columns_of_the_schema_file(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row.json").write_text(json.dumps(JSON))
    (tmp_path / "data" / "day=5").mkdir(parents=True)
    (tmp_path / "data" / "day=5" / "a.jsonl").write_text('{"id": 1}\n{"id": 2, "name": "x", "more": true}\n')
    monkeypatch.chdir(tmp_path)
    chosen = {"name": "json", "schema_file": "row.json"}
    wanted = pa.table({"id": [1.0, 2.0], "name": [None, "x"], "day": ["5", "5"]})
    assert files.read("data", format=chosen) == wanted
    assert files.read("data", format=chosen, schema={"id": "int64"}) == pa.table({"id": [1, 2]})
    resolved = SourceConstructor().resolve(files.source_config("data", format=chosen))
    settings = resolved.format.struct_value.fields
    assert json.loads(settings["schema"].string_value) == JSON
    assert "schema_file" not in settings, "executors have no such file"
