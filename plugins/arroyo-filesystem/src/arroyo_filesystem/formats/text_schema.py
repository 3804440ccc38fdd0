"""Parses blocks against a schema: the part that JSON lines and CSV share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_filesystem.formats.salvage import BadTextError
from arroyo_filesystem.formats.timestamps import Writing, physical_type, to_timestamp


class SchemaParser(ABC):
    """Turns text into batches of one schema; `types` of a call are what the columns are read as."""

    def __init__(self, schema: pa.Schema, writings: Sequence[Writing]) -> None:
        self._schema = schema
        self._choices = tuple(writings)
        self._writings = {field.name: self._choices[0] for field in schema if pa.types.is_timestamp(field.type)}

    def parse(self, data: bytes) -> pa.RecordBatch:
        """The rows of `data` in the schema; raises `BadTextError`."""
        try:
            return self._typed(data)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if not self._adapt(data):
                raise BadTextError(_reason(error)) from error
        try:
            return self._typed(data)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise BadTextError(_reason(error)) from error

    @abstractmethod
    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        """The named columns of `data`; raises `ArrowInvalid`."""

    def _physical(self, kind: pa.DataType) -> pa.DataType:
        """The type to read a column as that is not a timestamp."""
        return kind

    def _typed(self, data: bytes) -> pa.RecordBatch:
        table = self._read(data, {field.name: self._read_as(field) for field in self._schema})
        columns = [self._column(table.column(field.name), field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _read_as(self, field: pa.Field) -> pa.DataType:
        writing = self._writings.get(field.name)
        return self._physical(field.type) if writing is None else physical_type(field.type, writing)

    def _column(self, column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if values.type.equals(field.type):
            return values
        return to_timestamp(values, field.type) if field.name in self._writings else pc.cast(values, field.type)

    def _adapt(self, data: bytes) -> bool:
        """Find how each timestamp column is written, one by one; whether any is written otherwise than thought."""
        before = dict(self._writings)
        for name in before:
            self._writings[name] = self._find_writing(name, data, before[name])
        return self._writings != before

    def _find_writing(self, name: str, data: bytes, current: Writing) -> Writing:
        field = self._schema.field(name)
        for writing in (current, *self._choices):
            try:
                to_timestamp(
                    self._read(data, {name: physical_type(field.type, writing)}).column(name).combine_chunks(),
                    field.type,
                )
            except (pa.ArrowInvalid, UnicodeDecodeError):
                continue
            return writing
        return current


def _reason(error: Exception) -> str:
    """The cause without the counts of Arrow, which are of a part of a block and would mislead."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    text = text.removeprefix("JSON parse error: ").removeprefix("CSV parse error: ")
    if text.startswith(("In CSV column #", "Row #")):
        text = text.partition("Row #")[2].partition(": ")[2] or text
    return text.rpartition(" in row ")[0] if text.rpartition(" in row ")[2].isdecimal() else text
