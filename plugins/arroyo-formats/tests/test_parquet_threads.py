"""Whether columns of Parquet are decoded by Arrow's pool, or by whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_formats.files import TO_THE_END
from arroyo_formats.parquet.reading import ParquetFileReader


@pytest.mark.parametrize(("cores", "has_threads"), [(1, False), (2, True), (16, True)])
def test_a_task_with_one_core_hands_no_column_to_a_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, has_threads: bool
) -> None:
    asked: list[bool] = []
    iter_batches = pq.ParquetFile.iter_batches

    def noted(file: pq.ParquetFile, *, use_threads: bool = True, **options: Any) -> Any:
        asked.append(use_threads)
        return iter_batches(file, use_threads=use_threads, **options)

    monkeypatch.setattr(pa, "cpu_count", lambda: cores)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    table = pa.table({"n": range(100), "text": [str(number) for number in range(100)]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=30)
    reader = ParquetFileReader(fsspec.filesystem("file"), schema=table.schema, batch_rows=40)
    found = pa.Table.from_batches([batch for batch, _ in reader.read(str(path), (0, TO_THE_END), 0)])
    assert (found.equals(table), asked) == (True, [has_threads])
