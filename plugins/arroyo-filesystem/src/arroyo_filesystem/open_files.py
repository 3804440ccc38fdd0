"""The files a sink writes at the same time: one per partition, rolled by size, bounded in number and memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa
from arroyo_formats import FileWriter

from arroyo_core.errors import DataError, naming_path
from arroyo_filesystem.partitions import SHOWN_CHARACTERS
from arroyo_filesystem.sink_settings import WrittenFiles
from arroyo_filesystem.staging import StagedFile, StagedStream, Staging

#: Rows held back for larger row groups, over all open files.
MAX_BUFFERED_BYTES = 256 * 2**20


@dataclass(slots=True)
class _OpenFile:
    stream: StagedStream
    writer: FileWriter
    rows: int = 0


class OpenFiles:
    """Writes rows to staged files; `close` gives the list of all of them."""

    def __init__(
        self,
        staging: Staging,
        written: WrittenFiles,
        schema: pa.Schema,
        *,
        max_file_bytes: int,
        max_file_rows: int | None = None,
        max_open: int,
        max_folders: int,
    ) -> None:
        self._staging = staging
        self._written = written
        self._schema = schema
        self._max_file_bytes = max_file_bytes
        self._max_file_rows = max_file_rows
        self._max_open = max_open
        self._max_folders = max_folders
        #: All that rows of this epoch are in; what was held for longer counts no more.
        self._folders: set[str] = set()
        #: Least recently written first.
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()
        self._closed: list[StagedFile] = []
        #: What all writers hold together; kept along, because counting it at each write would be quadratic.
        self._buffered_bytes = 0

    def write(self, folder: str, batch: pa.RecordBatch) -> None:
        """Append rows to the file of a partition, beginning or ending files as needed."""
        while batch.num_rows:
            begun = self._open.get(folder)
            room = batch.num_rows
            if self._max_file_rows is not None:
                room = self._max_file_rows - (begun.rows if begun else 0)
            self._append(folder, batch.slice(0, room))
            batch = batch.slice(room)

    def count_folder(self, folder: str) -> None:
        """Note that rows of this epoch are in a partition; raises `DataError` for one more than there may be."""
        self._folders.add(folder)
        if len(self._folders) > self._max_folders:
            raise DataError(
                f"partition_by makes more than {self._max_folders} folders in one epoch, of one subtask, such as "
                f"{folder[:SHOWN_CHARACTERS]!r}: choose columns with fewer values, or raise max_partitions"
            )

    def is_open(self, folder: str) -> bool:
        """Whether a file of a partition is begun."""
        return folder in self._open

    def _append(self, folder: str, batch: pa.RecordBatch) -> None:
        file = self._open.get(folder) or self._begin(folder)
        self._open.move_to_end(folder)
        held = file.writer.buffered_bytes()
        with naming_path(file.stream.path):
            file.writer.write(batch)
            file.rows += batch.num_rows
            # A row group is not worth more than the file it is to fill.
            if file.writer.buffered_bytes() >= self._max_file_bytes and not self._written.sort_by:
                file.writer.flush()
        self._buffered_bytes += file.writer.buffered_bytes() - held
        if self._is_full(file):
            self._end(folder)
        else:
            file.stream.begin_storing()
        if self._buffered_bytes > MAX_BUFFERED_BYTES:
            self._flush_largest()

    def close(self) -> list[StagedFile]:
        """End every file; the files of this epoch in the order they were ended."""
        for folder in list(self._open):
            self._end(folder)
        closed, self._closed = self._closed, []
        self._folders.clear()
        return closed

    def abort(self) -> None:
        """Give up every open file."""
        while self._open:
            self._open.popitem()[1].stream.abort()

    def _is_full(self, file: _OpenFile) -> bool:
        if self._max_file_rows is not None and file.rows >= self._max_file_rows:
            return True
        # What is to be sorted is written when the file ends.
        size = file.writer.buffered_bytes() if self._written.sort_by else file.stream.size()
        return size >= self._max_file_bytes

    def _begin(self, folder: str) -> _OpenFile:
        while len(self._open) >= self._max_open:
            self._end(next(iter(self._open)))
        stream = self._staging.begin(self._written.names, extension=self._written.extension, folder=folder)
        file = _OpenFile(stream, self._written.writer(stream.stream, self._schema))
        self._open[folder] = file
        return file

    def _end(self, folder: str) -> None:
        file = self._open[folder]
        self._buffered_bytes -= file.writer.buffered_bytes()
        with naming_path(file.stream.path):
            file.writer.close()
        self._closed.append(file.stream.close(file.rows))
        del self._open[folder]

    def _flush_largest(self) -> None:
        folder, largest = max(self._open.items(), key=lambda item: item[1].writer.buffered_bytes())
        if self._written.sort_by:
            self._end(folder)
            return
        self._buffered_bytes -= largest.writer.buffered_bytes()
        with naming_path(largest.stream.path):
            largest.writer.flush()
