"""Rows that wait until they make a file that is large enough, over epochs.

They are parts: files beside the staged ones, of Arrow's format, one for each partition and epoch. The state has a list
of them, in the table `held`, and is published with the epoch that wrote them; nobody else sees them. When there are
enough, or they are old, they are written as files of the sink, which are staged and committed as all others. A part
that is in no list any more goes with the commit: commit data name those that are.

So rows become visible as they do without it, by the commit of one epoch that has their file. A crash at any point
leaves the parts of the last checkpoint, and some that nobody knows, which the next commit sweeps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.errors import naming_path
from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.commit import LostFileError, is_own_folder
from arroyo_filesystem.folder_times import FolderTimes
from arroyo_filesystem.location import Location
from arroyo_filesystem.open_files import OpenFiles
from arroyo_filesystem.staging import HELD_FOLDER, StagedFile, StagedStream, Staging, operator_folder

HELD_TABLE = "held"
_RATIO = "ratio"
#: A file is to have this much more than its least size, by what is known of others.
MARGIN = 1.05


class HeldPart(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one partition that are held."""

    folder: str
    #: Relative to the folder of the sink.
    path: str
    rows: int
    size: int
    #: When the first of them was written.
    since_us: int

    @property
    def key(self) -> str:
        """In the table: a random name, and the number of the subtask that wrote it."""
        _, index, unique = self.path.rpartition("/")[2].removesuffix(".arrow").split("-")
        return f"{unique}-{index}"


@dataclass(slots=True)
class _OpenPart:
    stream: StagedStream
    writer: pa.ipc.RecordBatchFileWriter
    since_us: int
    rows: int = 0


