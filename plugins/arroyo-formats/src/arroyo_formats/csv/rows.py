"""CSV: columns found by the header of each file, or by position where files have none."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from arroyo_core.api.limits import COLUMNS
from arroyo_core.errors import ConfigError, DataError
from arroyo_formats.csv.shapes import misshapen, not_one_row, open_quote
from arroyo_formats.text.lines import BYTE_ORDER_MARK, line_ends, read_blocks
from arroyo_formats.text.salvage import BadTextError, Look, Texts
from arroyo_formats.text.schema_parser import SchemaParser
from arroyo_formats.text.timestamps import ISO, TimeTexts, Writing, as_times


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How CSV is written."""

    delimiter: str = ","
    #: The columns of text without a header, all of them; None where each file has one.
    names: tuple[str, ...] | None = None
    newlines_in_values: bool = False
    #: Whether an empty value of a column of texts is an empty text, and not null.
    empty_as_text: bool = False
    times: TimeTexts = ISO


@dataclass(frozen=True, slots=True)
class Header:
    """The names of a file's columns, and the byte at which its rows begin."""

    names: tuple[str, ...]
    end: int


class CsvParser(SchemaParser):
    """Parses rows of some columns. An empty value is null, a quoted empty value is an empty string."""

    def __init__(
        self,
        schema: pa.Schema,
        *,
        names: Sequence[str],
        dialect: CsvDialect,
        unit: str = "line",
    ) -> None:
        ways = [Writing.ZONED, Writing.NAIVE, Writing.NUMBER, Writing.MIXED]
        super().__init__(schema, ways[-1:] if dialect.times.timestamp_formats else ways, dialect.times)
        self.unit = unit
        self._names = list(names)
        self._dialect = dialect
        self._skips_blank = skips_blank_lines(names)

    def parse(self, data: bytes) -> pa.RecordBatch:
        batch = super().parse(data)
        if not self._dialect.newlines_in_values:
            self._check_last_quote(data, batch.num_rows - 1)
        return batch

    def look(self, texts: Texts) -> Look:
        """Each must be one line: then quotes cannot join two texts, and the count of rows tells the rest."""
        blank = texts.blank().tolist() if self._skips_blank else []
        odd = _returning(texts)
        is_quoted = self._dialect.newlines_in_values
        # Lines are joined by the number of quotes, and not all quotes open or close a value.
        bad = not_one_row(texts, self._dialect, self.unit) if is_quoted else {}
        if self.unit == "line":
            return Look(blank=blank, odd=sorted({*odd} - {*blank} - {*bad}), bad=bad)
        if not np.array_equal(line_ends(texts.data, quote_aware=is_quoted), texts.ends):
            each = range(len(texts))
            odd += [index for index in each if len(line_ends(texts.text(index), quote_aware=is_quoted)) != 1]
        bad |= dict.fromkeys(blank, "the message is empty")
        return Look(odd=sorted({*odd} - {*bad}), bad=bad)

    def _check_last_quote(self, data: bytes, row: int) -> None:
        """Arrow closes a quote that is open at the end of its input; where input ends must not matter."""
        end = len(data)
        while end and data[end - 1] in b"\r\n":
            end -= 1
        last = data[data.rfind(b"\n", 0, end) + 1 : end]
        if b'"' not in last:
            return
        # Twice the line is two rows, unless a quote is open. Their count does not tell: some are mere characters.
        try:
            rows = self._read(last + b"\n" + last + b"\n", {self._names[0]: pa.binary()}).num_rows
        except pa.ArrowInvalid:
            rows = 0
        if rows != 2:
            raise BadTextError(open_quote(self.unit), row)

    def checks(self) -> Sequence[Callable[[Texts], Mapping[int, str]]]:
        return super().checks() if self._dialect.newlines_in_values else (self._misshapen, *super().checks())

    def _misshapen(self, texts: Texts) -> Mapping[int, str]:
        """Those with an open quote or another number of values, which Arrow would name one at a time."""
        return misshapen(texts, self._names, self._dialect, self.unit)

    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        if data.startswith(BYTE_ORDER_MARK):
            # It is not that of the file, but text of a line, and Arrow leaves one out wherever a block begins.
            data = BYTE_ORDER_MARK + data
        table = pcsv.read_csv(
            pa.BufferReader(data),
            read_options=pcsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._names),
            parse_options=_parse_options(self._names, self._dialect),
            convert_options=_convert_options(types, self._dialect),
        )
        return self._without_empty(table) if self._dialect.empty_as_text else table

    def _without_empty(self, table: pa.Table) -> pa.Table:
        """Null for empty values of columns that are read as text, and are none."""
        for place, name in enumerate(table.column_names):
            if pa.types.is_string(table.field(place).type) and self._is_no_text(name):
                column = table.column(place)
                column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
                table = table.set_column(place, name, column)
        return table

    def _is_no_text(self, name: str) -> bool:
        """Whether a column of the file is one of the schema, and not of texts."""
        return name in self._schema.names and not pa.types.is_string(self._schema.field(name).type)


