"""The bids that every engine reads: made once, and kept for later runs of the same size."""

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


def prepare(root: Path, events: int) -> Dataset:
    """The dataset of this size below `root`; a folder that a killed run left half-made is made anew."""
    dataset = Dataset(root / f"bids-{events}-events-v1", events)
    if not dataset.folder.exists():
        partial = dataset.folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for index in range(FILES):
            _write_file(partial / f"part-{index:02}.parquet", events * index // FILES, events * (index + 1) // FILES)
        partial.rename(dataset.folder)
    return dataset


def _write_file(path: Path, first: int, last: int) -> None:
    """The bids among the events from `first` up to, not including, `last`, with all their columns."""
    rules, table = Rules(), TABLES["bid"]
    with pq.ParquetWriter(path, table.schema, compression=COMPRESSION) as writer:
        pending = []
        for start in range(first, last, BATCH_EVENTS):
            numbers = np.arange(start, min(start + BATCH_EVENTS, last), dtype=np.int64)
            numbers = numbers[rules.kinds(numbers) == Kind.BID]
            pending.append(make_batch(table, table.schema, rules, numbers))
            if sum(batch.num_rows for batch in pending) >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
