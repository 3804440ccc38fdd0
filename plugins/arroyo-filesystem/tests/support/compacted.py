"""Output of sinks that is compacted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_filesystem.compaction import Compaction
from arroyo_filesystem.location import open_location

from arroyo_core.api import ArroyoSchema

SCHEMA = pa.schema({"n": pa.int64(), "k": pa.string()})
STREAM = ArroyoSchema(SCHEMA)
MIB = 2**20


def rows(*numbers: int, k: str = "a") -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([k] * len(numbers))], schema=SCHEMA)


def write(files: Any, folder: object, *epochs: pa.RecordBatch, **config: Any) -> None:
    """A file, or more, for each epoch."""
    with files.sink(folder, epochs[0].schema, **config) as harness:
        for batch in epochs:
            harness.process(batch)
            harness.commit(harness.checkpoint())
            harness.restore()


def compaction(folder: object, *, file_bytes: int = MIB, older_than_us: int = 0) -> Compaction:
    location = open_location(str(folder), {}, field="path")
    return Compaction(
        location, {}, file_bytes=file_bytes, older_than_us=older_than_us, now_us=time.time_ns() // 1000 + 10_000_000
    )


def shown(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*.*") if "/_" not in f"/{path.relative_to(folder)}"
    )
