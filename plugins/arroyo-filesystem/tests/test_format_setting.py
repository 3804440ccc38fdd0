"""The setting `format` of source and sink, and the settings of formats that may also stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_filesystem.plugin import SourceConstructor

from arroyo_core.api import Registry
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError

ROWS = pa.table({"a": [1, 2], "b": ["x;y", None]})
CHANGES = '{"op": "c", "after": {"a": 1, "b": "x"}}\n{"op": "c", "after": {"a": 1, "b": "y"}}\n'


@pytest.mark.parametrize(
    ("sink", "source"),
    [
        ({"format": {"name": "csv", "delimiter": ";"}}, {"format": {"name": "csv", "delimiter": ";"}}),
        ({"format": "CSV", "delimiter": ";"}, {"csv": {"delimiter": ";"}}),
        ({"format": {"name": "csv"}, "delimiter": ";"}, {"format": {"name": "csv"}, "csv": {"delimiter": ";"}}),
        (
            {"format": {"name": "csv", "no_header": True}},
            {"format": {"name": "csv", "no_header": True}, "schema": {"a": "int64", "b": "string"}},
        ),
    ],
)
def test_settings_stand_in_the_format_or_beside_it(
    files: Any, tmp_path: Path, sink: dict[str, Any], source: dict[str, Any]
) -> None:
    files.write(tmp_path, ROWS, **sink)
    assert files.read(tmp_path, **source).equals(ROWS)


@pytest.mark.parametrize(
    "config",
    [{"format": {"name": "debezium_json", "primary_key": ["a"]}}, {"format": "debezium_json", "primary_key": ["a"]}],
)
def test_ids_are_made_from_the_primary_key_wherever_it_stands(
    files: Any, tmp_path: Path, config: dict[str, Any]
) -> None:
    (tmp_path / "a.jsonl").write_text(CHANGES)
    first, second = files.read(tmp_path, **config).column(UPDATING_META).to_pylist()
    assert first["id"] == second["id"]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"format": {"name": "csv", "delimiter": ";"}, "csv": {"delimiter": ","}}, "csv.delimiter", "given twice"),
        ({"format": {"name": "csv", "delimiter": "||"}}, "format.delimiter", "one ASCII character"),
        ({"format": {"name": "csv", "quote": "'"}}, "format.quote", "there is no setting 'quote'"),
        ({"format": "json", "csv": {"delimiter": ","}}, "csv.delimiter", "csv settings for json files"),
        ({"format": "csv", "primary_key": ["a"]}, "primary_key", "only added"),
        ({"format": "raw_bytes"}, "format", "there are no raw_bytes files"),
        ({"format": "debezium_json", "primary_key": ["no"]}, "primary_key[0]", "no column 'no'"),
        (
            {"format": {"name": "debezium_json", "primary_key": ["a", "no"]}},
            "format.primary_key[1]",
            "no column 'no'",
        ),
    ],
)
def test_a_mistake_is_shown_where_it_is_written(
    files: Any, tmp_path: Path, config: dict[str, Any], field: str, message: str
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ConfigError) as raised:
        files.make_source(tmp_path, schema={"a": "int64", "b": "string"}, **config).inner.output_schema([])
    assert raised.value.field == field
    assert message in str(raised.value)


def test_lines_of_text_are_values_of_one_column(files: Any, tmp_path: Path) -> None:
    rows = pa.table({"value": ["one", "", " two ", "drei\u2028"]})
    files.write(tmp_path / "day=1", rows, format="raw_string", compression="gzip")
    found = files.read(tmp_path, format="raw_string")
    assert found.column("value").to_pylist() == rows.column("value").to_pylist()
    assert found.column("day").to_pylist() == ["1"] * 4
    assert files.read(tmp_path, format="raw_string", schema={"text": "string"}).schema.names == ["text"]


def test_a_line_that_is_not_utf8_is_a_bad_line(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"good\r\n\xff\nalso good")
    found = files.read(tmp_path, format="raw_string", bad_data="drop")
    assert found.column("value").to_pylist() == ["good", "also good"]


def test_names_of_notes_and_logs_tell_no_format(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "notes.txt").write_text("note\n")
    assert files.read(tmp_path).column("a").to_pylist() == [1]


def test_a_resolved_config_is_resolved_again_to_the_same(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    resolved = SourceConstructor().resolve(files.source_config(tmp_path, csv={"delimiter": ";"}))
    assert resolved.format.string_value == "csv"
    assert SourceConstructor().resolve(resolved) == resolved
    source = SourceConstructor().with_config(resolved, Registry()).inner
    assert source.output_schema([]).schema.names == ["a", "b"]
