"""Avro files, read by blocks and written in blocks."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.avro.arrow_types import arrow_schema, avro_schema
from arroyo_formats.avro.container import (
    CODECS,
    SYNC_BYTES,
    ContainerError,
    Header,
    block_bytes,
    blocks,
    header_bytes,
    read_block,
    read_header,
)
from arroyo_formats.avro.encoding import Encoding, fit_columns
from arroyo_formats.avro.reading import Decoder, decoder
from arroyo_formats.avro.resolution import resolve
from arroyo_formats.avro.schema import Array, Field, Record, SchemaError, least_bytes, parse
from arroyo_formats.columns import Step, cast_field
from arroyo_formats.files import (
    TO_THE_END,
    DamagedFileError,
    FileFormat,
    FileReader,
    FileWriter,
    OnBad,
    open_for_reading,
)
from arroyo_formats.registry.framing import zigzag

#: A block is written when so much is held: readers skip and split by blocks.
BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class _Reading:
    """How blocks of one file are read."""

    header: Header
    decoder: Decoder
    step: Step

    @classmethod
    def of(cls, header: Header, reader: Record | None) -> _Reading:
        try:
            writer = parse(header.schema)
        except SchemaError as error:
            raise ContainerError(f"its schema cannot be read: {error}") from error
        if not least_bytes(writer):
            raise SchemaError("its values have no bytes")
        # Values one after the other are an array, but for the count and the end.
        together = Record("block", (Field("values", Array(writer)),))
        return cls(header, decoder(together), resolve(writer, reader or writer))

    def rows(self, count: int, data: bytes) -> tuple[pa.StructArray, dict[int, str]]:
        found, bad = self.decoder.decode([zigzag(count) + data + zigzag(0)] if count else [zigzag(0)])
        if bad:
            raise ContainerError(bad[0].error)
        values = found.field(0).values
        if len(values) != count:
            raise ContainerError(f"a block of {count} values has {len(values)}")
        resolved = self.step(values)
        return resolved.values, dict(resolved.bad)


class AvroFiles(FileFormat):
    """Parts are ranges of blocks, by the bytes where they begin; positions count rows."""

    endings: ClassVar[tuple[str, ...]] = (".avro",)
    extension: ClassVar[str] = "avro"
    compressions: ClassVar[tuple[str, ...]] = tuple(CODECS)
    positions: ClassVar[str] = "avro"

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        try:
            with open_for_reading(fs, path) as file:
                return arrow_schema(_reader_schema(settings) or parse(read_header(file).schema))
        except ContainerError as error:
            raise DamagedFileError(path, str(error)) from error
        except SchemaError as error:
            raise ConfigError(f"{path}: {error}", field="format") from error

    def cut(self, settings: Any, fs: Any, path: str, *, size: int, part_bytes: int) -> Sequence[tuple[int, int]]:
        try:
            with open_for_reading(fs, path) as file:
                header = read_header(file)
                starts = [block.start for block in blocks(file, header, header.size, None)]
        except ContainerError as error:
            raise DamagedFileError(path, str(error)) from error
        cuts: list[int] = []
        for start in starts:
            if not cuts or start - cuts[-1] >= part_bytes:
                cuts.append(start)
        return list(zip(cuts, [*cuts[1:], TO_THE_END], strict=True)) if cuts else [(0, TO_THE_END)]

    def reader(
        self, settings: Any, fs: Any, *, schema: pa.Schema, declared: pa.Schema | None, batch_rows: int, on_bad: OnBad
    ) -> FileReader:
        return AvroFileReader(fs, _reader_schema(settings), schema, batch_rows)

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        if settings.schema:
            record = parse(settings.schema)
            fit_columns(record, schema)
            return AvroFileWriter(stream, settings.schema, record, compression)
        try:
            text = json.dumps(avro_schema(schema))
        except ConfigError as error:
            raise TypeError(str(error)) from error
        return AvroFileWriter(stream, text, parse(text), compression)


class AvroFileReader(FileReader):
    """Reads blocks; a value that cannot be read as the columns fails the file, as it has no line to be told by."""

    def __init__(self, fs: Any, reader: Record | None, schema: pa.Schema, batch_rows: int) -> None:
        self._fs = fs
        self._reader = reader
        self._schema = schema
        self._batch_rows = batch_rows

    def read(self, path: str, part: tuple[int, int], position: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        before = 0
        try:
            with open_for_reading(self._fs, path) as file:
                header = read_header(file)
                reading = _Reading.of(header, self._reader)
                stop = None if part[1] == TO_THE_END else part[1]
                for block in blocks(file, header, part[0] or header.size, stop):
                    skipped = max(position - before, 0)
                    before += block.count
                    if skipped >= block.count:
                        continue
                    rows = self._batch(path, reading, block.count, read_block(file, header, block))
                    for start in range(skipped, block.count, self._batch_rows):
                        batch = rows.slice(start, self._batch_rows)
                        position += batch.num_rows
                        yield batch, position
        except ContainerError as error:
            raise DamagedFileError(path, str(error)) from error
        except SchemaError as error:
            raise DataError(f"{path}: {error}") from error

    def _batch(self, path: str, reading: _Reading, count: int, data: bytes) -> pa.RecordBatch:
        rows, bad = reading.rows(count, data)
        names = [field.name for field in rows.type]
        arrays = []
        for field in self._schema:
            found = rows.field(names.index(field.name)) if field.name in names else pa.nulls(count, field.type)
            column = cast_field(found, field)
            bad |= {row: f"{field.name}: {reason}" for row, reason in column.bad.items() if row not in bad}
            arrays.append(column.values)
        if bad:
            raise DataError(f"{path}: {bad[min(bad)]}")
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class AvroFileWriter(FileWriter):
    """Writes blocks of about a mebibyte."""

    def __init__(self, stream: BinaryIO, text: str, record: Record, compression: str) -> None:
        self._stream = stream
        self._encoding = Encoding(record)
        self._compression = compression
        self._sync = secrets.token_bytes(SYNC_BYTES)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._rows = 0
        stream.write(header_bytes(text, compression, self._sync))

    def write(self, batch: pa.RecordBatch) -> None:
        values = self._encoding.encode(batch)
        # The values of an array stand one after the other, as they do in a block.
        data = b"".join(values.to_pylist())
        self._held.append(data)
        self._held_bytes += len(data)
        self._rows += batch.num_rows
        if self._held_bytes >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._stream.write(block_bytes(self._rows, b"".join(self._held), self._compression, self._sync))
        self._held, self._held_bytes, self._rows = [], 0, 0

    def buffered_bytes(self) -> int:
        return self._held_bytes

    def close(self) -> None:
        self.flush()


def _reader_schema(settings: Any) -> Record | None:
    return parse(settings.schema) if settings.schema else None
