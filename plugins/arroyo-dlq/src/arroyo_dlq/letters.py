"""Reads a folder of dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.api.dead_letters import PROVENANCE, is_dead_letters, original_schema
from arroyo_core.errors import DataError
from arroyo_core.state import StorageProvider
from arroyo_core.state.storage import StoredFile

#: Lines that a source could not read have no columns: they are shown as one.
TEXT_COLUMN = "text"
#: The folder of rows whose value is null, as Hive and all that read its folders call it.
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_UNREADABLE = "has no letters that can be read"
_LINE_FIELDS = ("pipeline", "node", "operator", "plugin", "incarnation", "epoch", "subtask")


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFile:
    """One file of letters. `provenance` has a row for each, with the columns of `PROVENANCE`."""

    path: str
    size_bytes: int
    provenance: pa.Table = field(repr=False)
    #: The columns of the rows that failed; None for lines of text. Those of `folders` are text.
    row_schema: pa.Schema | None = field(repr=False)
    #: Columns that are in the names of folders, as `partition_by` puts them there: `_error_node=shared/`.
    folders: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def letters(self) -> int:
        return int(self.provenance.num_rows)

    @property
    def is_text(self) -> bool:
        return self.row_schema is None


@dataclass(frozen=True, slots=True)
class Letters:
    """What a folder holds, by path; `others` are files that are no letters."""

    files: Sequence[LetterFile]
    others: Sequence[str]


def find_letters(storage: StorageProvider) -> Letters:
    """Every letter below the URL; what is staged, and what replays keep, is left out."""
    files, others = [], []
    for stored in storage.list_root():
        if not is_letter_path(stored.path):
            continue
        found = open_letter_file(storage, stored)
        if found is None:
            others.append(stored.path)
        else:
            files.append(found)
    return Letters(files, others)


def is_letter_path(path: str) -> bool:
    """Whether a path below the URL may be one of letters: not staged, not a replay's, not anywhere else."""
    parts = path.split("/")
    return "" not in parts and not any(part.startswith(("_", ".")) and "=" not in part for part in parts)


def read_rows(storage: StorageProvider, file: LetterFile) -> pa.Table:
    """The rows as they failed, in the order of the letters."""
    schema = file.row_schema
    if schema is None:
        lines = [str(record.get("text", "")) for record in _records(storage, file.path)]
        return pa.table({TEXT_COLUMN: pa.array(lines, pa.string())})
    with _naming_damage(f"{storage.url}/{file.path} {_UNREADABLE}"):
        return storage.read_parts(file.path, lambda source: _with_folders(pq.ParquetFile(source), schema, file.folders))


def is_text_file(path: str) -> bool:
    """Whether letters of this path are lines that a source could not read."""
    name = path.rpartition("/")[2]
    return name.startswith("bad-") and name.endswith(".jsonl")


def open_letter_file(storage: StorageProvider, stored: StoredFile) -> LetterFile | None:
    """A file of letters, without its rows; None if it holds none. Raises `DataError` for one that cannot be read."""
    if is_text_file(stored.path):
        records = list(_records(storage, stored.path))
        try:
            provenance = _line_provenance(records)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{storage.url}/{stored.path}: a line is not a dead letter: {error}") from error
        return LetterFile(path=stored.path, size_bytes=stored.size_bytes, provenance=provenance, row_schema=None)
    if not stored.path.endswith(".parquet"):
        return None
    name = f"{storage.url}/{stored.path}"
    with _naming_damage(f"{name} {_UNREADABLE}"):
        return storage.read_parts(stored.path, lambda source: _open_parquet(name, stored, source))


@contextmanager
def _naming_damage(what: str) -> Iterator[None]:
    """Raise `DataError` for bytes that are no letters; what storage raises has a number, or is an error of ours."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{what}: {error}") from error


def _open_parquet(name: str, stored: StoredFile, source: Any) -> LetterFile | None:
    with _naming_damage(f"{name} is not a Parquet file"):
        reader = pq.ParquetFile(source)
    written = reader.schema_arrow
    folders = {name: value for name, value in _folder_values(stored.path).items() if name not in written.names}
    schema = pa.schema([*written, *(pa.field(name, pa.string()) for name in folders)])
    if not is_dead_letters(schema):
        return None
    provenance = _with_folders(reader, PROVENANCE, folders).cast(PROVENANCE)
    return LetterFile(
        path=stored.path,
        size_bytes=stored.size_bytes,
        provenance=provenance,
        row_schema=original_schema(schema),
        folders=folders,
    )


def _folder_values(path: str) -> dict[str, str | None]:
    # A name of a file need not be text: Python has then half characters for its bytes, which Arrow does not take.
    text = path.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
    pairs = (folder.partition("=") for folder in text.split("/")[:-1])
    return {
        unquote(name): None if value == NULL_FOLDER else unquote(value)
        for name, is_pair, value in pairs
        if name and is_pair
    }


def _with_folders(reader: pq.ParquetFile, schema: pa.Schema, folders: Mapping[str, str | None]) -> pa.Table:
    """The columns of `schema`, in its order; those of folders as text, those that are missing as null.

    Raises `ArrowInvalid` also for texts that are not UTF-8.
    """
    written = set(reader.schema_arrow.names)
    rows = reader.read(columns=[name for name in schema.names if name in written and name not in folders])
    for column in schema:
        if column.name in folders:
            values = pa.array([folders[column.name]] * reader.metadata.num_rows, pa.string())
        elif column.name not in written:
            values = pa.nulls(reader.metadata.num_rows, column.type)
        else:
            continue
        rows = rows.append_column(column.name, values)
    rows.validate(full=True)
    return rows.select(schema.names)


def _records(storage: StorageProvider, path: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(storage.read(path).splitlines(), start=1):
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{storage.url}/{path}:{number} is not a dead letter: {error}") from error


def _line_provenance(records: list[dict[str, Any]]) -> pa.Table:
    columns: dict[str, list[object]] = {f"_error_{name}": [r.get(name) for r in records] for name in _LINE_FIELDS}
    columns["_error"] = [record.get("error") for record in records]
    columns["_error_time"] = [_time(record.get("time")) for record in records]
    columns["_error_position"] = [_position(record) for record in records]
    for name in ("_error_udf", "_error_udf_source"):
        columns[name] = [None] * len(records)
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in PROVENANCE})


def _position(record: dict[str, Any]) -> str:
    """Where a line was; a file that is damaged may have no lines."""
    return f"{record.get('file')}:{record['line']}" if "line" in record else str(record.get("file"))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
