"""Files that become visible only with the epoch they belong to: the first phase.

While an epoch runs, files are written below `_arroyo_staging/{job}.{operator}.{state}/{epoch}/` of
their folder, under names that no two attempts share. What is staged is only a list of names; moving
them to their final names is `arroyo_filesystem.commit`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from arroyo_core.api import Clock, TaskInfo
from arroyo_core.errors import Domain, ExternalError, RetryHint, StateError, naming_path
from arroyo_core.local_folders import make_closed_folder
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.location import Location, make_folder, sync_folder
from arroyo_filesystem.object_stores import is_object_store

STAGING_FOLDER = "_arroyo_staging"
#: Beside the folders of epochs: parts of files to come.
HELD_FOLDER = "held"
#: How often a staging folder that a commit just removed is made again.
OPEN_ATTEMPTS = 3


class StagedFile(msgspec.Struct, frozen=True):
    """A closed file that waits for its commit; both names are relative to the folder of the sink."""

    staged: str
    final: str
    rows: int
    size: int


class DamagedCommitError(StateError):
    """What a checkpoint has for a commit is not what a sink wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class StagedFiles(msgspec.Struct, frozen=True):
    """The commit data of a sink that also holds rows for later epochs."""

    files: list[StagedFile]
    #: What it holds, by names relative to its folder: all else that was held up to this epoch may go.
    held: list[str]


def encode_files(files: Sequence[StagedFile], held: Sequence[str] | None = None) -> bytes:
    """The list as commit data, with what is held, if anything may be."""
    return msgspec.json.encode(files if held is None else StagedFiles(list(files), list(held)))


def decode_files(data: bytes) -> list[StagedFile]:
    """The list from commit data; raises `DamagedCommitError`."""
    found = _decode(data)
    return found.files if isinstance(found, StagedFiles) else found


def decode_held(data: bytes) -> list[str] | None:
    """What is held, from commit data; None of a sink that holds nothing. Raises `DamagedCommitError`."""
    found = _decode(data)
    return found.held if isinstance(found, StagedFiles) else None


def _decode(data: bytes) -> list[StagedFile] | StagedFiles:
    try:
        return msgspec.json.decode(data, type=list[StagedFile] | StagedFiles)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCommitError(f"commit data are not a list of staged files: {error}") from error


def operator_folder(task_info: TaskInfo, state_id: str) -> str:
    """The staging folder of an operator: no other operator or job stages or cleans there.

    `state_id` is that of the operator's tables: it follows from the job's incarnation. A fork, and a job of the same
    name elsewhere, may write to the same folder and count the same epochs: by name alone, one would clean away what
    the other has staged.
    """
    return f"{STAGING_FOLDER}/{task_info.job_id}.{task_info.operator_id}.{state_id}"


#: The disk is told to write when there is so much more.
STORED_BYTES = 16 * 2**20
#: Not on macOS and Windows.
_HAS_ADVICE = hasattr(os, "posix_fadvise")


class StagedStream:
    """A file being written."""

    def __init__(self, location: Location, stream: BinaryIO, *, staged: str, final: str) -> None:
        self.stream = stream
        self._location = location
        self._staged = staged
        self._final = final
        #: Up to here the disk has been told to write.
        self._begun_bytes = 0

    @property
    def path(self) -> str:
        """Where the file is while it is staged."""
        return self._location.child(self._staged)

    def size(self) -> int:
        """Bytes written so far."""
        return self.stream.tell()

    def begin_storing(self) -> None:
        """Have the disk write what is there while more is made: else all of it would be waited for at the end."""
        size = self.stream.tell()
        if self._location.is_local and _HAS_ADVICE and size - self._begun_bytes >= STORED_BYTES:
            # The kernel starts to write pages that it is advised to drop; those that are not written yet it keeps.
            os.posix_fadvise(self.stream.fileno(), self._begun_bytes, size - self._begun_bytes, os.POSIX_FADV_DONTNEED)
            self._begun_bytes = size

    def close(self, rows: int) -> StagedFile:
        """Make the content durable; the checkpoint that names it comes after."""
        size = self.stream.tell()
        with naming_path(self.path):
            if self._location.is_local:
                self.stream.flush()
                os.fsync(self.stream.fileno())
            self.stream.close()
            if self._location.is_local:
                sync_folder(str(Path(self.path).parent))
        return StagedFile(self._staged, self._final, rows, size)

    def abort(self) -> None:
        """Give the file up; it is deleted, or else swept by a later commit."""
        try:
            self.stream.close()
            self._location.fs.rm_file(self.path)
        except (OSError, ExternalError):
            # The sweep at the next commit gets what is left.
            return


class Staging:
    """Begins files for one subtask in one epoch."""

    def __init__(self, location: Location, task_info: TaskInfo, epoch: int, clock: Clock, *, state_id: str) -> None:
        self._location = location
        self._task_index = task_info.task_index
        self._epoch = epoch
        self._clock = clock
        self._folder = f"{operator_folder(task_info, state_id)}/{epoch}"
        self._begun = 0

    def begin(self, names: FileNames, *, extension: str, folder: str = "") -> StagedStream:
        """A new file that will be `[folder/]name.extension`."""
        unique = uuid.uuid4().hex
        staged = f"{self._folder}/{self._task_index}-{unique}.{extension}"
        name = names.name(
            epoch=self._epoch,
            subtask=self._task_index,
            part=self._begun,
            unique=unique,
            folder=folder,
            now_us=self._clock.now_us(),
        )
        self._begun += 1
        stream = self._open(self._location.child(staged))
        final = f"{folder}/{name}.{extension}" if folder else f"{name}.{extension}"
        return StagedStream(self._location, stream, staged=staged, final=final)

    def begin_part(self) -> StagedStream:
        """A new file in a folder of its own, which no sweep of an epoch touches; it has no other name."""
        folder = f"{self._folder.rpartition('/')[0]}/{HELD_FOLDER}"
        name = f"{folder}/{self._epoch}-{self._task_index}-{uuid.uuid4().hex}.arrow"
        return StagedStream(self._location, self._open(self._location.child(name)), staged=name, final=name)

    def _open(self, path: str) -> BinaryIO:
        for attempt in range(OPEN_ATTEMPTS):
            try:
                return self._create(path)
            except (FileNotFoundError, FileExistsError):
                # The commit of the epoch before may remove the empty parent between two steps, also between those of
                # `mkdir`, which then says that there is something else than a folder.
                if attempt == OPEN_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _create(self, path: str) -> BinaryIO:
        if self._location.is_local:
            folder = Path(path).parent
            make_folder(folder.parent)
            # Nobody else reads rows that are not committed; the files themselves get the umask's mode, and keep it.
            if make_closed_folder(folder, Path(self._location.path)):
                sync_folder(str(folder.parent))
            return Path(path).open("wb", buffering=2**20)
        if not is_object_store(self._location.fs):
            self._location.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast(BinaryIO, self._location.fs.open(path, "wb"))
