"""CSV, JSON and Debezium JSON, as files and as messages.

The first byte of an input chooses columns and what is checked, the second one settings and the ending of the file's
name; the rest is a file. However a file is read, by which batches and parts, it has the same rows and the same bad
lines; each message is a row or bad; and rows that are written are read again.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats import BadRow, FormatChoice, find_format
from arroyo_formats.files import TO_THE_END, WHOLE_FILE, DamagedFileError
from arroyo_formats.text.files import LineFiles
from arroyo_formats.type_names import parse_type
from fsspec.implementations.local import LocalFileSystem
from google.protobuf import json_format

from arroyo_core.api import with_defaults

# That of fsspec in memory gives all who open a file the same one.
_FS = LocalFileSystem()
_ALL_ROWS = 1000

_SCHEMAS = (
    {"n": "int64", "s": "string"},
    {"a": "bool", "b": "int8", "c": "uint64", "d": "float64", "e": "float32"},
    {"t": "timestamp", "d": "date", "z": "time", "m": "decimal(10,2)"},
)
#: JSON has no way to write them.
_BYTES = {"s": "string", "b": "binary", "t": "timestamp", "n": "int32"}
_NESTED = (
    {"l": "list<int64>", "s": "struct<a: int64, b: string>", "m": "list<string>"},
    {"l": "list<struct<a: bool, t: timestamp>>", "d": "struct<d: date, x: struct<y: float64>>"},
)
_TIMES = {"timestamp_formats": ["%d/%m/%Y %H:%M:%S", "%Y-%m-%d"], "date_formats": ["%d.%m.%Y"]}
_CSV_SETTINGS: Sequence[Mapping[str, Any]] = (
    {},
    {"newlines_in_values": True},
    {"no_header": True, "delimiter": ";"},
    {"empty_as_text": True, "delimiter": "\t"},
    {**_TIMES, "time_zone": "Europe/Berlin", "newlines_in_values": True},
)
_JSON_SETTINGS: Sequence[Mapping[str, Any]] = ({}, _TIMES, {"time_zone": "America/New_York"})
#: Names say how a file is compressed.
_COMPRESSED = (".gz", ".zst")
_ENDINGS = ("", "", *_COMPRESSED)


#: By format: the columns and the settings to choose from.
_CHOICES: Mapping[str, tuple[Sequence[Mapping[str, str]], Sequence[Mapping[str, Any]]]] = {
    "csv": ((*_SCHEMAS, _BYTES), _CSV_SETTINGS),
    "json": ((*_SCHEMAS, *_NESTED), _JSON_SETTINGS),
    "debezium_json": ((*_SCHEMAS, *_NESTED), ({}, {"primary_key": ["n"]})),
}


def run_csv(data: bytes) -> None:
    _run("csv", data)


def run_json(data: bytes) -> None:
    """A bit of the second byte says whether the objects are changes."""
    _run("debezium_json" if len(data) > 1 and data[1] & 0x20 else "json", data)


def _run(name: str, data: bytes) -> None:
    if len(data) < 2:
        return
    schemas, settings = _CHOICES[name]
    schema = _schema(name, data[0] % len(schemas))
    choice = _choice(name, data[1] % len(settings))
    path = f"{_folder().name}/x.{name}{_ENDINGS[data[1] // 64 % len(_ENDINGS)]}"
    Path(path).write_bytes(data[2:])
    case = _Case(choice, schema, path)
    match data[0] // 64:
        case 0:
            case.check_cuts()
        case 1:
            case.check_messages()
        case 2:
            case.check_written()
        case _:
            choice.files().check_schema(choice.settings, None)
            found = choice.files().read_schema(choice.settings, _FS, path)
            choice.files().check_schema(choice.settings, found)
            _Case(choice, found, path, is_declared=False).check_cuts()


class _Case:
    def __init__(self, choice: FormatChoice, schema: pa.Schema, path: str, *, is_declared: bool = True) -> None:
        self.choice = choice
        self.files = choice.files()
        self.schema = schema
        self.path = path
        self._declared = schema if is_declared else None

    def check_cuts(self) -> None:
        """Batches and parts change nothing."""
        batches, bad, damage = self.read([WHOLE_FILE], _ALL_ROWS)
        rows, places = _text(batches), [(each.line, each.text) for each in bad]
        batches, bad, damage_of_small = self.read([WHOLE_FILE], 1)
        # Why a line is bad may be said in other words.
        assert [(each.line, each.text) for each in bad] == places, "batches change which lines are bad"
        assert (_text(batches), damage_of_small) == (rows, damage), "batches change rows"
        half = Path(self.path).stat().st_size // 2
        if damage is not None or not half or self.path.endswith(_COMPRESSED) or self.is_quoted:
            return
        batches, bad, _ = self.read([(0, half), (half, TO_THE_END)], _ALL_ROWS)
        assert [(each.line, each.text) for each in bad] == places, "parts change which lines are bad"
        assert _text(batches) == rows, "parts change rows"

    @property
    def is_quoted(self) -> bool:
        return isinstance(self.files, LineFiles) and self.files.is_quoted(self.choice.settings)

    def read(
        self, parts: Sequence[tuple[int, int]], batch_rows: int
    ) -> tuple[list[pa.RecordBatch], list[BadRow], str | None]:
        """The rows, the bad lines, and the damage that ended it."""
        bad: list[BadRow] = []
        found: list[pa.RecordBatch] = []
        reader = self.files.reader(
            self.choice.settings,
            _FS,
            schema=self.schema,
            declared=self._declared,
            batch_rows=batch_rows,
            on_bad=bad.append,
        )
        try:
            for part in parts:
                for batch, _ in reader.read(self.path, part, 0):
                    if batch is not None:
                        batch.validate(full=True)
                        found.append(batch)
        except DamagedFileError as error:
            return found, bad, str(error)
        return found, bad, None

    def check_messages(self) -> None:
        """Each line is a message: a row or two, or bad."""
        messages = Path(self.path).read_bytes().split(b"\n")
        decoded = self.choice.reader(self.choice.schema(self.schema)).read(messages)
        decoded.batch.validate(full=True)
        places = list(range(len(messages))) if decoded.origins is None else decoded.origins.tolist()
        bad = [each.index for each in decoded.bad]
        assert len(places) == decoded.batch.num_rows, "rows have no message"
        assert places == sorted(places), "rows are not in the order of messages"
        assert not set(places) & set(bad), "a bad message is a row"
        if not self.choice.format.is_updating:
            assert sorted([*places, *bad]) == list(range(len(messages))), "a message is lost"
        assert all(each.error and "\n" not in each.error for each in decoded.bad)

    def check_written(self) -> None:
        """What was read and is written is read again."""
        rows, _, _ = self.read([WHOLE_FILE], _ALL_ROWS)
        has_null = not getattr(self.choice.settings, "empty_as_text", False)
        if not rows or not has_null or self.choice.format.is_updating:
            return
        stream = io.BytesIO()
        writer = self.files.writer(self.choice.settings, stream, self.schema, compression="none")
        for batch in rows:
            writer.write(batch)
        writer.close()
        path = f"{_folder().name}/written"
        Path(path).write_bytes(stream.getvalue())
        again, bad, damage = _Case(self.choice, self.schema, path).read([WHOLE_FILE], _ALL_ROWS)
        assert not bad, f"what was written cannot be read: {bad[0]}"
        assert damage is None
        if self.choice.format.name == "json":
            rows = [pa.record_batch([_finite(column) for column in batch.columns], batch.schema) for batch in rows]
        assert _text(again) == _text(rows), "what was written is read as something else"


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="arroyo-fuzz-")


@cache
def _choice(name: str, index: int) -> FormatChoice:
    found = find_format(name)
    written = found.settings_type()
    json_format.ParseDict(dict(_CHOICES[name][1][index]), written)
    return FormatChoice(found, with_defaults(written)).resolve()


@cache
def _schema(name: str, index: int) -> pa.Schema:
    schema = pa.schema([pa.field(column, parse_type(kind)) for column, kind in _CHOICES[name][0][index].items()])
    choice = _choice(name, 0)
    choice.files().check_schema(choice.settings, schema)
    return schema


def _text(batches: Sequence[pa.RecordBatch]) -> str:
    """The rows, in a form in which those that are the same are equal: not a number is not equal to itself."""
    if not batches:
        return ""
    rows = pa.Table.from_batches(batches).combine_chunks()
    return "\n".join(f"{field.name} {_values(column)}" for field, column in zip(rows.schema, rows.columns, strict=True))


def _finite(column: pa.Array) -> pa.Array:
    """As JSON writes them: other numbers are null."""
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    if pa.types.is_struct(column.type):
        children = [_finite(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
    return column


def _values(column: pa.ChunkedArray) -> str:
    return str([str(value) for chunk in column.chunks for value in _plain(chunk)])


def _plain(values: pa.Array) -> Any:
    """Times as numbers: Python's own end with the year 9999."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64()).to_pylist()
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()
    return values if pa.types.is_nested(values.type) else values.to_pylist()
