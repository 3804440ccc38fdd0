"""Writes rows into Parquet files of a table, by partition."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.errors import DataError
from arroyo_iceberg.partitions import Partitioner
from arroyo_iceberg.schemas import cast_batch
from arroyo_iceberg.staging import StagedFile, describe_file

if TYPE_CHECKING:
    from pyiceberg.io import OutputFile
    from pyiceberg.table import Table
    from pyiceberg.typedef import Record

#: Rows wait in memory until a file has a row group of this size, or all files together have more.
ROW_GROUP_BYTES = 32 << 20
BUFFERED_BYTES = 128 << 20
#: The most files open at a time; of more, the one that was written least recently is closed.
MAX_OPEN = 256


class OpenFile:
    """A Parquet file being written, in one partition."""

    def __init__(self, table: Table, schema: pa.Schema, path: str, partition: Record) -> None:
        from pyiceberg.io.pyarrow import _get_parquet_writer_kwargs

        self.path = path
        self._table = table
        self._partition = partition
        self._rows: list[pa.RecordBatch] = []
        self.buffered_bytes = 0
        self._output: OutputFile = table.io.new_output(path)
        self._stream = self._output.create(overwrite=False)
        settings = _get_parquet_writer_kwargs(table.metadata.properties)
        self._writer = pq.ParquetWriter(
            cast(IO[Any], self._stream), schema=schema, store_decimal_as_integer=True, **settings
        )
        self._schema = schema

    @property
    def size(self) -> int:
        """Bytes written so far, and those that wait as they are in memory."""
        return int(cast(IO[Any], self._stream).tell()) + self.buffered_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows.append(batch)
        self.buffered_bytes += batch.nbytes

    def flush(self) -> None:
        """Write what waits as a row group."""
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._rows, schema=self._schema))
            self._rows, self.buffered_bytes = [], 0

    def close(self) -> StagedFile:
        """Make the content durable; the checkpoint that names it comes after."""
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.schema import sanitize_column_names

        self.flush()
        self._writer.close()
        self._stream.close()
        _sync(self.path)
        metadata = self._table.metadata
        columns = sanitize_column_names(metadata.schema())
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=self._writer.writer.metadata,
            stats_columns=compute_statistics_plan(columns, metadata.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(columns),
        )
        made = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self.path,
            file_format=FileFormat.PARQUET,
            partition=self._partition,
            file_size_in_bytes=len(self._output),
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        made.spec_id = metadata.default_spec_id
        return describe_file(made, metadata)

    def abort(self) -> None:
        """Give the file up; what cannot be deleted is an orphan."""
        try:
            self._writer.close()
            self._stream.close()
            self._table.io.delete(self.path)
        except OSError:
            return


class OpenFiles:
    """The files of one subtask in one epoch, or of one commit, by partition."""

    def __init__(
        self, table: Table, name: Callable[[], str], *, max_file_bytes: int, max_partitions: int | None = None
    ) -> None:
        """`name` gives a new name in the data folder."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.schema import sanitize_column_names

        self._table = table
        self._name = name
        self._max_file_bytes = max_file_bytes
        self._max_partitions = max_partitions
        schema = table.metadata.schema()
        #: The columns under the names of the table, and under those of Parquet files.
        self._columns = schema_to_pyarrow(schema, include_field_ids=False)
        self._written = schema_to_pyarrow(sanitize_column_names(schema), include_field_ids=True)
        self._partitioner = Partitioner(table.metadata.spec(), schema)
        self._open: OrderedDict[Record, OpenFile] = OrderedDict()
        self._partitions: set[Record] = set()
        self._closed: list[StagedFile] = []
        self._paths: list[str] = []

    @property
    def paths(self) -> list[str]:
        """All files that were begun."""
        return list(self._paths)

    def write(self, batch: pa.RecordBatch) -> None:
        """Rows with the columns of the table, by name."""
        rows = cast_batch(batch, self._columns, doing=f"cannot write to {'.'.join(self._table.name())}")
        for partition, part in self._partitioner.split(rows):
            file = self._file(partition)
            file.write(pa.RecordBatch.from_arrays(part.columns, schema=self._written))
            if file.buffered_bytes >= ROW_GROUP_BYTES:
                file.flush()
            if file.size >= self._max_file_bytes:
                self._close(partition)
        while sum(each.buffered_bytes for each in self._open.values()) > BUFFERED_BYTES:
            max(self._open.values(), key=lambda each: each.buffered_bytes).flush()

    def close(self) -> list[StagedFile]:
        """End all files."""
        for partition in list(self._open):
            self._close(partition)
        return self._closed

    def abort(self) -> None:
        for file in self._open.values():
            file.abort()
        self._open.clear()

    def _file(self, partition: Record) -> OpenFile:
        if partition in self._open:
            self._open.move_to_end(partition)
            return self._open[partition]
        self._partitions.add(partition)
        if self._max_partitions is not None and len(self._partitions) > self._max_partitions:
            raise DataError(
                f"an epoch has rows in more than {self._max_partitions} partitions of table "
                f"{'.'.join(self._table.name())}: partition by less, or raise max_partitions"
            )
        if len(self._open) >= MAX_OPEN:
            self._close(next(iter(self._open)))
        path = self._table.location_provider().new_data_location(self._name())
        self._paths.append(path)
        self._open[partition] = OpenFile(self._table, self._written, path, partition)
        return self._open[partition]

    def _close(self, partition: Record) -> None:
        self._closed.append(self._open.pop(partition).close())


def _sync(path: str) -> None:
    """A local file, and its entry in its folder, outlive the machine's power; object stores see to that themselves."""
    if "://" in path and not path.startswith("file://"):
        return
    local = Path(path.removeprefix("file://"))
    for each in (local, local.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
