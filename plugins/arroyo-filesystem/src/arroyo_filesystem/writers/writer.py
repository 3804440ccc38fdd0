"""What every writer does, and the one of each format."""

from __future__ import annotations

import gzip
import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from arroyo_core.errors import ConfigError
from arroyo_filesystem.formats.debezium import envelopes
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.writers.json_encoding import encode_lines
from arroyo_filesystem.writers.parquet_encodings import encoding_options
from arroyo_filesystem.writers.plain_text import to_plain_text

#: A row group is the unit of reading: large enough to scan well, small enough to buffer.
ROW_GROUP_ROWS = 2**18
ROW_GROUP_BYTES = 32 * 2**20
#: Rows that become text together.
CSV_ROWS = 2**14
GZIP_LEVEL = 4


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What files the sink writes. `compression` is None for none."""

    kind: Format
    compression: str | None
    delimiter: str = ","

    @property
    def extension(self) -> str:
        is_wrapped = self.kind.is_text and self.compression == "gzip"
        return f"{self.kind.extension}.gz" if is_wrapped else self.kind.extension


class FileWriter(ABC):
    """Writes one file. The stream stays open after `close`: it belongs to the caller."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what is buffered and the end of the file."""

    def flush(self) -> None:
        """Write what is buffered, to free its memory."""
        return

    def buffered_bytes(self) -> int:
        """Memory held by rows that are not written yet."""
        return 0


class ParquetFileWriter(FileWriter):
    """Collects batches to row groups; the first of them decides how columns are encoded."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
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
                compression=self._compression or "none",
                compression_level=1 if self._compression == "zstd" else None,
                write_statistics=True,
                **encoding_options(rows),
            )
        return self._writer


class ArrowFileWriter(FileWriter):
    """Writes the IPC file format, which readers can memory-map."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self._writer = pa.ipc.new_file(stream, schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class JsonFileWriter(FileWriter):
    """Writes one object a line."""

    def __init__(self, stream: BinaryIO, compression: str | None) -> None:
        self._stream, self._finish = _text_stream(stream, compression)

    def write(self, batch: pa.RecordBatch) -> None:
        for part in encode_lines(batch):
            self._stream.write(part)

    def close(self) -> None:
        self._finish()


class DebeziumFileWriter(JsonFileWriter):
    """Writes one change a line."""

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(envelopes(batch))


class CsvFileWriter(FileWriter):
    """Writes a header and rows; text is quoted, so that an empty one differs from null."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str | None, delimiter: str) -> None:
        self._stream, self._finish = _text_stream(stream, compression)
        self._delimiter = delimiter
        self._schema = pa.schema([to_plain_text(pa.array([], field.type), field.name)[1] for field in schema])
        self._append(self._schema.empty_table(), has_header=True)

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [to_plain_text(batch.column(field.name), field.name)[0] for field in batch.schema]
        self._append(pa.RecordBatch.from_arrays(columns, schema=self._schema), has_header=False)

    def close(self) -> None:
        self._finish()

    def _append(self, rows: pa.RecordBatch | pa.Table, *, has_header: bool) -> None:
        """All rows become text before Python is asked to write it: it may have to wait for another thread each time."""
        text = pa.BufferOutputStream()
        options = pcsv.WriteOptions(
            include_header=has_header, delimiter=self._delimiter, quoting_style="needed", batch_size=CSV_ROWS
        )
        pcsv.write_csv(rows, text, write_options=options)
        self._stream.write(text.getvalue())


def open_writer(file_format: FileFormat, stream: BinaryIO, schema: pa.Schema) -> FileWriter:
    """The writer of a format."""
    if file_format.kind is Format.PARQUET:
        return ParquetFileWriter(stream, schema, file_format.compression)
    if file_format.kind is Format.ARROW:
        return ArrowFileWriter(stream, schema, file_format.compression)
    if file_format.kind is Format.JSON:
        return JsonFileWriter(stream, file_format.compression)
    if file_format.kind is Format.DEBEZIUM_JSON:
        return DebeziumFileWriter(stream, file_format.compression)
    return CsvFileWriter(stream, schema, file_format.compression, file_format.delimiter)


def check_writable(file_format: FileFormat, schema: pa.Schema) -> None:
    """Raises `ConfigError` naming a column that the format cannot hold, found by writing none of its rows."""
    for field in schema:
        only = pa.schema([field])
        try:
            writer = open_writer(file_format, cast(BinaryIO, io.BytesIO()), only)
            writer.write(pa.RecordBatch.from_arrays([pa.array([], field.type)], schema=only))
            writer.close()
        except (pa.ArrowException, TypeError) as error:
            raise ConfigError(
                f"column {field.name!r} is {field.type}, which {file_format.kind} files cannot hold ({error}); "
                "leave it out, cast it, or choose another format",
                field="format",
                value=str(file_format.kind),
            ) from error


def _text_stream(stream: BinaryIO, compression: str | None) -> tuple[BinaryIO, Callable[[], None]]:
    """Where text goes, and what to call after its end."""
    if compression != "gzip":
        return stream, lambda: None
    # No name and no time: the same rows give the same bytes.
    wrapped = gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=GZIP_LEVEL, mtime=0)
    return cast(BinaryIO, wrapped), wrapped.close
