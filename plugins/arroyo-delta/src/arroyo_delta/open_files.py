"""The files of an epoch while it runs: for each partition one that is open."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arroyo_core.errors import ArroyoError, DataError
from arroyo_delta.location import Files
from arroyo_delta.partitions import Values, partition
from arroyo_delta.staging import StagedFile
from arroyo_delta.statistics import file_statistics

#: Rows wait until so many are there to be encoded together.
ROW_GROUP_BYTES = 32 * 2**20
ROW_GROUP_ROWS = 2**20
#: Of all open files together.
HELD_BYTES = 128 * 2**20
MAX_OPEN = 128


@dataclass(slots=True)
class _OpenFile:
    name: str
    stream: BinaryIO
    writer: pq.ParquetWriter
    metadata: list[pq.FileMetaData]
    held: list[pa.RecordBatch] = field(default_factory=list)
    held_rows: int = 0
    held_bytes: int = 0
    rows: int = 0
    with_nan: set[str] = field(default_factory=set)


class OpenFiles:
    """Writes rows into Parquet files below `folder`, each of about `max_file_bytes` at most."""

    def __init__(
        self,
        files: Files,
        folder: str,
        schema: pa.Schema,
        partition_by: tuple[str, ...],
        *,
        task_index: int,
        max_file_bytes: int,
        max_partitions: int,
    ) -> None:
        self._files = files
        self._folder = folder
        self._partition_by = partition_by
        self._schema = pa.schema([each for each in schema if each.name not in partition_by])
        self._required = [each.name for each in schema if not each.nullable]
        self._floats = [each.name for each in self._schema if pa.types.is_floating(each.type)]
        self._task_index = task_index
        self._max_file_bytes = max_file_bytes
        self._max_partitions = max_partitions
        #: The least recently used one comes first.
        self._open: dict[Values, _OpenFile] = {}
        self._partitions: set[Values] = set()
        self._closed: list[StagedFile] = []
        self._begun = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows in the columns of the table; raises `DataError` for what it cannot have."""
        for name in self._required:
            if batch.column(name).null_count:
                raise DataError(f"column {name!r} has a null, and the table has none there")
        for values, rows in partition(batch, self._partition_by):
            self._hold(self._file(values), rows)
        if sum(file.held_bytes for file in self._open.values()) > HELD_BYTES:
            for file in self._open.values():
                self._flush(file)
        for values in [values for values, file in self._open.items() if file.stream.tell() >= self._max_file_bytes]:
            self._end(values)

    def close(self) -> list[StagedFile]:
        """End all files so that they last."""
        for values in list(self._open):
            self._end(values)
        return self._closed

    def abort(self) -> None:
        """Give all up. What cannot be deleted is swept by a commit, or taken by `vacuum`."""
        names = [file.path for file in self._closed]
        for file in self._open.values():
            names.append(file.name)
            try:
                file.writer.close()
                file.stream.close()
            except (ArroyoError, OSError, pa.ArrowException):
                continue
        for name in names:
            try:
                self._files.remove(name)
            except (ArroyoError, OSError):
                continue

    def _file(self, values: Values) -> _OpenFile:
        found = self._open.pop(values, None) or self._begin(values)
        self._open[values] = found
        return found

    def _begin(self, values: Values) -> _OpenFile:
        self._partitions.add(values)
        if len(self._partitions) > self._max_partitions:
            raise DataError(
                f"the rows of one epoch are in more than {self._max_partitions} partitions, each of which is at least "
                "one file: partition by a column with fewer values, or raise max_partitions"
            )
        if len(self._open) >= MAX_OPEN:
            self._end(next(iter(self._open)))
        name = f"{self._folder}/part-{self._task_index:03}-{self._begun}-{uuid.uuid4().hex}.parquet"
        self._begun += 1
        stream = self._files.create(name)
        metadata: list[pq.FileMetaData] = []
        writer = pq.ParquetWriter(
            stream, self._schema, compression="zstd", store_schema=False, metadata_collector=metadata
        )
        return _OpenFile(name, stream, writer, metadata)

    def _hold(self, file: _OpenFile, rows: pa.RecordBatch) -> None:
        file.held.append(rows)
        file.held_rows += rows.num_rows
        file.held_bytes += rows.nbytes
        if file.held_bytes >= ROW_GROUP_BYTES or file.held_rows >= ROW_GROUP_ROWS:
            self._flush(file)

    def _flush(self, file: _OpenFile) -> None:
        if not file.held:
            return
        table = pa.Table.from_batches(file.held, schema=self._schema)
        file.with_nan.update(name for name in self._floats if pc.any(pc.is_nan(table.column(name))).as_py())
        file.writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        file.rows += table.num_rows
        file.held, file.held_rows, file.held_bytes = [], 0, 0

    def _end(self, values: Values) -> None:
        file = self._open[values]
        self._flush(file)
        file.writer.close()
        size = file.stream.tell()
        self._files.close(file.name, file.stream)
        del self._open[values]
        statistics = file_statistics(self._schema, file.metadata[0], file.with_nan)
        self._closed.append(StagedFile(file.name, file.rows, size, values, statistics))


def partition_values(file: StagedFile, partition_by: tuple[str, ...]) -> Mapping[str, str | None]:
    """The values of a file's partition, by column."""
    return dict(zip(partition_by, file.partition, strict=True))
