"""Rows of kilobytes and of megabytes, through a JVM that has little memory."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import Arroyo

PIPELINE = """
name: wide
parallelism: 2
nodes:
  - {{id: rows, operator: filesystem.source, config: {{path: {rows}}}}}
  - {{id: keyed, operator: std.key_by, inputs: [rows], config: {{keys: [n]}}}}
  - id: out
    operator: std.project
    inputs: [keyed]
    config: {{expressions: {{n: n, size: octet_length(text), middle: "substr(text, 4000, 9)"}}}}
  - {{id: files, operator: filesystem.sink, inputs: [out], config: {{path: {out}, format: parquet}}}}
"""


def write_rows(folder: Path, rows: int, row_bytes: int) -> None:
    """Texts that all differ, so that no dictionary makes them small."""
    folder.mkdir()
    numbers = np.arange(rows)
    filler = "x" * (row_bytes - 4010)
    texts = pa.array([f"{'y' * 3990}{number:9}{number:9}{filler}" for number in numbers.tolist()])
    pq.write_table(pa.table({"n": numbers, "text": texts}), folder / "rows.parquet", compression="zstd")


# 512 MB are not much more than the least that Spark starts with. A batch of the source has as much, unless it is cut.
@pytest.mark.parametrize(("rows", "row_bytes"), [(65_536, 8 << 10), (60, 8 << 20), (2, 80 << 20)])
def test_wide_rows_pass_through_a_small_heap(arroyo: Arroyo, tmp_path: Path, rows: int, row_bytes: int) -> None:
    write_rows(tmp_path / "rows", rows, row_bytes)
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(rows=tmp_path / "rows", out=tmp_path / "out"))
    done = arroyo("run", file, "--master", "local[2]", "--conf", "spark.driver.memory=512m", "--max-restarts", "0")
    assert done.returncode == 0, done.stderr
    written = duckdb.sql(f"select count(*), count(distinct n), min(size), max(size) from '{tmp_path}/out/**/*.parquet'")
    assert written.fetchall() == [(rows, rows, row_bytes - 2, row_bytes - 2)]
