"""Parses texts against a schema: the part that JSON and CSV share."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.text.salvage import BadTextError, RowParser, Texts
from arroyo_formats.text.timestamps import ISO, TimeTexts, Writing, from_text, physical_type, to_timestamp

#: How values of some types begin at least: a text that does not begin so is certainly no such value.
_DATE = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"^\s*[0-9]{2}"
_NUMBER = r"^\s*[-+]?[0-9]+\s*$"
_ROW = re.compile(r" in row ([0-9]+)$")
_CSV_ROW = re.compile(r"\bRow #([0-9]+): ")


class SchemaParser(RowParser):
    """Turns text into batches of one schema; `types` of a call are what the columns are read as."""

    def __init__(self, schema: pa.Schema, writings: Sequence[Writing], times: TimeTexts | None = None) -> None:
        """`times` is None where there are no settings for them."""
        self._schema = schema
        self._has_settings = times is not None
        self._times = times or ISO
        self._choices = tuple(writings)
        self._writings = {field.name: self._choices[0] for field in schema if pa.types.is_timestamp(field.type)}
        self._decimals = {field.name for field in schema if _holds_decimal(field.type)}

    def parse(self, data: bytes) -> pa.RecordBatch:
        """The rows of `data` in the schema; raises `BadTextError`."""
        try:
            return self._typed(data)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if not self._is_about_time(error) or not self._adapt(data):
                raise _bad_text(error) from error
        try:
            return self._typed(data)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise _bad_text(error) from error

    def checks(self) -> Sequence[Callable[[Texts], Mapping[int, str]]]:
        return (self._no_times,)

    def _no_times(self, texts: Texts) -> Mapping[int, str]:
        """Texts whose dates or times do not begin as such."""
        found: dict[int, str] = {}
        for field in self._schema:
            pattern = self._first_characters(field.type)
            if pattern is None:
                continue
            try:
                values = self._read(texts.data, {field.name: pa.string()}).column(field.name).combine_chunks()
            except (pa.ArrowInvalid, UnicodeDecodeError):
                continue
            if len(values) != len(texts):
                continue
            is_bad = pc.invert(pc.match_substring_regex(values, pattern)).fill_null(False)
            if self._times.formats_of(field.type) and pc.any(is_bad).as_py():
                is_bad = pc.and_(is_bad, self._times.formatted(values, field.type).is_null())
            for index in pc.indices_nonzero(is_bad).to_pylist():
                found.setdefault(index, f"column {field.name!r}: {values[index].as_py()!r} {self._refusal(field.type)}")
        return found

    def _refusal(self, kind: pa.DataType) -> str:
        """Why a text is no value of a type of dates or times."""
        setting = "timestamp_formats" if pa.types.is_timestamp(kind) else "date_formats"
        if not self._has_settings or pa.types.is_time(kind):
            return f"is not a {kind}"
        if self._times.formats_of(kind):
            return f"is not a {kind}, neither in {setting} nor in ISO 8601"
        return f"is not a {kind} in ISO 8601 (other formats: {setting})"

    @abstractmethod
    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        """The named columns of `data`; raises `ArrowInvalid`."""

    def _physical(self, kind: pa.DataType) -> pa.DataType:
        """The type to read a column as that is not a timestamp."""
        return pa.string() if pa.types.is_date(kind) and self._times.date_formats else kind

    def _first_characters(self, kind: pa.DataType) -> str | None:
        if pa.types.is_timestamp(kind):
            return f"{_DATE}|{_NUMBER}" if Writing.MIXED in self._choices else _DATE
        if pa.types.is_date(kind):
            return _DATE
        return _TIME if pa.types.is_time(kind) else None

    def _typed(self, data: bytes) -> pa.RecordBatch:
        table = self._read(data, {field.name: self._read_as(field) for field in self._schema})
        columns = [self._column(table.column(field.name), field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _read_as(self, field: pa.Field) -> pa.DataType:
        writing = self._writings.get(field.name)
        return self._physical(field.type) if writing is None else physical_type(field.type, writing)

    def _column(self, column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if field.name in self._decimals:
            # Arrow reads 1e9 also where that has more digits than the type.
            values.validate(full=True)
        if values.type.equals(field.type):
            return values
        return from_text(values, field.type, self._times)

    def _is_about_time(self, error: Exception) -> bool:
        """Whether timestamps may be at fault: their columns, or what they are read as."""
        text = str(error)
        types = {str(physical_type(self._schema.field(name).type, way)) for name, way in self._writings.items()}
        return (
            "timestamp" in text
            or any(f"to {kind}" in text for kind in types)
            or any(f"/{self._key(name)})" in text for name in self._writings)
        )

    def _key(self, column: str) -> str:
        """How the texts call a column."""
        return column

    def _adapt(self, data: bytes) -> bool:
        """Find how each timestamp column is written, one by one; whether any is written otherwise than thought."""
        before = dict(self._writings)
        if len(self._choices) == 1:
            return False
        sample = self._sample(data)
        for name in before:
            self._writings[name] = self._find_writing(name, sample, before[name])
        return self._writings != before

    def _sample(self, data: bytes) -> bytes:
        """As much of the texts as tells how times are written."""
        return data

    def _find_writing(self, name: str, data: bytes, current: Writing) -> Writing:
        field = self._schema.field(name)
        for writing in dict.fromkeys((current, *self._choices)):
            try:
                to_timestamp(
                    self._read(data, {name: physical_type(field.type, writing)}).column(name).combine_chunks(),
                    field.type,
                    self._times,
                )
            except (pa.ArrowInvalid, UnicodeDecodeError):
                continue
            return writing
        return current


def _holds_decimal(kind: pa.DataType) -> bool:
    return pa.types.is_decimal(kind) or any(_holds_decimal(kind.field(place).type) for place in range(kind.num_fields))


def _bad_text(error: Exception) -> BadTextError:
    """The cause without the counts of Arrow, which are of a part of a block and would mislead; the row they name."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    named, csv_named = _ROW.search(text), _CSV_ROW.search(text)
    row = int(named[1]) if named else int(csv_named[1]) - 1 if csv_named else None
    text = text.removeprefix("JSON parse error: ").removeprefix("CSV parse error: ")
    if text.startswith(("In CSV column #", "Row #")):
        text = text.partition("Row #")[2].partition(": ")[2] or text
    return BadTextError(_ROW.sub("", text), row)
