"""The formats `raw_string` and `raw_bytes`: a message, or a line of a file, is the value of one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.files import FileWriter
from arroyo_formats.format import BadMessage, Decoded, Encoded, Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import RawBytesSettings, RawStringSettings
from arroyo_formats.messages import good_messages
from arroyo_formats.text.compressed import text_stream
from arroyo_formats.text.files import LineFiles
from arroyo_formats.text.salvage import BadTextError, Look, RowParser, Texts

COLUMN = "value"


class RawReader(MessageReader):
    """Reads the value of each message."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._is_text = pa.types.is_string(schema.field(0).type)

    def read(self, messages: Sequence[bytes]) -> Decoded:
        values = pa.array(messages, pa.binary())
        if not self._is_text:
            return Decoded(self._batch(values))
        try:
            return Decoded(self._batch(values.cast(pa.string())))
        except pa.ArrowInvalid:
            bad = [BadMessage(index, error) for index, error in enumerate(map(_utf8_error, messages)) if error]
            good = good_messages(len(messages), [each.index for each in bad])
            return Decoded(self._batch(values.take(pa.array(good)).cast(pa.string())), good, bad)

    def _batch(self, values: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([values], schema=self.schema)


class RawWriter(MessageWriter):
    """Writes each value as a message; a null one as a message without content."""

    def write(self, batch: pa.RecordBatch) -> Encoded:
        return Encoded(batch.column(0).cast(pa.large_binary()))


class RawFormat(Format):
    """What both have in common."""

    column_type: pa.DataType

    def schema(self, settings: Any, declared: pa.Schema | None) -> pa.Schema:
        schema = pa.schema([pa.field(COLUMN, self.column_type)]) if declared is None else declared
        _check_one_column(self.name, schema, self.column_type, field="schema")
        return schema

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return RawReader(schema)

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        _check_one_column(self.name, schema, self.column_type, field="format")
        return RawWriter()


class RawStringFiles(LineFiles):
    """One value a line, empty lines too."""

    endings = (".txt", ".log")
    # Where there is data beside notes and logs, the data is meant.
    is_told_by_name = False
    extension = "txt"

    def check_schema(self, settings: Any, schema: pa.Schema | None) -> None:
        """The first column is the line; others may be of folders."""
        if schema is not None:
            _check_one_column("raw_string", pa.schema([schema.field(0)]), pa.string(), field="schema")

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        return pa.schema([pa.field(COLUMN, pa.string())])

    def parser(
        self, settings: Any, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        return RawLineParser(schema, declared.names[0] if declared is not None else COLUMN), 0

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        kinds = [field.type for field in schema]
        if kinds != [pa.string()]:
            raise TypeError("a file of lines has one column, a string")
        return RawLineWriter(stream, compression)


class RawLineParser(RowParser):
    """Each line is a row, without its end."""

    def __init__(self, schema: pa.Schema, column: str) -> None:
        self._schema = schema
        self._column = column

    def look(self, texts: Texts) -> Look:
        return Look()

    def parse(self, data: bytes) -> pa.RecordBatch:
        error = _utf8_error(data)
        if error:
            raise BadTextError(error)
        lines = Texts.of_lines(data, quote_aware=False).array().cast(pa.large_string())
        values = pc.utf8_rtrim(lines, characters="\r\n").cast(pa.string())
        columns = [values if field.name == self._column else pa.nulls(len(lines), field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class RawLineWriter(FileWriter):
    """Writes a line for each value; raises `DataError` for one that is not a line."""

    def __init__(self, stream: BinaryIO, compression: str) -> None:
        self._stream, self._finish = text_stream(stream, compression)

    def write(self, batch: pa.RecordBatch) -> None:
        values = batch.column(0)
        if values.null_count or pc.any(pc.match_substring_regex(values, r"[\r\n]")).as_py():
            raise DataError("a line of text cannot be null, and cannot hold a line end")
        self._stream.write("".join(f"{value}\n" for value in values.to_pylist()).encode())

    def close(self) -> None:
        self._finish()


class RawStringFormat(RawFormat):
    """Text as it is."""

    name = "raw_string"
    settings_type = RawStringSettings
    column_type = pa.string()
    files = RawStringFiles()


class RawBytesFormat(RawFormat):
    """Bytes as they are."""

    name = "raw_bytes"
    settings_type = RawBytesSettings
    column_type = pa.binary()


def _check_one_column(name: str, schema: pa.Schema, kind: pa.DataType, *, field: str) -> None:
    found = [each.type for each in schema]
    if found != [kind]:
        columns = ", ".join(f"{each.name}: {each.type}" for each in schema)
        raise ConfigError(f"{name} is one column of type {kind}, not {columns}", field=field, value=columns)


def _utf8_error(text: bytes) -> str:
    """What is wrong with it as UTF-8; empty for nothing."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return str(error)
    return ""
