"""The format `json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from arroyo_formats.files import FileWriter
from arroyo_formats.format import Decoded, Encoded, Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import JsonSettings
from arroyo_formats.json.encoding import encode_lines, encode_messages
from arroyo_formats.json.parser import JsonParser, check_type, infer_schema
from arroyo_formats.messages import check_encodable, read_texts
from arroyo_formats.schemas import check_columns
from arroyo_formats.text.compressed import text_stream
from arroyo_formats.text.files import LineFiles, first_lines
from arroyo_formats.text.salvage import RowParser


class JsonFiles(LineFiles):
    """One object a line."""

    endings = (".json", ".jsonl", ".ndjson")
    extension = "jsonl"

    def check_schema(self, settings: Any, schema: pa.Schema | None) -> None:
        check_columns(schema, check_type)

    def infer_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        data = first_lines(fs, path)
        return infer_schema(data) if data.strip() else pa.schema([])

    def parser(
        self, settings: Any, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        return JsonParser(schema), 0

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        return JsonFileWriter(stream, compression)


class JsonFileWriter(FileWriter):
    """Writes one object a line."""

    def __init__(self, stream: BinaryIO, compression: str) -> None:
        self._stream, self._finish = text_stream(stream, compression)

    def write(self, batch: pa.RecordBatch) -> None:
        for part in encode_lines(batch):
            self._stream.write(part)

    def close(self) -> None:
        self._finish()


class JsonReader(MessageReader):
    """Reads one object from each message."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._parser = JsonParser(schema, unit="message", skips_blank=False)

    def read(self, messages: Sequence[bytes]) -> Decoded:
        return read_texts(self._parser, messages, self.schema)


class JsonWriter(MessageWriter):
    """Writes one object to each message."""

    def write(self, batch: pa.RecordBatch) -> Encoded:
        return Encoded(encode_messages(batch))


class JsonFormat(Format):
    """One JSON object for each row."""

    name = "json"
    settings_type = JsonSettings
    files = JsonFiles()

    def schema(self, settings: Any, declared: pa.Schema | None) -> pa.Schema:
        schema = super().schema(settings, declared)
        check_columns(schema, check_type)
        return schema

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return JsonReader(schema)

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        check_encodable(self.name, lambda _: JsonWriter(), schema)
        return JsonWriter()
