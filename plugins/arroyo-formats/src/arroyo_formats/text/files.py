"""Files of lines: read by blocks of lines, cut by bytes, compressed as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.conform import plain_type
from arroyo_formats.files import (
    MEBIBYTE,
    TO_THE_END,
    WHOLE_FILE,
    BadRow,
    DamagedFileError,
    FileFormat,
    FileReader,
    OnBad,
)
from arroyo_formats.text.compressed import compression_of
from arroyo_formats.text.lines import BYTE_ORDER_MARK, LineNumbers, line_ends, next_line, read_blocks
from arroyo_formats.text.salvage import RowParser, Texts, parse_texts

SAMPLE_BYTES = 2**20


class LineFiles(FileFormat):
    """What formats have in common whose files consist of lines, of which each is a row. Positions are bytes."""

    has_lines = True
    compressions = ("none", "gzip")
    positions = "bytes"
    # Smaller than others: a text file is larger than the same rows in Parquet.
    greatest_part_bytes = 32 * MEBIBYTE

    @abstractmethod
    def parser(
        self, settings: Any, fs: Any, path: str, *, schema: pa.Schema, declared: pa.Schema | None
    ) -> tuple[RowParser, int]:
        """How to parse a file, and the byte where its rows begin."""

    def rows(self, lines: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """What parsed lines mean."""
        return lines

    def is_quoted(self, settings: Any) -> bool:
        """Whether a line end inside double quotes is part of a value: such files cannot be cut."""
        return False

    def infer_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        """The columns that the first lines of a file suggest; raises `ArrowInvalid`."""
        raise NotImplementedError

    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        try:
            found = self.infer_schema(settings, fs, path)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"cannot tell the columns of {path!r}: {reason}; declare the schema", field="schema"
            ) from error
        if not found.names:
            raise ConfigError(f"cannot tell the columns of {path!r}: it has none; declare the schema", field="schema")
        return pa.schema([pa.field(field.name, inferred_type(field.type)) for field in found])

    def cut(self, settings: Any, fs: Any, path: str, *, size: int, part_bytes: int) -> Sequence[tuple[int, int]]:
        """By bytes; which lines belong to a part is the reader's to find."""
        if self.is_quoted(settings) or compression_of(path) or size <= part_bytes:
            return [WHOLE_FILE]
        return list(pairwise([*range(0, size, part_bytes), size]))

    def reader(
        self, settings: Any, fs: Any, *, schema: pa.Schema, declared: pa.Schema | None, batch_rows: int, on_bad: OnBad
    ) -> FileReader:
        return _LineReader(self, settings, fs, schema=schema, declared=declared, batch_rows=batch_rows, on_bad=on_bad)


class _LineReader(FileReader):
    def __init__(
        self,
        files: LineFiles,
        settings: Any,
        fs: Any,
        *,
        schema: pa.Schema,
        declared: pa.Schema | None,
        batch_rows: int,
        on_bad: OnBad,
    ) -> None:
        self._files = files
        self._settings = settings
        self._fs = fs
        self._schema = schema
        self._declared = declared
        self._batch_rows = batch_rows
        self._on_bad = on_bad

    def read(self, path: str, part: tuple[int, int], position: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        parser, begin = self._files.parser(self._settings, self._fs, path, schema=self._schema, declared=self._declared)
        start, stop = part
        is_quoted = self._files.is_quoted(self._settings)
        first = max(position or next_line(self._fs, path, start), begin)
        blocks = read_blocks(
            self._fs,
            path,
            start=first,
            stop=None if stop == TO_THE_END else stop,
            max_lines=self._batch_rows,
            quote_aware=is_quoted,
        )
        numbers = LineNumbers(self._fs, path, first)
        try:
            for block in blocks:
                data = block.data.removeprefix(BYTE_ORDER_MARK) if block.offset == 0 else block.data
                texts = Texts.of_lines(data, quote_aware=is_quoted)
                parsed = parse_texts(parser, texts)
                if parsed.bad:
                    lines = numbers.in_block(data, [texts.start(index) for index in parsed.bad])
                    for (index, error), line in zip(parsed.bad.items(), lines, strict=True):
                        self._on_bad(BadRow(path, line, texts.text(index).rstrip(b"\r\n"), error))
                numbers.pass_block(block)
                rows = parsed.batch
                is_empty = rows is None or not rows.num_rows
                yield None if is_empty else self._files.rows(rows, self._schema), block.offset + len(block.data)
        except DamagedFileError as error:
            raise DamagedFileError(path, error.reason, line=numbers.next_line()) from error


def first_lines(fs: Any, path: str, *, start: int = 0, is_quoted: bool = False) -> bytes:
    """The whole lines of the first mebibyte of a file."""
    blocks = read_blocks(fs, path, start=start, stop=None, max_lines=2**31, quote_aware=is_quoted)
    block = next(blocks, None)
    blocks.close()
    data = block.data if block else b""
    if len(data) > SAMPLE_BYTES:
        # Whole lines only: the sample ends with the last one that ends inside it.
        ends = line_ends(data[:SAMPLE_BYTES], quote_aware=is_quoted)
        data = data[: int(ends[-2])] if len(ends) > 1 else data
    return data.removeprefix(BYTE_ORDER_MARK)


def inferred_type(kind: pa.DataType) -> pa.DataType:
    """A type that also later lines are likely to fit."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        # Seconds may have fractions in later lines; nanoseconds are there already.
        return pa.timestamp("ns" if kind.unit == "ns" else "us", tz="UTC")
    if pa.types.is_list(kind):
        return pa.list_(inferred_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, inferred_type(field.type)) for field in kind])
    return plain_type(kind)
