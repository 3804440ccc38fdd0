"""Writes Parquet."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_formats.files import FileWriter
from arroyo_formats.parquet.encodings import encoding_options

#: A row group is the unit of reading: large enough to scan well, small enough to buffer.
ROW_GROUP_ROWS = 2**18
ROW_GROUP_BYTES = 32 * 2**20


class ParquetFileWriter(FileWriter):
    """Collects batches to row groups; the first of them decides how columns are encoded."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str) -> None:
        self._stream = stream
        self._schema = schema
        self._compression = compression
        self._writer: pq.ParquetWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._batches:
            rows = pa.Table.from_batches(self._batches, self._schema)
            self._opened(rows).write_table(rows, row_group_size=ROW_GROUP_ROWS)
        self._batches, self._rows, self._bytes = [], 0, 0

    def buffered_bytes(self) -> int:
        return self._bytes

    def close(self) -> None:
        self.flush()
        self._opened(self._schema.empty_table()).close()

    def _opened(self, rows: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression=self._compression,
                compression_level=1 if self._compression == "zstd" else None,
                write_statistics=True,
                **encoding_options(rows),
            )
        return self._writer
