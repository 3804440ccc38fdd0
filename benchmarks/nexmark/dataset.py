"""The events that every engine reads: made once, and kept for later runs of the same size.

A dataset is a folder with a folder for each table. Times in CSV files have milliseconds, not microseconds, since
not every engine that reads CSV knows more.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from arroyo_nexmark.rules import Kind, Rules
from arroyo_nexmark.tables import TABLES, make_batch

from .tasks import COMPRESSION

NAMES = ("bid", "auction", "person")
FORMATS = ("parquet", "csv", "csv_header")
PARQUET_FILES = 8
#: Whole cycles per batch, so that a batch is a run of event numbers.
BATCH_EVENTS = 50_000
#: Several row groups per file, so that every engine can share out the reading.
ROW_GROUP_ROWS = 262_144
_ROWS = "rows.json"


@dataclass(frozen=True, slots=True)
class Dataset:
    folder: Path
    events: int
    format: str = "parquet"

    def rows(self, *tables: str) -> int:
        """The rows of these tables together."""
        counts = json.loads((self.folder / _ROWS).read_text())
        return sum(int(counts[table]) for table in tables)

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for name in NAMES for path in (self.folder / name).iterdir())


def prepare(root: Path, events: int, *, format: str = "parquet") -> Dataset:
    """All tables of so many events, below `root`; what a killed run left half-made is made again."""
    if format not in FORMATS:
        raise ValueError(f"a dataset is one of {', '.join(FORMATS)}, not {format}")
    dataset = Dataset(root / f"{events}-events-{format}-v3", events, format)
    if not dataset.folder.exists():
        partial = dataset.folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        write = _write_parquet if format == "parquet" else _write_csv
        counts = {}
        for name in NAMES:
            (partial / name).mkdir(parents=True)
            counts[name] = write(partial / name, name, dataset)
        (partial / _ROWS).write_text(json.dumps(counts))
        partial.rename(dataset.folder)
    return dataset


def _batches(name: str, events: range) -> Iterator[pa.RecordBatch]:
    """The rows of the table among these events, with all their columns, in the order of time."""
    rules, table, kind = Rules(), TABLES[name], Kind[name.upper()]
    for start in range(events.start, events.stop, BATCH_EVENTS):
        numbers = np.arange(start, min(start + BATCH_EVENTS, events.stop), dtype=np.int64)
        numbers = numbers[rules.kinds(numbers) == kind]
        yield make_batch(table, table.schema, rules, numbers)


def _write_parquet(folder: Path, name: str, dataset: Dataset) -> int:
    """Some files, one after the other in time."""
    rows = 0
    for index in range(PARQUET_FILES):
        events = range(dataset.events * index // PARQUET_FILES, dataset.events * (index + 1) // PARQUET_FILES)
        rows += _write_parquet_file(folder / f"part-{index:02}.parquet", name, events)
    return rows


def _write_parquet_file(path: Path, name: str, events: range) -> int:
    rows = 0
    with pq.ParquetWriter(path, TABLES[name].schema, compression=COMPRESSION) as writer:
        pending: list[pa.RecordBatch] = []
        for batch in _batches(name, events):
            rows += batch.num_rows
            pending.append(batch)
            if sum(waiting.num_rows for waiting in pending) >= ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
    return rows


def _write_csv(folder: Path, name: str, dataset: Dataset) -> int:
    """One file: an engine that takes several files in any order would find the rows of some too late."""
    rows = 0
    schema = pa.schema([_csv_field(field) for field in TABLES[name].schema])
    options = pv.WriteOptions(include_header=dataset.format == "csv_header")
    with pv.CSVWriter(folder / "part-00.csv", schema, write_options=options) as writer:
        for batch in _batches(name, range(dataset.events)):
            rows += batch.num_rows
            writer.write_batch(_in_milliseconds(batch, schema))
    return rows


def _csv_field(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_timestamp(field.type) else field


def _in_milliseconds(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in batch.schema:
        column = batch[field.name]
        if pa.types.is_timestamp(field.type):
            moments = pc.floor_temporal(column.cast(pa.timestamp("us")), unit="millisecond").cast(pa.timestamp("ms"))
            column = pc.strftime(moments, format="%Y-%m-%d %H:%M:%S")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
