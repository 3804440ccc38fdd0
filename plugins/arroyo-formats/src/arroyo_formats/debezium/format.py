"""The format `debezium_json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import with_updating, without_updating
from arroyo_core.errors import ConfigError
from arroyo_formats.debezium.changes import (
    AFTER,
    BEFORE,
    OP,
    DebeziumParser,
    envelopes,
    expand,
    flat_schema,
    key_columns,
    origins,
    row_schema,
    set_ids,
)
from arroyo_formats.files import FileWriter
from arroyo_formats.format import Decoded, Encoded, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import DebeziumJsonSettings
from arroyo_formats.json.encoding import encode_messages
from arroyo_formats.json.format import JsonFiles, JsonFileWriter, JsonFormat
from arroyo_formats.json.schema import check_written, framed_reader, framed_writer, given_columns
from arroyo_formats.messages import check_encodable, read_texts
from arroyo_formats.text.salvage import RowParser
from arroyo_formats.text.timestamps import TimeTexts


class DebeziumFiles(JsonFiles):
    """One change a line, in files that are named as those of JSON lines."""

    is_told_by_name = False

    def check_schema(self, settings: Any, schema: pa.Schema | None) -> None:
        super().check_schema(settings, schema)
        if schema is not None:
            key_columns(schema, settings.primary_key)

    def given_columns(self, settings: Any) -> pa.Schema | None:
        """Those of the rows: a schema is one of whole changes."""
        changes = given_columns(settings, only=(BEFORE, AFTER))
        if changes is None:
            return None
        rows = row_schema(changes)
        if not rows.names:
            raise ConfigError(
                f"the schema has to be that of changes: an object with {BEFORE}, {AFTER} and {OP}",
                field="format.schema" if settings.schema else "format.registry",
            )
        return rows

    def times(self, settings: Any) -> TimeTexts | None:
        return None

    def written_columns(self, schema: pa.Schema) -> pa.Schema:
        row = pa.struct(list(_rows(schema)))
        return pa.schema([(BEFORE, row), (AFTER, row), pa.field(OP, pa.string(), nullable=False)])

    def infer_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        return row_schema(super().infer_schema(settings, fs, path))

    def parser(
        self, settings: Any, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        return DebeziumParser(schema), 0

    def rows(self, lines: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        return expand(lines, schema)

    def complete(self, settings: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Ids are made from all columns, also from those that folders tell."""
        return set_ids(batch, key_columns(_rows(batch.schema), settings.primary_key))

    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        check_written(settings, self.written_columns(schema))
        return DebeziumFileWriter(stream, compression)


class DebeziumFileWriter(JsonFileWriter):
    """Writes one change a line."""

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(envelopes(batch)[0])


class DebeziumReader(MessageReader):
    """Reads one change from each message: one row, or two for an update."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self.schema = with_updating(ArroyoSchema(schema)).schema
        self._rows = schema
        self._keys = keys
        self._parser = DebeziumParser(schema, unit="message", skips_blank=False)

    def read(self, messages: Sequence[bytes]) -> Decoded:
        flat = read_texts(self._parser, messages, flat_schema(self._rows))
        places = origins(flat.batch)
        if flat.origins is not None:
            places = flat.origins[places]
        return Decoded(set_ids(expand(flat.batch, self._rows), self._keys), places, flat.bad)


class DebeziumWriter(MessageWriter):
    """Writes one change to each message."""

    def write(self, batch: pa.RecordBatch) -> Encoded:
        changes, places = envelopes(batch)
        return Encoded(encode_messages(changes), places)


class DebeziumJsonFormat(JsonFormat):
    """One change of a row in each JSON object."""

    name = "debezium_json"
    settings_type = DebeziumJsonSettings
    is_updating = True
    files: ClassVar[JsonFiles] = DebeziumFiles()

    def schema(self, settings: Any, declared: pa.Schema | None) -> pa.Schema:
        schema = super().schema(settings, declared)
        key_columns(schema, settings.primary_key)
        return schema

    def reader(self, settings: Any, schema: pa.Schema) -> MessageReader:
        return framed_reader(settings, DebeziumReader(schema, key_columns(schema, settings.primary_key)))

    def writer(self, settings: Any, schema: pa.Schema) -> MessageWriter:
        check_encodable(self.name, lambda _: DebeziumWriter(), _rows(schema))
        return framed_writer(settings, DebeziumWriter(), self.files.written_columns(schema))


def _rows(schema: pa.Schema) -> pa.Schema:
    return without_updating(ArroyoSchema(schema)).schema
