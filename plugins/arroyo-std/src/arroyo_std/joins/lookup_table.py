"""Tables that rows are looked up in: read as a whole, from files or otherwise, indexed by key, kept in the process."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.api import LookupSource, LookupTable
from arroyo_core.api.hashing import Hashes, hash_columns
from arroyo_core.api.policy import current_policy
from arroyo_core.api.units import format_bytes
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_core.state import take_in_parts
from arroyo_std.columns import check_column, check_unique, nearest, normal_type
from arroyo_std.joins.layout import Mask, Rows
from arroyo_std.joins.pairs import Ranges
from arroyo_std.joins.table_bounds import check_json, folded_schema, text_columns, unfold, unfolded_bytes
from arroyo_std.large_rows import batches_of, shrink, take

#: Tables that one process keeps; the one that was read first goes.
CACHED_TABLES = 16

_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


class TableFormat(StrEnum):
    """How the files of a table are written."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(LookupTable):
    """A table in files. Storage options may hold secrets, and are not shown."""

    path: str
    format: TableFormat
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    columns: tuple[str, ...] = ()
    #: Whether an empty value of a CSV column of texts is an empty text, and not NULL.
    empty_as_text: bool = False

    def name(self) -> str:
        return self.path

    def cache_key(self) -> Hashable:
        return self

    def schema(self) -> pa.Schema:
        """The columns in plain types, read from the files.

        Raises `ConfigError` if there are not these columns, `ExternalError` where the files cannot be read.
        """
        current_policy().check_url(self.path, field="table.path")
        try:
            found = self._dataset().schema
        except (OSError, ValueError, ImportError) as error:
            raise ExternalError(f"cannot read the table {self.path!r}: {error}") from error
        for position, name in enumerate(self.columns):
            check_column(name, found.names, field=f"table.columns[{position}]")
        check_unique(self.columns, field="table.columns")
        names = self.columns or found.names
        return pa.schema([pa.field(name, normal_type(found.field(name).type)) for name in names])

    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        """All rows, in the types of `schema`.

        Raises `DataError` for a table that is too large or has lost a column, `ExternalError` where it cannot be read.
        """
        try:
            dataset = self._dataset(folded=text_columns(schema))
            missing = [name for name in schema.names if name not in dataset.schema.names]
            if missing:
                raise DataError(
                    f"the table {self.path!r} had a column {missing[0]!r} when the pipeline was planned, and has none "
                    f"now; it has {', '.join(dataset.schema.names)}"
                )
            return self._read_batches(dataset, schema, max_bytes)
        except (OSError, ValueError) as error:
            # Arrow's errors are of these kinds, too.
            raise ExternalError(f"cannot read the table {self.path!r}: {error}") from error

    def _read_batches(self, dataset: Any, schema: pa.Schema, max_bytes: int) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        size = 0
        for batch in dataset.replace_schema(folded_schema(schema, dataset.schema)).to_batches(columns=schema.names):
            size += unfolded_bytes(batch)
            if size > max_bytes:
                # Before all of it is in memory: that is what the limit is for.
                raise DataError(
                    f"the table {self.path!r} is larger than cache.max_bytes, {format_bytes(max_bytes)}: "
                    "raise it, or take fewer columns"
                )
            batches.append(unfold(batch, schema))
        return pa.Table.from_batches(batches, schema=schema)

    def _dataset(self, folded: Sequence[str] = ()) -> Any:
        """The files; of Parquet the columns `folded` as dictionaries: a text may be stored once for a million rows."""
        import fsspec
        import pyarrow.dataset
        import pyarrow.fs

        filesystem, path = fsspec.core.url_to_fs(self.path, **dict(self.storage_options))
        # A listing that a file system remembers would hide what has changed.
        filesystem.invalidate_cache()
        if self.format is TableFormat.JSON:
            check_json(filesystem, path)
        handler = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(filesystem))
        return pyarrow.dataset.dataset(path, filesystem=handler, format=self._file_format(folded))

    def _file_format(self, folded: Sequence[str]) -> Any:
        import pyarrow.csv
        import pyarrow.dataset

        if self.format is TableFormat.PARQUET:
            return pyarrow.dataset.ParquetFileFormat(dictionary_columns=set(folded))
        if self.format is not TableFormat.CSV:
            return str(self.format)
        # As the csv format of connectors reads it: nothing but an empty value is NULL.
        options = pyarrow.csv.ConvertOptions(
            null_values=[""], strings_can_be_null=not self.empty_as_text, quoted_strings_can_be_null=False
        )
        return pyarrow.dataset.CsvFileFormat(convert_options=options)


