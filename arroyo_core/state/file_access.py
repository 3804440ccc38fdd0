"""`FileAccess`: how the tables of one subtask read and write their data files.

A remote store answers late but many at a time: files are then read and written side by side.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa

from arroyo_core.ids import KeyRange, TaskInfo
from arroyo_core.proto.state_pb2 import StagedFile, StateFile
from arroyo_core.state import paths
from arroyo_core.state.cache import Shelf
from arroyo_core.state.files import FileOrigin, ReadCounts, encode_file, read_file, slice_key_range
from arroyo_core.state.storage import StorageProvider

A = TypeVar("A")
T = TypeVar("T")


def default_file_pool() -> Executor:
    """The threads of this process that read and write files of state."""
    return _pool(os.getpid())


@lru_cache(maxsize=1)
def _pool(_pid: int) -> ThreadPoolExecutor:
    # A forked worker has none of its parent's threads, hence the process id.
    return ThreadPoolExecutor(16, thread_name_prefix="state-files")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """Storage and identity of one subtask; counts what was read."""

    storage: StorageProvider
    task_info: TaskInfo
    #: What reads and writes several files at once.
    pool: Executor = field(default_factory=default_file_pool)
    cache: Shelf | None = None
    #: Whether somebody may have changed files on purpose: no part of one is read without all of it being verified.
    is_sealed: bool = False
    #: Write in threads also where the store is a disk: several files wait for it together.
    is_concurrent: bool = False
    counts: ReadCounts = field(default_factory=ReadCounts)
    _writes: list[Future[None]] = field(default_factory=list)

    def for_each(self, items: Sequence[A], read: Callable[[A], T]) -> list[T]:
        """`read` of each file, or of what stands for it, in order."""
        if self.storage.is_remote and len(items) > 1:
            return list(self.pool.map(read, items))
        return [read(item) for item in items]

    def read(
        self,
        file: StateFile,
        key_range: KeyRange,
        columns: Sequence[str] | None = None,
        *,
        is_rewritten: bool = False,
    ) -> pa.Table:
        """The live rows of `file` inside `key_range`, sorted by key hash; all columns, or the named ones.

        `is_rewritten` says that they are to be stored again.
        """
        return read_file(
            self.storage,
            file,
            job_id=self.task_info.job_id,
            key_range=key_range,
            counts=self.counts,
            cache=self.cache,
            columns=columns,
            is_rewritten=is_rewritten,
            is_sealed=self.is_sealed,
        )

    def rewriter(self, file: StateFile) -> Callable[[KeyRange], pa.Table]:
        """What reads parts of `file` that are to be stored again; what this host has of it is opened once for all."""
        whole = self.cache.get(file, file.live_key_start, file.live_key_end, is_checked=True) if self.cache else None
        if whole is None:
            return lambda key_range: self.read(file, key_range, is_rewritten=True)
        self.counts.add(cache_hits=1)
        start, end = file.live_key_start, file.live_key_end
        return lambda key_range: slice_key_range(whole, max(start, key_range.start), min(end, key_range.end))

    def write(
        self,
        table: pa.Table,
        *,
        table_name: str,
        epoch: int,
        state_version: int = 0,
        compaction_generation: int = 0,
        timestamp_column: str | None = None,
        is_kept_warm: bool = True,
        part: int = 0,
    ) -> StateFile:
        """Store a sorted, non-empty table as a new file of `epoch`; returns its reference.

        The file is durable when what `take_writes` gives has been waited for.
        """
        task = self.task_info
        origin = FileOrigin(
            path=paths.table_file(task.job_id, epoch, task.operator_id, table_name, task.task_index),
            epoch=epoch,
            subtask_index=task.task_index,
            state_version=state_version,
            compaction_generation=compaction_generation,
            timestamp_column=timestamp_column,
            part=part,
        )
        encoded = encode_file(table, origin)
        self._store(origin.path, encoded.data)
        if self.cache is not None and is_kept_warm:
            self.cache.put(encoded.facts, table)
        return encoded.facts

    def stage(self, data: bytes, *, table_name: str, epoch: int) -> StagedFile:
        """Store commit data in a file of its own; durable as with `write`."""
        task = self.task_info
        path = paths.staged_file(task.job_id, epoch, task.operator_id, table_name, task.task_index)
        self._store(path, data)
        return StagedFile(path=path, size_bytes=len(data), checksum=hashlib.sha256(data).digest())

    def _store(self, path: str, data: bytes | memoryview) -> None:
        if self.storage.is_remote or self.is_concurrent:
            self._writes.append(self.pool.submit(self.storage.write, path, data))
        else:
            self.storage.write(path, data)

    def take_writes(self) -> Callable[[], None]:
        """What waits until all that was written so far is stored, and raises what the first failed write raised."""
        writes = self._writes.copy()
        self._writes.clear()

        def wait() -> None:
            for write in writes:
                write.result()

        return wait
