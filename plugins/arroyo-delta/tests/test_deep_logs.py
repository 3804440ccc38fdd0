"""Logs with values so deep that the library's native code would end the process."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from arroyo_delta.location import make_location
from deltalake import write_deltalake

from arroyo_core.errors import DataError

DEEP = "[" * 100_000 + "]" * 100_000
FILE = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1]}))
    return tmp_path / "t"


def add_entry(table: Path, number: int, text: str) -> None:
    (table / "_delta_log" / f"{number:020}.json").write_text(text + "\n")


def with_file(**fields: object) -> str:
    return json.dumps({"add": {**FILE, **fields}})


@pytest.mark.parametrize(
    "entry",
    [
        with_file(tags=0).replace('"tags": 0', f'"tags": {DEEP}'),
        with_file(stats=DEEP),
        with_file(stats='{"numRecords": 1, "minValues": {"a": ' + DEEP + "}}"),
        with_file(stats=DEEP, path="]" * 200_000),
        with_file(stats=DEEP).replace("[", "\\u005B"),
        '{"commitInfo": ' + DEEP + "}",
    ],
    ids=["tags", "statistics", "bounds", "hidden by a name", "hidden by escapes", "info"],
)
def test_an_entry_that_is_too_deep_is_not_given_to_the_library(table: Path, entry: str) -> None:
    location = make_location(str(table), {})
    assert location.open() is not None
    add_entry(table, 1, entry)
    with pytest.raises(DataError, match=r"00001\.json .*too deep: at most 100 levels"):
        location.open()
    assert location.open(0) is not None, "it is not part of this version"


def test_names_with_many_brackets_are_names(table: Path) -> None:
    add_entry(table, 1, with_file(path="[" * 500, stats='{"numRecords": 1}'))
    opened = make_location(str(table), {}).open()
    assert opened is not None
    assert opened.version() == 1


def test_a_panic_of_the_library_is_an_error_of_ours(table: Path) -> None:
    add_entry(
        table,
        1,
        json.dumps(
            {
                "metaData": {
                    "id": "x",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": DEEP,
                    "partitionColumns": [],
                    "configuration": {},
                }
            }
        ),
    )
    with pytest.raises(Exception, match="cannot open the table"):
        make_location(str(table), {}).open()
