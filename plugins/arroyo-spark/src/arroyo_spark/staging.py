"""Rows of an epoch as Parquet files that wait for their commit."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.api import TaskInfo
from arroyo_core.errors import StateError, UnsafePathError

#: In the folder of an epoch that Spark has written.
WRITTEN = "_written"
_NAME = re.compile(r"[0-9]+-[0-9a-f]{32}\.parquet")


class StagedRows:
    """What one subtask stages in one epoch: one file, which is made with the first row."""

    def __init__(self, folder: str, task: TaskInfo, epoch: int, *, state_id: str, schema: pa.Schema) -> None:
        # No two attempts share a name.
        name = f"{task.task_index}-{uuid.uuid4().hex}.parquet"
        self._url = f"{epoch_folder(folder, task, epoch, state_id=state_id)}/{name}"
        self._schema = schema
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            filesystem, path = fsspec.core.url_to_fs(self._url)
            filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._file = filesystem.open(path, "wb")
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        self._writer.write_batch(batch)

    def close(self) -> list[str]:
        """The files that are complete now."""
        if self._writer is None:
            return []
        self._writer.close()
        self._file.close()
        return [self._url]

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._file.close()


def epoch_folder(folder: str, task: TaskInfo, epoch: int, *, state_id: str) -> str:
    """No other operator, job or incarnation stages there."""
    return f"{folder.rstrip('/')}/{task.job_id}.{task.operator_id}.{state_id}/{epoch}"


def encode(urls: Sequence[str], *, is_first: bool) -> bytes:
    return json.dumps({"files": list(urls), "is_first": is_first}).encode()


def decode(parts: Iterable[bytes], folder: str) -> tuple[list[str], bool]:
    """The files of all subtasks, and whether theirs is the first epoch; raises `StateError` for anything else.

    `folder` is that of the epoch. Raises `UnsafePathError` for files elsewhere: commit data are read from the
    checkpoint storage, others may write there, and Spark would bring whatever file they name into the table.
    """
    files: list[str] = []
    is_first = False
    for part in parts:
        try:
            found = json.loads(part)
            files += [str(url) for url in found["files"]]
            is_first = is_first or bool(found["is_first"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"commit data are not what spark.sink stages: {error}") from error
    for url in files:
        if not (url.startswith(f"{folder}/") and _NAME.fullmatch(url.removeprefix(f"{folder}/"))):
            raise UnsafePathError(
                f"commit data would write {url[:200]!r} to the table, which spark.sink did not stage below {folder}; "
                "nothing was written. Has the setting staging or the checkpoint URL been changed before its epoch was "
                "committed? If not, who can write to the checkpoint URL besides this job?"
            )
    return files, is_first


class EpochFiles:
    """The staged files of an epoch, and the note that Spark has written them.

    The note outlives the files until the next epoch is committed: who replays the commit needs it.
    """

    def __init__(self, folder: str, task: TaskInfo, epoch: int, *, state_id: str) -> None:
        self._fs, self._path = fsspec.core.url_to_fs(epoch_folder(folder, task, epoch, state_id=state_id))
        self._epoch = epoch

    @property
    def is_written(self) -> bool:
        return bool(self._fs.exists(f"{self._path}/{WRITTEN}"))

    def note_written(self) -> None:
        """After Spark's write, and before anything is deleted."""
        self._fs.makedirs(self._path, exist_ok=True)
        self._fs.pipe_file(f"{self._path}/{WRITTEN}", b"")

    def clean(self) -> None:
        """Delete the files of the epoch, also those that failed attempts left, and all of the epochs before."""
        above = self._path.rpartition("/")[0]
        for found in self._fs.ls(above, detail=False):
            name = found.rstrip("/").rpartition("/")[2]
            if name.isdigit() and int(name) < self._epoch:
                self._fs.rm(found, recursive=True)
        for found in self._fs.ls(self._path, detail=False):
            if not found.endswith(WRITTEN):
                self._fs.rm(found)


def spark_url(url: str) -> str:
    """As Spark names the file: its default filesystem need not be the local one, and S3 is `s3a` there."""
    if "://" not in url:
        return f"file://{url}"
    return "s3a://" + url.removeprefix("s3://") if url.startswith("s3://") else url
