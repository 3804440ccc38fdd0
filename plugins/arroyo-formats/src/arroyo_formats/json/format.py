"""The format `json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa
from google.protobuf.message import Message

from arroyo_formats.files import FileWriter
from arroyo_formats.format import Decoded, Encoded, Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import JsonSettings
from arroyo_formats.json.encoding import encode_lines, encode_messages
from arroyo_formats.json.parser import JsonParser, check_type, infer_schema
from arroyo_formats.json.schema import check_text, check_written, framed_reader, framed_writer, given_columns
from arroyo_formats.messages import check_encodable, read_texts
from arroyo_formats.registry import missing_columns, resolve_schema, with_subject
from arroyo_formats.registry.client import JSON
from arroyo_formats.schemas import check_columns
from arroyo_formats.text.compressed import text_stream
from arroyo_formats.text.files import LineFiles, first_lines
from arroyo_formats.text.salvage import RowParser
from arroyo_formats.text.time_settings import time_texts
from arroyo_formats.text.timestamps import ISO, TimeTexts


class JsonFiles(LineFiles):
    """One object a line."""

    endings = (".json", ".jsonl", ".ndjson")
    extension = "jsonl"

    def check_schema(self, settings: Any, schema: pa.Schema | None) -> None:
        check_columns(schema, check_type)

    def given_columns(self, settings: Any) -> pa.Schema | None:
        """The columns that the settings tell, of files and of messages alike."""
        return given_columns(settings)

    def times(self, settings: Any) -> TimeTexts | None:
        """How dates and times are written; None where no setting tells. Raises `ConfigError`."""
        return time_texts(settings)

    def written_columns(self, schema: pa.Schema) -> pa.Schema:
        """What an object has that is written of these columns."""
        return schema

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        given = self.given_columns(settings)
        return super().read_schema(settings, fs, path) if given is None else given

    def infer_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        data = first_lines(fs, path)
        return infer_schema(data, self.times(settings) or ISO) if data.strip() else pa.schema([])

    def parser(
        self, settings: Any, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        return JsonParser(schema, times=self.times(settings)), 0

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        check_written(settings, self.written_columns(schema))
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

    def __init__(self, schema: pa.Schema, times: TimeTexts | None) -> None:
        self.schema = schema
        self._parser = JsonParser(schema, unit="message", skips_blank=False, times=times)

    def read(self, messages: Sequence[bytes]) -> Decoded:
        return read_texts(self._parser, messages, self.schema)


class JsonWriter(MessageWriter):
    """Writes one object to each message."""

    def write(self, batch: pa.RecordBatch) -> Encoded:
        return Encoded(encode_messages(batch))


class JsonFormat(Format):
    """One JSON object for each row."""

    name = "json"
    settings_type: ClassVar[type[Message]] = JsonSettings
    files: ClassVar[JsonFiles] = JsonFiles()

    def for_topic(self, settings: Any, topic: str, part: str) -> Any:
        return with_subject(settings, topic, part)

    def resolve(self, settings: Any) -> Any:
        found: Any = self.settings_type()
        found.CopyFrom(settings)
        self.files.times(found)
        resolve_schema(found, kind=JSON)
        if found.schema:
            check_text(found)
        return found

    def schema(self, settings: Any, declared: pa.Schema | None) -> pa.Schema:
        schema = self.files.given_columns(settings) if declared is None else declared
        if schema is None:
            raise missing_columns(self.name, settings)
        check_columns(schema, check_type)
        return schema

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return framed_reader(settings, JsonReader(schema, self.files.times(settings)))

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        check_encodable(self.name, lambda _: JsonWriter(), schema)
        return framed_writer(settings, JsonWriter(), self.files.written_columns(schema))