def _returning(texts: Texts) -> list[int]:
    """Texts with a return that no line feed follows: Arrow ends a row there, and another may make up for the count."""
    if texts.data.count(b"\r") == texts.data.count(b"\r\n"):
        return []
    codes = np.frombuffer(texts.data + b"\0", dtype=np.uint8)
    returns = np.flatnonzero(codes == ord("\r"))
    lone = returns[codes[returns + 1] != ord("\n")]
    found: list[int] = np.unique(np.searchsorted(texts.ends, lone, side="right")).tolist()
    return found


def skips_blank_lines(names: Sequence[str]) -> bool:
    """In a file of one column an empty line is a null, else it is nothing."""
    return len(names) > 1


def read_header(fs: Any, path: str, dialect: CsvDialect) -> Header:
    """The header of a file, or the names of the dialect where files have none."""
    if dialect.names is not None:
        return Header(dialect.names, 0)
    blocks = read_blocks(fs, path, start=0, stop=None, max_lines=1, quote_aware=dialect.newlines_in_values)
    first = next(blocks, None)
    blocks.close()
    if first is None:
        return Header((), 0)
    try:
        text = first.data.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:1: the header is not UTF-8: {error}") from error
    try:
        names = next(csv.reader([text], delimiter=dialect.delimiter), [])
    except csv.Error as error:
        raise DataError(f"{path}:1: the header cannot be read: {error}") from error
    if not names:
        # Arrow would take the first row for one.
        raise DataError(f"{path}:1: the header is empty: write the names of the columns there, or set no_header")
    problem = COLUMNS.problem(len(names))
    if problem is not None:
        raise DataError(f"{path}:1: in the header {problem}")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{path}:1: columns appear twice in the header: {', '.join(twice)}")
    return Header(tuple(names), len(first.data))


def infer_schema(data: bytes, names: Sequence[str], dialect: CsvDialect) -> pa.Schema:
    """The types of some rows; raises `ArrowInvalid`."""
    if not data.strip():
        return pa.schema([pa.field(name, pa.null()) for name in names])
    table = pcsv.read_csv(
        pa.BufferReader(data),
        read_options=pcsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
        parse_options=_parse_options(names, dialect),
        convert_options=_convert_options(None, dialect),
    )
    return as_times(table, dialect.times)


def check_type(name: str, kind: pa.DataType) -> None:
    """Raises `ConfigError` for a type that CSV has no way to write."""
    if pa.types.is_nested(kind):
        raise ConfigError(
            f"column {name!r}: csv cannot hold {kind}; use a format that can, such as json",
            field=f"schema.{name}",
            value=str(kind),
        )


def check_message_type(name: str, kind: pa.DataType) -> None:
    """The same for messages; files may hold bytes, as long as they are UTF-8."""
    check_type(name, kind)
    if pa.types.is_binary(kind):
        raise ConfigError(
            f"column {name!r}: csv messages cannot hold {kind}; declare it as a string",
            field=f"schema.{name}",
            value=str(kind),
        )


def _parse_options(names: Sequence[str], dialect: CsvDialect) -> pcsv.ParseOptions:
    return pcsv.ParseOptions(
        delimiter=dialect.delimiter,
        newlines_in_values=dialect.newlines_in_values,
        ignore_empty_lines=skips_blank_lines(names),
    )


def _convert_options(types: Mapping[str, pa.DataType] | None, dialect: CsvDialect) -> pcsv.ConvertOptions:
    return pcsv.ConvertOptions(
        column_types=dict(types) if types is not None else None,
        include_columns=list(types) if types is not None else None,
        include_missing_columns=True,
        null_values=[""],
        strings_can_be_null=not dialect.empty_as_text,
        quoted_strings_can_be_null=False,
    )
