"""Reads JSON lines and CSV by blocks of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_filesystem.conform import plain_type
from arroyo_filesystem.formats import csv_lines, debezium, json_lines
from arroyo_filesystem.formats.csv_lines import CsvDialect, CsvParser, Header
from arroyo_filesystem.formats.debezium import DebeziumParser
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.formats.json_lines import JsonParser
from arroyo_filesystem.formats.lines import BYTE_ORDER_MARK, LineCounter, line_ends, next_line, read_blocks
from arroyo_filesystem.formats.salvage import BlockParser
from arroyo_filesystem.splits import TO_THE_END, Split

SAMPLE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class BadRow:
    """A bad line of a file; `line` counts from 1."""

    file: str
    line: int
    text: bytes
    error: str


class TextReader:
    """Reads the lines of one split; positions are bytes of the file.

    Each bad line is given to `on_bad`, before the batches of its block, and is never a row.
    """

    def __init__(
        self,
        fs: Any,
        *,
        kind: Format,
        schema: pa.Schema,
        batch_rows: int,
        dialect: CsvDialect,
        on_bad: Callable[[BadRow], None],
    ) -> None:
        self._fs = fs
        self._kind = kind
        self._schema = schema
        self._batch_rows = batch_rows
        self._dialect = dialect
        self._on_bad = on_bad
        self._counter = LineCounter(fs)
        self._block_schema = debezium.flat_schema(schema) if kind is Format.DEBEZIUM_JSON else schema

    def read(self, path: str, split: Split, position: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """The rows of each block, None where it has none, with the position after it."""
        parser, begin = self._parser(path)
        start = max(position or next_line(self._fs, path, split.start), begin)
        stop = None if split.stop == TO_THE_END else split.stop
        blocks = read_blocks(
            self._fs,
            path,
            start=start,
            stop=stop,
            max_lines=self._batch_rows,
            quote_aware=parser.quote_aware,
        )
        for block in blocks:
            data = block.data.removeprefix(BYTE_ORDER_MARK) if block.offset == 0 else block.data
            shift = block.offset + len(block.data) - len(data)
            parsed = parser.block(data) if data else None
            end = block.offset + len(block.data)
            for bad in parsed.bad if parsed else ():
                line = self._counter.line_at(path, shift + bad.offset)
                self._on_bad(BadRow(path, line, bad.text, bad.error))
            batches = parsed.batches if parsed else []
            yield self._rows(_joined(batches, self._block_schema)), end

    def _rows(self, lines: pa.RecordBatch | None) -> pa.RecordBatch | None:
        """What parsed lines mean."""
        is_changes = lines is not None and self._kind is Format.DEBEZIUM_JSON
        return debezium.expand(lines, self._schema) if is_changes else lines

    def _parser(self, path: str) -> tuple[BlockParser, int]:
        """How to parse a file, and where its rows begin."""
        if self._kind is Format.JSON:
            return BlockParser(JsonParser(self._schema).parse, quote_aware=False, skips_blank=True), 0
        if self._kind is Format.DEBEZIUM_JSON:
            return BlockParser(DebeziumParser(self._schema).parse, quote_aware=False, skips_blank=True), 0
        header = csv_lines.read_header(self._fs, path, self._dialect)
        parser = CsvParser(self._schema, names=header.names, dialect=self._dialect)
        block_parser = BlockParser(
            parser.parse,
            quote_aware=self._dialect.newlines_in_values,
            skips_blank=csv_lines.skips_blank(header.names),
        )
        return block_parser, header.end


def read_schema(fs: Any, path: str, *, kind: Format, dialect: CsvDialect) -> pa.Schema:
    """The schema that the first mebibyte of a file suggests; raises `ConfigError` where it suggests none."""
    header = csv_lines.read_header(fs, path, dialect) if kind is Format.CSV else Header((), 0)
    blocks = read_blocks(fs, path, start=header.end, stop=None, max_lines=2**31, quote_aware=dialect.newlines_in_values)
    block = next(blocks, None)
    blocks.close()
    data = block.data if block else b""
    if len(data) > SAMPLE_BYTES:
        # Whole lines only: the sample ends with the last one that ends inside it.
        ends = line_ends(data[:SAMPLE_BYTES], quote_aware=dialect.newlines_in_values)
        data = data[: int(ends[-2])] if len(ends) > 1 else data
    data = data.removeprefix(BYTE_ORDER_MARK)
    try:
        if kind is Format.CSV:
            found = csv_lines.infer_schema(data, header.names, dialect)
        else:
            found = json_lines.infer_schema(data) if data.strip() else pa.schema([])
            found = debezium.row_schema(found) if kind is Format.DEBEZIUM_JSON else found
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"cannot tell the columns of {path!r}: {reason}; declare the schema", field="schema"
        ) from error
    if not found.names:
        raise ConfigError(f"cannot tell the columns of {path!r}: it has none; declare the schema", field="schema")
    return pa.schema([pa.field(field.name, inferred_type(field.type)) for field in found])


def inferred_type(kind: pa.DataType) -> pa.DataType:
    """A type that also later lines are likely to fit."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_list(kind):
        return pa.list_(inferred_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, inferred_type(field.type)) for field in kind])
    return plain_type(kind)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch | None:
    if len(batches) <= 1:
        return batches[0] if batches else None
    return pa.Table.from_batches(batches, schema).combine_chunks().to_batches()[0]
