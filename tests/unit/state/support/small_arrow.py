"""Arrow and files as if a column of some hundred bytes were one of 2 GiB."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.state import CompactionPolicy, chunks, expiring_time_key_map, files, global_keyed_map

from .state_job import EAGER_COMPACTION

SMALL_COMPACTION: CompactionPolicy = dataclasses.replace(EAGER_COMPACTION, max_file_bytes=200, max_merge_bytes=300)


def shrink_arrow(monkeypatch: pytest.MonkeyPatch, limit: int = 160) -> None:
    """What `take` must join, or gives, overflows above twice the limit; chunks, row groups and files are as small."""
    original = chunks._arrow_take

    def take(rows: Any, numbers: Any) -> Any:
        columns = rows.columns if hasattr(rows, "columns") else [rows]
        if any(_chunks(column) > 1 for column in columns) and rows.nbytes > 2 * limit:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        taken = original(rows, numbers)
        if taken.nbytes > 2 * limit and len(numbers) > 1:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return taken

    monkeypatch.setattr(chunks, "_arrow_take", take)
    monkeypatch.setattr(chunks, "MAX_CHUNK_BYTES", limit)
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", limit)
    monkeypatch.setattr(files, "_DECODED_AT_ONCE_BYTES", limit)
    monkeypatch.setattr(expiring_time_key_map, "PART_BYTES", limit)
    for module in (expiring_time_key_map, global_keyed_map):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", limit)


def _chunks(column: Any) -> int:
    return column.num_chunks if isinstance(column, pa.ChunkedArray) else 1
