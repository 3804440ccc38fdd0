"""Cuts batches by the values of partition columns, and names the folder of each part.

Folders are named as Hive does, `column=value`, with whatever could harm a path percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats.text.plain_text import iso_timestamps

from arroyo_core.errors import ConfigError
from arroyo_filesystem.location import Location
from arroyo_filesystem.object_stores import is_object_store

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
#: Parts of a time that name folders, and how many characters of `2026-01-31T23:59` they are.
TIME_UNITS = {"year": 4, "month": 7, "day": 10, "hour": 13}
_TIME = re.compile(rf"({'|'.join(TIME_UNITS)})\((.+)\)")
#: The longest name of one folder or file, and the longest path, that filesystems take.
MAX_COMPONENT_BYTES, MAX_PATH_BYTES = 255, 4095
#: Object stores have whole names only, which are keys.
MAX_KEY_BYTES = 1024
#: What is left for the name of a file.
FILE_NAME_BYTES = 100
#: How much of a value a message shows.
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class NameLimits:
    """How long names of folders may be in one place. What `partition` makes is ASCII: characters are bytes."""

    component: int
    #: Of all folders together, below that place.
    folders: int
    #: Whether a file has the names of its folders in its own.
    repeats_folder: bool = False

    @classmethod
    def of(cls, location: Location, *, repeats_folder: bool = False) -> NameLimits:
        if not location.is_local and is_object_store(location.fs):
            # The bucket is in the path, and not in the key.
            key = location.path.partition("/")[2]
            return cls(MAX_KEY_BYTES, MAX_KEY_BYTES - len(key.encode()) - FILE_NAME_BYTES, repeats_folder)
        path_bytes = len(location.path.encode())
        return cls(MAX_COMPONENT_BYTES, MAX_PATH_BYTES - path_bytes - FILE_NAME_BYTES, repeats_folder)

    def problem(self, folder: str) -> str | None:
        """Why files cannot be in this folder; None where they can."""
        if self.repeats_folder and (problem := self._problem_of_repeating(folder)):
            return problem
        if len(folder) <= min(self.component, self.folders):
            return None
        for part in folder.split("/"):
            if len(part) > self.component:
                name, _, value = part.partition("=")
                text = unquote(value)
                shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
                return (
                    f"a value of column {unquote(name)!r} with {len(text)} characters makes a folder name of "
                    f"{len(part)} bytes, {self.component} are allowed: {shown!r}"
                )
        if len(folder) <= self.folders:
            return None
        return f"the folders of one row have names of {len(folder)} bytes, {self.folders} are allowed there"

    def _problem_of_repeating(self, folder: str) -> str | None:
        allowed = min(self.component - FILE_NAME_BYTES, self.folders // 2)
        if len(folder) <= allowed:
            return None
        return (
            f"{{partition}} of file_name repeats the folders of one row, whose names have {len(folder)} bytes; "
            f"{allowed} are allowed there"
        )


def longest_name(location: Location, folder: str) -> int:
    """How many bytes the name of a file may have in a folder below that of a sink."""
    below = len(f"{folder}/".encode()) if folder else 0
    if not location.is_local and is_object_store(location.fs):
        key = location.path.partition("/")[2]
        return MAX_KEY_BYTES - len(f"{key}/".encode()) - below
    return min(MAX_COMPONENT_BYTES, MAX_PATH_BYTES - len(f"{location.path}/".encode()) - below)


def check_partitions(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema of the files, without the partition columns; raises `ConfigError`."""
    names = []
    for index, written in enumerate(columns):
        place = f"partition_by[{index}]"
        time = _time_of(written, schema)
        name = written if time is None else time.column
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=place, value=written, allowed=schema.names)
        kind = schema.field(name).type
        if time is not None:
            _check_time(time, schema, place=place, written=written)
        elif pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise ConfigError(f"column {name!r} is {kind}: its values cannot name folders", field=place, value=name)
        names.append(written if time is None else time.name)
        if names[-1] in names[:-1]:
            raise ConfigError(f"column {written!r} is named twice", field=place, value=written)
    rest = pa.schema([field for field in schema if field.name not in names])
    if not rest.names:
        raise ConfigError("a file must keep at least one column", field="partition_by", value=list(columns))
    return rest


