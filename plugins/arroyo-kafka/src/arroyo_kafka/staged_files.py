"""Files of dead letters, which become visible with the epoch they belong to.

While an epoch runs they are written below `_arroyo_staging/`, under names that no two attempts share. The commit gives
them their final names, which follow from the job's incarnation and the epoch; it may run again after a crash anywhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

import fsspec
import msgspec
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.api import OperatorContext
from arroyo_core.api.confined import check_local_file, check_relative
from arroyo_core.errors import Domain, ExternalError, RetryHint, StateError, UnsafePathError
from arroyo_core.local_folders import make_closed_folder

STAGING_FOLDER = "_arroyo_staging"


class StagedFile(msgspec.Struct, frozen=True):
    """A closed file that waits for its commit; both names are relative to the folder."""

    staged: str
    final: str


class LostFileError(StateError):
    """A file that was staged is gone; no retry brings it back."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class LetterFolder:
    """The folder of a source's dead letters, as one of its epochs sees it."""

    def __init__(self, url: str, ctx: OperatorContext) -> None:
        self._fs, self._path = fsspec.core.url_to_fs(url)
        task, token = ctx.task_info, ctx.token
        self._subtask = task.task_index
        self._epoch = token.epoch
        #: Of this operator alone: no other one stages or cleans there.
        self._staging = f"{STAGING_FOLDER}/{task.job_id}.{task.operator_id}.{ctx.table_manager.state_id}"
        own = re.escape(f"{STAGING_FOLDER}/{task.job_id}.{task.operator_id}")
        self._own_staged = re.compile(rf"{own}(\.[0-9a-z]+)?/[0-9]+/[0-9]+-[0-9a-f]{{32}}\.[a-z]+")
        self._own_final = re.compile(rf"{re.escape(task.operator_id)}-[^/]+-[0-9]{{5,}}-[0-9]{{3,}}\.[a-z]+")
        self._prefix = f"{task.operator_id}-{token.incarnation or ctx.table_manager.state_id}"

    def begin(self, extension: str) -> tuple[BinaryIO, StagedFile]:
        """A new file of this subtask; one for each epoch."""
        staged = f"{self._staging}/{self._epoch}/{self._subtask}-{uuid.uuid4().hex}.{extension}"
        final = f"{self._prefix}-{self._epoch:05}-{self._subtask:03}.{extension}"
        folder = self._child(staged).rpartition("/")[0]
        if isinstance(self._fs, LocalFileSystem):
            # Nobody else reads letters that are not committed.
            self._fs.makedirs(folder.rpartition("/")[0], exist_ok=True)
            make_closed_folder(Path(folder), Path(self._path))
        elif not _is_object_store(self._fs):
            self._fs.makedirs(folder, exist_ok=True)
        return cast(BinaryIO, self._fs.open(self._child(staged), "wb")), StagedFile(staged, final)

    def finish(self, stream: BinaryIO) -> None:
        """Make the content last; the checkpoint that names the file comes after."""
        if isinstance(self._fs, LocalFileSystem):
            stream.flush()
            os.fsync(stream.fileno())
        stream.close()

    def discard(self, file: StagedFile) -> None:
        with contextlib.suppress(OSError, ExternalError):
            self._fs.rm_file(self._child(file.staged))

    def commit(self, files: Iterable[StagedFile]) -> None:
        """Give every file its final name, then remove what dead attempts left of this epoch and earlier ones.

        Raises `UnsafePathError`, before anything is moved, where a name is not the operator's own.
        """
        files = list(files)
        for file in files:
            self._check(file)
        self._fs.invalidate_cache()
        for file in files:
            self._move(file)
        with contextlib.suppress(FileNotFoundError):
            for path in self._fs.ls(self._child(self._staging), detail=False):
                name = path.rstrip("/").rpartition("/")[2]
                if name.isdecimal() and int(name) <= self._epoch:
                    self._remove(path)

    def _check(self, file: StagedFile) -> None:
        """Commit data come from the checkpoint storage, where others may write."""
        for name in (file.staged, file.final):
            check_relative(name)
        # Not the ids of state and incarnation: what was staged may be committed under others.
        if not self._own_staged.fullmatch(file.staged) or not self._own_final.fullmatch(file.final):
            raise UnsafePathError(
                f"commit data would move {file.staged!r} to {file.final!r} in {self._path!r}: these are not dead "
                "letters of this operator. Nothing was moved. Who can write to the checkpoint URL besides this job?"
            )
        if isinstance(self._fs, LocalFileSystem):
            check_local_file(self._path, file.staged)

    def _move(self, file: StagedFile) -> None:
        staged, final = self._child(file.staged), self._child(file.final)
        try:
            self._fs.mv(staged, final)
        except FileNotFoundError:
            if not self._fs.exists(final):
                raise LostFileError(
                    f"cannot commit the dead letters {file.final!r}: they were staged as {staged!r}, and neither file "
                    "exists; has dead_letter changed since, or was the folder cleared by hand?"
                ) from None

    def _remove(self, path: str) -> None:
        # Another driver may be as tidy; what it leaves, the next commit takes.
        with contextlib.suppress(OSError):
            self._fs.rm(path, recursive=True)

    def _child(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


def _is_object_store(fs: Any) -> bool:
    """Whether there are no folders to make: on S3 that would be an attempt to make the bucket."""
    names = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return bool(names & {"s3", "s3a", "gs", "gcs", "abfs", "az"})