class HeldRows:
    """What one subtask holds; one object serves all its epochs."""

    def __init__(
        self,
        tables: StateTables,
        task: TaskInfo,
        location: Location,
        schema: pa.Schema,
        *,
        min_file_bytes: int | None,
        max_hold_us: int,
        max_open: int,
        times: FolderTimes | None = None,
    ) -> None:
        """With no `min_file_bytes` nothing is held from now on, and what was held is released.

        Given the `times` of folders, a partition that the watermark has passed waits for nothing more.
        """
        self._task = task
        self._view = tables.get_partitioned_keyed_state(HELD_TABLE, self._owner, key_type=str)
        self._location = location
        self._schema = schema
        self._min_file_bytes = min_file_bytes
        self._max_hold_us = max_hold_us
        self._max_open = max_open
        self._times = times
        self._parts: dict[str, list[HeldPart]] = {}
        for key, value in self._view.get_all().items():
            if not key.startswith(_RATIO):
                part = msgspec.convert(value, HeldPart)
                self._parts.setdefault(part.folder, []).append(part)
        for parts in self._parts.values():
            parts.sort(key=lambda part: (part.since_us, part.path))
        #: Least recently written first.
        self._open: dict[str, _OpenPart] = {}
        self._has_held = bool(self._parts) or min_file_bytes is not None
        self._released_bytes = self._released_rows = 0

    @property
    def is_holding(self) -> bool:
        return self._min_file_bytes is not None

    @property
    def names(self) -> list[str] | None:
        """What is held, for the commit data; None where nothing ever was."""
        return [part.path for parts in self._parts.values() for part in parts] if self._has_held else None

    def write(self, folder: str, batch: pa.RecordBatch, files: OpenFiles, staging: Staging, *, now_us: int) -> None:
        """Hold rows of a partition; where there are enough of them, they go to a file with all that is held of it."""
        if not self.is_holding or files.is_open(folder):
            files.write(folder, batch)
            return
        if not batch.num_rows:
            return
        part = self._open.pop(folder, None) or self._begin(staging, now_us)
        self._open[folder] = part
        with naming_path(part.stream.path):
            part.writer.write_batch(batch)
        part.rows += batch.num_rows
        part.stream.begin_storing()
        if self._is_enough(folder):
            self._release(folder, files)

    def checkpoint(self, files: OpenFiles, *, now_us: int, watermark_us: int | None, is_last: bool) -> None:
        """Write down what is held; what waits for nothing more, and with `is_last` everything, goes to files."""
        for folder in list(self._open):
            self._close(folder)
        for folder, parts in list(self._parts.items()):
            is_old = now_us - min(part.since_us for part in parts) >= self._max_hold_us
            if is_last or is_old or self._is_over(folder, watermark_us) or self._is_enough(folder):
                self._release(folder, files)

    def note_files(self, files: Sequence[StagedFile]) -> None:
        """Learn from the files of the epoch how large they get of what was held."""
        rows = sum(file.rows for file in files)
        if rows and self._released_bytes:
            written = sum(file.size for file in files) / rows
            held = self._released_bytes / self._released_rows
            self._view.insert(f"{_RATIO}-{self._task.task_index}", written / held)
        self._released_bytes = self._released_rows = 0

    def abort(self) -> None:
        """Give up what the epoch has written."""
        while self._open:
            self._open.popitem()[1].stream.abort()

    def _owner(self, key: str) -> int:
        return int(key.partition("-")[2]) % self._task.parallelism

    def _begin(self, staging: Staging, now_us: int) -> _OpenPart:
        while len(self._open) >= self._max_open:
            self._close(next(iter(self._open)))
        stream = staging.begin_part()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        return _OpenPart(stream, pa.ipc.new_file(stream.stream, self._schema, options=options), now_us)

    def _close(self, folder: str) -> None:
        part = self._open.pop(folder)
        with naming_path(part.stream.path):
            part.writer.close()
        closed = part.stream.close(part.rows)
        held = HeldPart(folder, closed.staged, part.rows, closed.size, part.since_us)
        self._parts.setdefault(folder, []).append(held)
        self._view.insert(held.key, held)

    def _is_over(self, folder: str, watermark_us: int | None) -> bool:
        if self._times is None or watermark_us is None:
            return False
        return self._times.is_over(folder, watermark_us)

    def _is_enough(self, folder: str) -> bool:
        if self._min_file_bytes is None:
            return True
        held = sum(part.size for part in self._parts.get(folder, ()))
        if folder in self._open:
            held += self._open[folder].stream.size()
        ratio = self._view.get(f"{_RATIO}-{self._task.task_index}") or 1.0
        return held * ratio >= self._min_file_bytes * MARGIN

    def _release(self, folder: str, files: OpenFiles) -> None:
        if folder in self._open:
            self._close(folder)
        for part in self._parts.pop(folder):
            for batch in self._read(part):
                files.write(folder, batch)
            self._released_bytes += part.size
            self._released_rows += part.rows
            self._view.remove(part.key)

    def _read(self, part: HeldPart) -> Iterator[pa.RecordBatch]:
        path = self._location.child(part.path)
        try:
            stream = self._location.fs.open(path, "rb")
        except FileNotFoundError:
            raise LostFileError(
                f"{part.rows} rows were held in {part.path!r} of {self._location.url!r}, and the file is gone; was the "
                "folder cleared by hand, or does another job go on from the same checkpoint?"
            ) from None
        with contextlib.closing(stream), naming_path(path):
            reader = pa.ipc.open_file(stream)
            if not reader.schema.equals(self._schema):
                raise IncompatibleCheckpointError(
                    f"{part.rows} rows are held with the columns {', '.join(reader.schema.names)}, and now the sink "
                    f"writes {', '.join(self._schema.names)}: run the pipeline as it was, stop it, which writes all "
                    "that is held, and change it then"
                )
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)


def sweep_held(
    location: Location, task: TaskInfo, epoch: int, held: Mapping[int, Sequence[str]], *, state_id: str
) -> None:
    """Delete parts that were written up to `epoch` and that no subtask holds any more; may be repeated.

    Parts of later epochs are left alone: these may be running.
    """
    folder = f"{operator_folder(task, state_id)}/{HELD_FOLDER}"
    if not is_own_folder(location, folder):
        return
    kept = {name.rpartition("/")[2] for names in held.values() for name in names}
    try:
        found = location.fs.ls(location.child(folder), detail=False)
    except FileNotFoundError:
        return
    for path in found:
        name = path.rstrip("/").rpartition("/")[2]
        written = name.partition("-")[0]
        if name not in kept and written.isdecimal() and int(written) <= epoch:
            with contextlib.suppress(FileNotFoundError):
                location.fs.rm_file(location.child(f"{folder}/{name}"))
