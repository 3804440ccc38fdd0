"""Batches of Parquet files are bounded by bytes as well as by rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_formats.parquet import reading

BATCH_BYTES = 100_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", BATCH_BYTES)


def batches(files: Any, path: Path, **config: Any) -> list[pa.RecordBatch]:
    harness = files.source(path, **config)
    try:
        found: list[pa.RecordBatch] = harness.run().batches
        return found
    finally:
        harness.close()


def numbers(found: list[pa.RecordBatch]) -> list[int]:
    return [number for batch in found for number in batch.column("n").to_pylist()]


@pytest.mark.parametrize("row_group_size", [7, 300, 1000])
def test_wide_rows_are_read_in_batches_of_few(files: Any, tmp_path: Path, row_group_size: int) -> None:
    texts = [f"{number:09}{'x' * 1000}" for number in range(1000)]
    table = pa.table({"n": range(1000), "a.text": texts, "wide": [{"b": text * 9} for text in texts]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=row_group_size)
    found = batches(files, tmp_path, columns=["n", "a.text"])
    assert numbers(found) == list(range(1000))
    assert max(batch.nbytes for batch in found) <= 1.1 * BATCH_BYTES
    # Columns that are not read do not count: a tenth of the rows would fit with them.
    assert len(found) <= 1000 / row_group_size + 13


def test_narrow_rows_are_read_as_many_as_configured(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(3000)}), tmp_path / "t.parquet")
    assert [batch.num_rows for batch in batches(files, tmp_path, batch_rows=1000)] == [1000, 1000, 1000]


def test_a_text_that_the_file_holds_once_counts_for_each_of_its_rows(files: Any, tmp_path: Path) -> None:
    table = pa.table({"n": range(4000), "text": [f"{number % 3}{'x' * 1000}" for number in range(4000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1500)
    found = batches(files, tmp_path, batch_rows=1000)
    assert numbers(found) == list(range(4000))
    first, *rest = found
    assert first.nbytes > 2 * BATCH_BYTES
    assert max(batch.nbytes for batch in rest) <= 1.1 * BATCH_BYTES
