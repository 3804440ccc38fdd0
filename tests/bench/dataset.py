"""The events that every engine reads: made once, and kept for later runs of the same size."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_nexmark.rules import Kind, Rules
from arroyo_nexmark.tables import TABLES, make_batch
from cases import COMPRESSION

FILES = 8
#: Whole cycles per batch, so that a batch is a run of event numbers.
BATCH_EVENTS = 50_000
#: Several row groups per file, so that every engine can share out the reading.
ROW_GROUP_ROWS = 262_144


@dataclass(frozen=True, slots=True)
class Dataset:
    folder: Path
    events: int

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def rows(self) -> int:
        return sum(pq.read_metadata(path).num_rows for path in self.files)

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.files)


def prepare(root: Path, events: int, *, table: str = "bid") -> Dataset:
    """The rows of a table among so many events, below `root`; what a killed run left half-made is made anew."""
    dataset = Dataset(root / f"{table}s-{events}-events-v1", events)
    if not dataset.folder.exists():
        partial = dataset.folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for index in range(FILES):
            events_of_file = range(events * index // FILES, events * (index + 1) // FILES)
            _write_file(partial / f"part-{index:02}.parquet", table, events_of_file)
        partial.rename(dataset.folder)
    return dataset


def _write_file(path: Path, name: str, events: range) -> None:
    """The rows of the table among these events, with all their columns."""
    rules, table, kind = Rules(), TABLES[name], Kind[name.upper()]
    with pq.ParquetWriter(path, table.schema, compression=COMPRESSION) as writer:
        pending = []
        for start in range(events.start, events.stop, BATCH_EVENTS):
            numbers = np.arange(start, min(start + BATCH_EVENTS, events.stop), dtype=np.int64)
            numbers = numbers[rules.kinds(numbers) == kind]
            pending.append(make_batch(table, table.schema, rules, numbers))
            if sum(batch.num_rows for batch in pending) >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
