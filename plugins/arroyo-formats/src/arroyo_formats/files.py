"""What a format does with files: the contract between formats and connectors of files.

A connector lists files, deals parts of them to subtasks, and keeps how far each part is read. What a part is, and what
a position in it counts, only the format knows: both are whole numbers that it gets back as it gave them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, cast

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from arroyo_formats.conditions import Pieces

#: As the end of a part: all that the file has.
TO_THE_END = -1
WHOLE_FILE = (0, TO_THE_END)
MEBIBYTE = 2**20


class DamagedFileError(DataError):
    """A file that cannot be read from some place on: it is cut off, or its bytes are not what was written.

    `line` is where, counted from 1, for files of lines.
    """

    def __init__(self, path: str, reason: str, *, line: int | None = None) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: the file is damaged: {reason}")
        self.path = path
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class BadRow:
    """A part of a file that cannot be read: a line, counted from 1, or all from there on."""

    file: str
    #: None where the file has no lines.
    line: int | None
    text: bytes
    error: str

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


OnBad = Callable[[BadRow], None]


class FileReader(ABC):
    """Reads parts of files; one instance serves one subtask, in one thread."""

    def leave_out(self, pieces: Pieces | None) -> None:
        """Before a file is read: which pieces of it nobody wants; None where all are wanted.

        A reader that knows what its pieces have may pass them by, and tells each of them `on_left_out`. Positions are
        the same ones with and without it. By default all is read.
        """
        return

    @abstractmethod
    def read(self, path: str, part: tuple[int, int], position: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """Batches of a part from a position on (0: its beginning), None for none, each with the position after it.

        A batch has the columns that the reader was made for; a column that the file does not have is null. Given the
        position after a batch, another reader goes on with the next row. Raises `DataError` naming the file;
        `DamagedFileError` after the rows before the damage, which are the same ones from wherever it is read.
        """


class FileWriter(ABC):
    """Writes one file. The stream stays open after `close`: it belongs to the caller."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what is buffered and the end of the file."""

    def flush(self) -> None:
        """Write what is buffered, to free its memory."""
        return

    def buffered_bytes(self) -> int:
        """Memory held by rows that are not written yet."""
        return 0


class FileFormat(ABC):
    """What a format does with files. `settings` are those of the format, resolved; `fs` is a filesystem of fsspec."""

    #: How names of such files end: of all files of a folder, these are read.
    endings: ClassVar[tuple[str, ...]]
    #: Whether such a name tells the format where none is configured: no, where files of another one are named alike.
    is_told_by_name: ClassVar[bool] = True
    #: What a writer's files end with, without the dot.
    extension: ClassVar[str]
    #: How a writer can compress; the first is the default.
    compressions: ClassVar[tuple[str, ...]] = ("none",)
    #: Whether files consist of lines: they can be bad one by one, are parsed whole, and may be compressed as a whole.
    has_lines: ClassVar[bool] = False
    #: What positions and parts count. Formats that count the same can go on with each other's positions.
    positions: ClassVar[str]
    #: Parts are made no larger, unless the user wants it.
    greatest_part_bytes: ClassVar[int] = 64 * MEBIBYTE

    def check_schema(self, settings: Any, schema: pa.Schema | None) -> None:
        """Raise `ConfigError` for a column that files cannot be read as; the schema is None where files tell it."""
        return

    @abstractmethod
    def read_schema(self, settings: Any, fs: Any, path: str) -> pa.Schema:
        """The columns of a file, where the pipeline declares none; raises `ConfigError` where the file tells none."""

    def cut(self, settings: Any, fs: Any, path: str, *, size: int, part_bytes: int) -> Sequence[tuple[int, int]]:
        """A file larger than `part_bytes` in parts of about that size, which different subtasks read: start and end.

        The end is the start of the next part, or `TO_THE_END`. Called once in the life of a job.
        """
        return [WHOLE_FILE]

    @abstractmethod
    def reader(
        self, settings: Any, fs: Any, *, schema: pa.Schema, declared: pa.Schema | None, batch_rows: int, on_bad: OnBad
    ) -> FileReader:
        """A reader of the columns of `schema`, which are all or some of those `declared`, of `batch_rows` at most.

        Each bad line is given to `on_bad`, before the batches after it, and is never a row. Where the format is
        updating, batches have `_updating_meta` last, and `schema` has not.
        """

    def complete(self, settings: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch of a reader after the connector filled in columns of its own, such as values of folders."""
        return batch

    def state_settings(self, settings: Any) -> Mapping[str, str]:
        """The settings that positions depend on, by label: `arroyo_core.api.OperatorBase.state_settings`."""
        return {}

    @abstractmethod
    def writer(self, settings: Any, stream: BinaryIO, schema: pa.Schema, *, compression: str) -> FileWriter:
        """A writer of one file; raises `TypeError` or `ArrowException` for a type that it cannot hold.

        Raises `ConfigError` where the settings do not allow the columns.
        Where the format is updating, batches may have `_updating_meta`, also where `schema` has not.
        """

    def full_extension(self, compression: str) -> str:
        """What names of files end with that are written so, without the dot."""
        return f"{self.extension}.gz" if self.has_lines and compression == "gzip" else self.extension


def check_writable(name: str, files: FileFormat, settings: Any, schema: pa.Schema) -> None:
    """Raises `ConfigError` for columns that files of the format cannot hold, found by writing none of their rows."""
    problem = _problem(files, settings, schema)
    if problem is None:
        return
    for field in schema:
        try:
            found = _problem(files, settings, pa.schema([field]))
        except ConfigError:
            # It is about other columns, which are not there now.
            continue
        if found is not None:
            raise ConfigError(
                f"column {field.name!r} is {field.type}, which {name} files cannot hold ({found}); "
                "leave it out, cast it, or choose another format",
                field="format",
                value=name,
            ) from found
    raise ConfigError(f"{name} files cannot hold these columns: {problem}", field="format", value=name) from problem


def _problem(files: FileFormat, settings: Any, schema: pa.Schema) -> Exception | None:
    try:
        writer = files.writer(settings, cast(BinaryIO, pa.BufferOutputStream()), schema, compression="none")
        writer.write(pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema))
        writer.close()
    except (pa.ArrowException, TypeError) as error:
        return error
    return None


def is_local(fs: Any) -> bool:
    return isinstance(fs, LocalFileSystem)


def open_for_reading(fs: Any, path: str) -> BinaryIO:
    """The raw bytes of a file."""
    return Path(path).open("rb") if is_local(fs) else cast(BinaryIO, fs.open(path, "rb"))


def is_damage(error: BaseException) -> bool:
    """Whether an error of Arrow or of a decompressor is about the bytes; one of the storage has a number."""
    return isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and error.errno is None)