def derive_format(path: str) -> TableFormat:
    """The format that the ending of a path says; raises `ConfigError` if it says none."""
    name = path.rsplit("/", 1)[-1]
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    if ending not in _ENDINGS:
        raise ConfigError(
            f"the ending of {path!r} does not say how it is written: give 'format'",
            field="table.format",
            allowed=[*TableFormat],
            suggestion=nearest(ending[1:], [*TableFormat]) if ending else None,
        )
    return TableFormat(_ENDINGS[ending])


class LookupIndex:
    """Rows of a table sorted by the hash of their keys; rows with a NULL key are left out."""

    def __init__(self, table: pa.Table, keys: Sequence[str]) -> None:
        rows = shrink(table.replace_schema_metadata(None))
        parts = batches_of(rows)
        hashes = np.concatenate([hash_columns([part.column(key) for key in keys]) for part in parts])
        has_null = np.concatenate([_has_null(part, keys) for part in parts])
        kept = np.flatnonzero(~has_null)
        order = kept[np.argsort(hashes[kept], kind="stable")]
        #: In a batch, or in a table where one could not hold them.
        self.rows = take(rows, order)
        self._hashes: Hashes = hashes[order]

    def take(self, names: Sequence[str], numbers: Rows) -> list[Any]:
        """Some columns of some rows, in any order and any number of times."""
        if isinstance(self.rows, pa.Table):
            return list(take_in_parts(self.rows.select(names), numbers).columns)
        wanted = pa.array(numbers)
        return [self.rows.column(name).take(wanted) for name in names]

    def find(self, columns: Sequence[pa.Array]) -> Ranges:
        """For each key the rows of the same hash, which are rows of the same key but for one in many billions."""
        hashes = hash_columns(columns)
        first = np.searchsorted(self._hashes, hashes, side="left")
        return Ranges(first, np.searchsorted(self._hashes, hashes, side="right") - first)


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table in memory, and when it was read."""

    index: LookupIndex
    loaded_us: int


class TableCache:
    """The tables of one process: shared by its subtasks and epochs, each read again when it is too old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[Hashable, LoadedTable] = {}
        self._schemas: dict[Hashable, tuple[pa.Schema, int]] = {}

    def schema(self, source: LookupSource, *, now_us: int, ttl_us: int) -> pa.Schema:
        """The columns of the table as they were not more than `ttl_us` ago."""
        key = source.cache_key()
        with self._lock:
            known = self._schemas.pop(key, None)
            if known is None or not 0 <= now_us - known[1] < ttl_us:
                known = (source.schema(), now_us)
            self._schemas[key] = known
            while len(self._schemas) > CACHED_TABLES:
                del self._schemas[next(iter(self._schemas))]
            return known[0]

    def get(
        self, source: LookupTable, schema: pa.Schema, keys: tuple[str, ...], *, now_us: int, ttl_us: int, max_bytes: int
    ) -> LoadedTable:
        """The table as it was not more than `ttl_us` ago."""
        key = (source.cache_key(), keys, schema.to_string(), max_bytes)
        # One reader at a time: subtasks that need the same table then find it.
        with self._lock:
            known = self._tables.get(key)
            if known is not None and 0 <= now_us - known.loaded_us < ttl_us:
                return known
            self._tables.pop(key, None)
            loaded = LoadedTable(LookupIndex(_read(source, schema, max_bytes), keys), now_us)
            self._tables[key] = loaded
            while len(self._tables) > CACHED_TABLES:
                del self._tables[next(iter(self._tables))]
            return loaded


#: What operators use: an operator lives for one epoch, the process for many.
PROCESS_CACHE = TableCache()


def table_source(
    *,
    path: str,
    table_format: TableFormat | None,
    storage_options: Mapping[str, str],
    columns: Sequence[str],
    empty_as_text: bool = False,
) -> TableSource:
    """The table of a config; raises `ConfigError`."""
    chosen = table_format or derive_format(path)
    if empty_as_text and chosen is not TableFormat.CSV:
        raise ConfigError(f"only csv has empty values, and the table is {chosen}", field="table.empty_as_text")
    return TableSource(
        path=path,
        format=chosen,
        storage_options=tuple(sorted(storage_options.items())),
        columns=tuple(columns),
        empty_as_text=empty_as_text,
    )


def _read(source: LookupTable, schema: pa.Schema, max_bytes: int) -> pa.Table:
    """The rows in the types of `schema`, whatever a lookup has them in."""
    found = source.read(schema, max_bytes)
    try:
        return found if found.schema.equals(schema) else found.select(schema.names).cast(schema)
    except (KeyError, ValueError) as error:
        raise DataError(
            f"the rows of the table {source.name()!r} are not what the pipeline was planned with: {error}"
        ) from error


def _has_null(rows: pa.RecordBatch, keys: Sequence[str]) -> Mask:
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    for key in keys:
        found |= rows.column(key).is_null().to_numpy(zero_copy_only=False)
    return found
