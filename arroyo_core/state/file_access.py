"""`FileAccess`: how the tables of one subtask read and write their data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from arroyo_core.ids import KeyRange, TaskInfo
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import paths
from arroyo_core.state.cache import WarmCache
from arroyo_core.state.files import FileOrigin, ReadCounts, encode_file, read_file
from arroyo_core.state.storage import StorageProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """Storage and identity of one subtask; counts what was read."""

    storage: StorageProvider
    task_info: TaskInfo
    cache: WarmCache | None = None
    counts: ReadCounts = field(default_factory=ReadCounts)

    def read(self, file: StateFile, key_range: KeyRange, columns: Sequence[str] | None = None) -> pa.Table:
        """The live rows of `file` inside `key_range`, sorted by key hash; all columns, or the named ones."""
        return read_file(
            self.storage,
            file,
            job_id=self.task_info.job_id,
            key_range=key_range,
            counts=self.counts,
            cache=self.cache,
            columns=columns,
        )

    def write(
        self,
        table: pa.Table,
        *,
        table_name: str,
        epoch: int,
        state_version: int = 0,
        compaction_generation: int = 0,
        timestamp_column: str | None = None,
    ) -> StateFile:
        """Store a sorted, non-empty table as a new file of `epoch`; returns its reference."""
        task = self.task_info
        origin = FileOrigin(
            path=paths.table_file(task.job_id, epoch, task.operator_id, table_name, task.task_index),
            epoch=epoch,
            subtask_index=task.task_index,
            state_version=state_version,
            compaction_generation=compaction_generation,
            timestamp_column=timestamp_column,
        )
        encoded = encode_file(table, origin)
        self.storage.write(origin.path, encoded.data)
        if self.cache is not None:
            self.cache.put(encoded.facts, table)
        return encoded.facts
