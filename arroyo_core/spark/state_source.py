"""State tables as DataFrames: `spark.read.format("arroyo_state")`, after `spark.dataSource.register(StateSource)`.

A table is read as a restart would read it: deletes applied, one row for each key. Partitions are ranges of key hashes:
each reads the files that have some of its keys, and all that is known of one key is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError, SetupError
from arroyo_core.ids import key_range
from arroyo_core.spark.column_types import spark_schema
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import find_jobs, read_table, summarize_tables

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.types import StructType
except ImportError as error:
    import pyspark

    raise SetupError(
        f"state as a DataFrame needs the Python data sources of Spark 4.0 or newer, and this is {pyspark.__version__}: "
        "write it with `arroyo state cat URL OPERATOR.TABLE --format parquet --output FILE`, and read the file"
    ) from error

NAME = "arroyo_state"
#: A table is read in as many partitions as it has files, up to these.
MOST_PARTITIONS = 64
_OPTIONS = ("path", "url", "job", "epoch", "table")
#: What Spark has no type for, and what has room for all its values.
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.time64("us"): pa.int64(),
    pa.timestamp("s", "UTC"): pa.timestamp("us", "UTC"),
    pa.timestamp("ms", "UTC"): pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "UTC"): pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Which table of which checkpoint."""

    url: str
    job: str
    epoch: int
    operator: str
    table: str
    files: int

    def read(self, number: int, count: int) -> pa.Table:
        backend = ParquetBackend(get_storage_provider(self.url), self.job)
        metadata = backend.load_checkpoint_metadata(self.job, self.epoch)
        rows = read_table(backend.storage, metadata, self.operator, self.table, within=key_range(number, count))
        return rows.cast(pa.schema([field.with_type(_WIDER.get(field.type, field.type)) for field in rows.schema]))


@dataclass
class _Part(InputPartition):  # type: ignore[misc]
    """One of `count` ranges of key hashes."""

    place: _Place
    number: int
    count: int


class StateSource(DataSource):  # type: ignore[misc]
    """Options: `path` or `url` of the checkpoints, `table` as `node.table`; `job`, where there are several; `epoch`,
    by default the latest."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        place = find_place(dict(self.options))
        return spark_schema(place.read(0, MOST_PARTITIONS).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(find_place(dict(self.options)))


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, place: _Place) -> None:
        self._place = place

    def partitions(self) -> list[InputPartition]:
        count = max(1, min(self._place.files, MOST_PARTITIONS))
        return [_Part(self._place, number, count) for number in range(count)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        yield from partition.place.read(partition.number, partition.count).to_batches()


def find_place(options: dict[str, str]) -> _Place:
    """The table that the options name; raises `ConfigError` saying what there is."""
    unknown = sorted(name for name in options if name.lower() not in _OPTIONS)
    if unknown:
        raise ConfigError(f"{NAME} has no option {unknown[0]!r}", field=unknown[0], allowed=_OPTIONS)
    given = {name.lower(): value for name, value in options.items()}
    url = given.get("url") or given.get("path")
    if not url:
        raise ConfigError(f"{NAME} needs the place of the checkpoints: load('./state'), or option('url', ...)")
    storage = get_storage_provider(url)
    job = given.get("job") or _only_job(url, find_jobs(storage))
    backend = ParquetBackend(storage, job)
    epochs = backend.list_epochs()
    epoch = _epoch(given.get("epoch"), job, epochs)
    metadata = backend.load_checkpoint_metadata(job, epoch)
    tables = {f"{item.operator}.{item.table}": item for item in summarize_tables(metadata)}
    found = tables.get(given.get("table", ""))
    if found is None:
        known = ", ".join(sorted(tables)) or "none"
        asked = f"no table {given['table']!r}" if "table" in given else "the option 'table' is needed"
        raise ConfigError(f"job {job!r}, epoch {epoch}: {asked} (tables: {known})", field="table")
    return _Place(url, job, epoch, found.operator, found.table, found.files)


def _only_job(url: str, jobs: list[str]) -> str:
    if len(jobs) == 1:
        return jobs[0]
    if not jobs:
        raise ConfigError(f"{url} has no checkpoints of any job", field="url", value=url)
    raise ConfigError(f"{url} has several jobs: name one with option('job', ...) ({', '.join(jobs)})", field="job")


def _epoch(asked: str | None, job: str, epochs: list[int]) -> int:
    if not epochs:
        raise ConfigError(f"job {job!r} has no checkpoints", field="job", value=job)
    if asked is None:
        return epochs[-1]
    if not asked.isdigit() or int(asked) not in epochs:
        known = ", ".join(map(str, epochs))
        raise ConfigError(f"job {job!r} has no checkpoint {asked} (it has: {known})", field="epoch", value=asked)
    return int(asked)
