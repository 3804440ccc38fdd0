"""Tables of lookups that somebody else has written: each attack is tried, and fails with a message."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_std.joins.lookup_table import TableFormat, TableSource

from arroyo_core.errors import DataError, ExternalError

DEEP = 100_000


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_json_table_that_is_nested_too_deep_does_not_end_the_process(tmp_path: Path, opening: str) -> None:
    (tmp_path / "deep.jsonl").write_text(f'{{"key": 1}}\n{{"key": {opening * DEEP}\n')
    code = """
import sys
from arroyo_core.errors import ExternalError
from arroyo_std.joins.lookup_table import TableFormat, TableSource
try:
    TableSource(path=sys.argv[1], format=TableFormat.JSON).schema()
except ExternalError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "deep.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert "at most 100 levels" in done.stdout


def test_a_packed_json_table_of_one_line_is_not_unpacked(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "long.jsonl.gz", "wb") as file:
        for _ in range(64):
            file.write(b"x" * 2**20)
    with pytest.raises(ExternalError, match="a line is longer than 4194304 bytes"):
        TableSource(path=str(tmp_path / "long.jsonl.gz"), format=TableFormat.JSON).schema()


def test_json_tables_in_folders_and_with_long_lines_of_brackets_are_read(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.jsonl").write_text('{"key": 1, "v": "' + "[" * 5_000 + '"}\n{"key": 2, "v": "x"}')
    (tmp_path / "t" / "b.jsonl").write_text('{"key": 3, "v": "y"}\n')
    table = TableSource(path=str(tmp_path / "t"), format=TableFormat.JSON)
    assert sorted(table.read(table.schema(), 2**20).column("key").to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("stores_schema", [False, True])
def test_a_text_that_a_table_has_once_for_all_rows_counts_for_each(tmp_path: Path, stores_schema: bool) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, np.int32)), pa.array(["x" * 2**20]))
    path = tmp_path / "bomb.parquet"
    table = pa.table({"key": np.arange(1_000_000), "v": values})
    pq.write_table(table, path, compression="zstd", store_schema=stores_schema, dictionary_pagesize_limit=2**30)
    source = TableSource(path=str(path), format=TableFormat.PARQUET)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(DataError, match=r"larger than cache.max_bytes, 64MiB"):
        source.read(source.schema(), 64 * 2**20)
    assert pa.default_memory_pool().max_memory() - before < 2**29


def test_tables_of_texts_in_all_types_are_read_as_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "key": pa.array(["a", None, "b", "a"]),
            "large": pa.array(["a", None, "b", "a"], pa.large_string()),
            "bytes": pa.array([b"a", b"", None, b"c"]),
            "chosen": pa.array(["x", "y", None, "x"]).dictionary_encode(),
            "number": pa.array([1, 1, 2, None]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    source = TableSource(path=str(tmp_path / "t.parquet"), format=TableFormat.PARQUET)
    schema = source.schema()
    found = source.read(schema, 2**20)
    assert found.schema.equals(schema)
    assert found.to_pydict() == table.to_pydict()