def partition(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Folder and rows of each part, rows in their order and without the partition columns."""
    if not columns:
        yield "", batch
        return
    batch, columns = _with_times(batch, columns)
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    folders: list[list[str]] = []
    for name in columns:
        encoded = pc.dictionary_encode(_text(batch.column(name)), null_encoding="encode")
        folders.append([_folder(name, value) for value in encoded.dictionary.to_pylist()])
        codes = codes * max(len(folders[-1]), 1) + encoded.indices.to_numpy(zero_copy_only=False)
        # Back to dense codes, or many columns would overflow.
        present, codes = np.unique(codes, return_inverse=True)
        folders = [_joined(folders, present)]
    rest = batch.drop_columns(list(columns))
    if len(folders[0]) == 1:
        yield folders[0][0], rest
        return
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(folders[0]) + 1))
    for code, folder in enumerate(folders[0]):
        yield folder, rest.take(pa.array(order[starts[code] : starts[code + 1]]))


def time_columns(schema: pa.Schema, columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of columns that name folders, those that are parts of times: by name, the part, and the column it is of."""
    times = (_time_of(written, schema) for written in columns)
    return {time.name: (time.unit, time.column) for time in times if time is not None}


@dataclass(frozen=True, slots=True)
class _Time:
    """A part of the time in a column, such as `hour(at)`, as a column of its own."""

    unit: str
    column: str

    @property
    def name(self) -> str:
        return f"{self.column}_{self.unit}"

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        return pc.utf8_slice_codeunits(_text(batch.column(self.column)), 0, TIME_UNITS[self.unit])


def _time_of(written: str, schema: pa.Schema) -> _Time | None:
    found = _TIME.fullmatch(written)
    # A column that is called so is meant.
    return _Time(found[1], found[2]) if found and written not in schema.names else None


def _check_time(time: _Time, schema: pa.Schema, *, place: str, written: str) -> None:
    kind = schema.field(time.column).type
    if not pa.types.is_timestamp(kind) and not (pa.types.is_date(kind) and time.unit != "hour"):
        raise ConfigError(f"column {time.column!r} is {kind}, which has no {time.unit}", field=place, value=written)
    if time.name in schema.names:
        raise ConfigError(
            f"folders of {written} are called {time.name!r}, and so is a column: rename it before the sink",
            field=place,
            value=written,
        )


def _with_times(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[pa.RecordBatch, list[str]]:
    """The batch with columns for parts of times, and the names of all columns of partitions."""
    names = []
    for written in columns:
        time = _time_of(written, batch.schema)
        if time is not None:
            batch = batch.append_column(time.name, time.values(batch))
        names.append(written if time is None else time.name)
    return batch, names


def _joined(folders: list[list[str]], present: np.ndarray) -> list[str]:
    """The folder of each combination that is there; `folders` are those so far and those of one more column."""
    if len(folders) == 1:
        return [folders[0][code] for code in present]
    before, added = folders
    return [f"{before[code // len(added)]}/{added[code % len(added)]}" for code in present]


def _text(column: pa.Array) -> pa.Array:
    """Values as text: equal text is the same folder, whatever the value was."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        return iso_timestamps(column)
    return column.cast(pa.string())


def _folder(name: str, value: str | None) -> str:
    if value == NULL_FOLDER:
        # A text that is no null.
        return f"{quote(name, safe='')}=%5F{NULL_FOLDER[1:]}"
    return f"{quote(name, safe='')}={NULL_FOLDER if value is None else quote(value, safe='')}"
