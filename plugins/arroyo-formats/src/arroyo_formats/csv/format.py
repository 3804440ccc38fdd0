"""The format `csv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from arroyo_core.errors import ConfigError
from arroyo_formats.csv.rows import CsvDialect, CsvParser, check_message_type, check_type, infer_schema, read_header
from arroyo_formats.files import FileWriter
from arroyo_formats.format import Decoded, Encoded, Format, MessageReader, MessageWriter
from arroyo_formats.formats_pb2 import CsvSettings
from arroyo_formats.messages import check_encodable, read_texts
from arroyo_formats.schemas import check_columns
from arroyo_formats.text.compressed import text_stream
from arroyo_formats.text.files import LineFiles, first_lines
from arroyo_formats.text.plain_text import to_plain_text
from arroyo_formats.text.salvage import RowParser, Texts
from arroyo_formats.text.time_settings import time_texts

#: Rows that become text together.
CSV_ROWS = 2**14


class CsvFiles(LineFiles):
    """One row a line, or several lines where quoted values hold line ends."""

    endings = (".csv",)
    extension = "csv"

    def check_schema(self, settings: CsvSettings, schema: pa.Schema | None) -> None:
        if settings.no_header and schema is None:
            raise ConfigError("files without a header need a declared schema", field="schema")
        check_columns(schema, check_type)

    def is_quoted(self, settings: CsvSettings) -> bool:
        return settings.newlines_in_values

    def state_settings(self, settings: CsvSettings) -> Mapping[str, str]:
        return {"newlines in values": "yes" if settings.newlines_in_values else "no"}

    def infer_schema(self, settings: CsvSettings, fs: Any, path: str) -> pa.Schema:
        dialect = _dialect(settings, None)
        header = read_header(fs, path, dialect)
        data = first_lines(fs, path, start=header.end, is_quoted=settings.newlines_in_values)
        return infer_schema(data, header.names, dialect)

    def parser(
        self, settings: CsvSettings, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        dialect = _dialect(settings, declared)
        header = read_header(fs, path, dialect)
        return CsvParser(schema, names=header.names, dialect=dialect), header.end

    def writer(self, settings: CsvSettings, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        return CsvFileWriter(stream, schema, compression, settings)


class CsvFileWriter(FileWriter):
    """Writes a header and rows; text is quoted, so that an empty one differs from null."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str, settings: CsvSettings) -> None:
        self._stream, self._finish = text_stream(stream, compression)
        self._text = CsvText(schema, settings.delimiter)
        if not settings.no_header:
            self._stream.write(self._text.header())

    def write(self, batch: pa.RecordBatch) -> None:
        self._stream.write(self._text.lines(batch))

    def close(self) -> None:
        self._finish()


class CsvText:
    """Makes lines of rows."""

    def __init__(self, schema: pa.Schema, delimiter: str) -> None:
        self._delimiter = delimiter
        self._schema = pa.schema([to_plain_text(pa.array([], field.type), field.name)[1] for field in schema])

    def header(self) -> pa.Buffer:
        return self._encoded(self._schema.empty_table(), has_header=True)

    def lines(self, batch: pa.RecordBatch) -> pa.Buffer:
        columns = [to_plain_text(batch.column(field.name), field.name)[0] for field in batch.schema]
        return self._encoded(pa.RecordBatch.from_arrays(columns, schema=self._schema), has_header=False)

    def _encoded(self, rows: pa.RecordBatch | pa.Table, *, has_header: bool) -> pa.Buffer:
        """All rows become text before Python is asked to write it: it may have to wait for another thread each time."""
        text = pa.BufferOutputStream()
        options = pcsv.WriteOptions(
            include_header=has_header, delimiter=self._delimiter, quoting_style="needed", batch_size=CSV_ROWS
        )
        pcsv.write_csv(rows, text, write_options=options)
        return text.getvalue()


class CsvReader(MessageReader):
    """Reads one line from each message; columns are those of the schema, in its order."""

    def __init__(self, schema: pa.Schema, settings: CsvSettings) -> None:
        self.schema = schema
        dialect = _dialect(settings, schema, has_header=False)
        self._parser = CsvParser(schema, names=schema.names, dialect=dialect, unit="message")

    def read(self, messages: Sequence[bytes]) -> Decoded:
        return read_texts(self._parser, messages, self.schema)


class CsvWriter(MessageWriter):
    """Writes one line, without its end, to each message."""

    def __init__(self, schema: pa.Schema, settings: CsvSettings) -> None:
        self._text = CsvText(schema, settings.delimiter)

    def write(self, batch: pa.RecordBatch) -> Encoded:
        # A line end inside a value is quoted.
        lines = Texts.of_lines(self._text.lines(batch).to_pybytes(), quote_aware=True)
        return Encoded(pc.binary_slice(lines.array(), 0, -1))


class CsvFormat(Format):
    """Comma-separated values."""

    name = "csv"
    settings_type = CsvSettings
    files = CsvFiles()

    def resolve(self, settings: CsvSettings) -> CsvSettings:
        delimiter = settings.delimiter
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise ConfigError(
                f"{delimiter!r} cannot be a delimiter: it must be one ASCII character, not a quote or a line end",
                field="delimiter",
                value=delimiter,
            )
        time_texts(settings)
        return settings

    def schema(self, settings: CsvSettings, declared: pa.Schema | None) -> pa.Schema:
        schema = super().schema(settings, declared)
        check_columns(schema, check_message_type)
        return schema

    def reader(self, settings: CsvSettings, schema: pa.Schema) -> MessageReader:
        return CsvReader(schema, settings)

    def writer(self, settings: CsvSettings, schema: pa.Schema) -> MessageWriter:
        check_columns(schema, check_message_type)
        check_encodable(self.name, lambda columns: CsvWriter(columns, settings), schema)
        return CsvWriter(schema, settings)


def _dialect(settings: CsvSettings, declared: pa.Schema | None, *, has_header: bool | None = None) -> CsvDialect:
    is_named = not settings.no_header if has_header is None else has_header
    return CsvDialect(
        delimiter=settings.delimiter,
        names=None if is_named or declared is None else tuple(declared.names),
        newlines_in_values=settings.newlines_in_values,
        empty_as_text=settings.empty_as_text,
        times=time_texts(settings),
    )
