"""The format `arrow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from arroyo_core.api.ipc_sizes import unpacked_sizes
from arroyo_formats.arrow.files import FILE_MAGIC, ArrowFileReader, piece_bytes, read_schema
from arroyo_formats.files import FileFormat, FileReader, FileWriter, OnBad
from arroyo_formats.format import Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import ArrowSettings
from arroyo_formats.messages import refuse_rows
from arroyo_formats.whole_files import WholeFileReader, check_message, cut_parts


class ArrowFiles(FileFormat):
    """Parts are ranges of record batches, positions count rows."""

    endings = (".arrow", ".ipc", ".feather")
    extension = "arrow"
    compressions = ("none", "zstd", "lz4")
    positions = "arrow"

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        return read_schema(fs, path)

    def cut(self, settings: Any, fs: Any, path: str, *, size: int, part_bytes: int) -> Sequence[tuple[int, int]]:
        return cut_parts(piece_bytes(fs, path), part_bytes=part_bytes)

    def reader(
        self, settings: Any, fs: Any, *, schema: pa.Schema, declared: pa.Schema | None, batch_rows: int, on_bad: OnBad
    ) -> FileReader:
        return ArrowFileReader(fs, schema=schema, batch_rows=batch_rows)

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        return ArrowFileWriter(stream, schema, compression)


class ArrowFileWriter(FileWriter):
    """Writes the IPC file format, which readers can memory-map."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str) -> None:
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._writer = pa.ipc.new_file(stream, schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class ArrowMessageReader(WholeFileReader):
    def table(self, message: bytes) -> pa.Table:
        is_file = message.startswith(FILE_MAGIC)
        check_message(sum(unpacked_sizes(memoryview(message), is_file=is_file)))
        with pa.ipc.open_file(message) if is_file else pa.ipc.open_stream(message) as reader:
            return reader.read_all()


class ArrowFormat(Format):
    """Arrow IPC."""

    name = "arrow"
    settings_type = ArrowSettings
    files = ArrowFiles()

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return ArrowMessageReader(schema)

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        raise refuse_rows(self.name)
