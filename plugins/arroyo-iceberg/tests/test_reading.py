"""Rows of a file from any of its rows on, without those that deletes have taken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_iceberg.reading import RowReader, Unit
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table

from .support.tables import make_table

COUNT = 50


@pytest.fixture
def table(tmp_path: Path) -> Table:
    rows = pa.table({"id": pa.array(range(COUNT), pa.int64())})
    return make_table(tmp_path, "shop.rows", rows, properties={"write.parquet.row-group-limit": "7"})


def unit_of(table: Table, folder: Path, deleted: list[int]) -> Unit:
    (task,) = table.scan().plan_files()
    if not deleted:
        return Unit(task.file)
    path = folder / "deletes.parquet"
    pq.write_table(pa.table({"file_path": [task.file.file_path] * len(deleted), "pos": deleted}), path)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=str(path), file_format=FileFormat.PARQUET
    )
    return Unit(task.file, (deletes,))


@pytest.mark.parametrize("deleted", [[], [0, 3, 7, 8, 20, 49], list(range(14))], ids=["none", "some", "row groups"])
def test_reading_on_from_any_row_gives_what_is_left(table, tmp_path, deleted):
    unit = unit_of(table, tmp_path, deleted)
    reader = RowReader(table.io, table.metadata, table.schema())
    assert pq.read_metadata(unit.path).num_row_groups > 1
    for start in range(COUNT + 1):
        read = list(reader.read(unit, start=start, batch_rows=4))
        found = [number for batch, _ in read for number in batch.column("id").to_pylist()]
        assert found == [number for number in range(start, COUNT) if number not in deleted]
        assert [after for _, after in read] == sorted(after for _, after in read)
        assert not read or read[-1][1] == COUNT


def test_files_that_are_not_parquet_are_named(table):
    unit = Unit(DataFile.from_args(content=DataFileContent.DATA, file_path="a.orc", file_format=FileFormat.ORC))
    with pytest.raises(Exception, match=r"a\.orc is a file of .*ORC.*only Parquet is read"):
        list(RowReader(table.io, table.metadata, table.schema()).read(unit))
