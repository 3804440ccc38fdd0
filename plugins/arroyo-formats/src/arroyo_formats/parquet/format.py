"""The format `parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from arroyo_formats.files import FileFormat, FileReader, FileWriter, OnBad
from arroyo_formats.format import Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import ParquetSettings
from arroyo_formats.messages import refuse_rows
from arroyo_formats.parquet.reading import ParquetFileReader, piece_bytes, read_message, read_schema
from arroyo_formats.parquet.writing import ParquetFileWriter
from arroyo_formats.whole_files import WholeFileReader, cut_parts


class ParquetFiles(FileFormat):
    """Parts are ranges of row groups, positions count rows."""

    endings = (".parquet", ".pq")
    extension = "parquet"
    # Level 1 of zstd writes as fast as snappy, and two thirds of its size.
    compressions = ("zstd", "snappy", "lz4", "gzip", "none")
    positions = "parquet"

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        return read_schema(fs, path)

    def cut(self, settings: Any, fs: Any, path: str, *, size: int, part_bytes: int) -> Sequence[tuple[int, int]]:
        return cut_parts(piece_bytes(fs, path), part_bytes=part_bytes)

    def reader(
        self, settings: Any, fs: Any, *, schema: pa.Schema, declared: pa.Schema | None, batch_rows: int, on_bad: OnBad
    ) -> FileReader:
        return ParquetFileReader(fs, schema=schema, batch_rows=batch_rows)

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        return ParquetFileWriter(stream, schema, compression)


class ParquetMessageReader(WholeFileReader):
    def table(self, message: bytes) -> pa.Table:
        return read_message(message, self.schema)


class ParquetFormat(Format):
    """Apache Parquet."""

    name = "parquet"
    settings_type = ParquetSettings
    files = ParquetFiles()

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return ParquetMessageReader(schema)

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        raise refuse_rows(self.name)
