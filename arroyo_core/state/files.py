"""Data files: sorted runs of rows as Parquet, with checksums and facts for pruning.

A file is Zstd Parquet, sorted by `_key_hash`, with statistics on key hash and event time per row
group. Rows of one key keep their order. A reader that needs all of a file checks the file's
SHA-256; one that needs a part checks the footer's, which the page checksums then extend to the pages. That finds
damage, and not what somebody changed on purpose: where metadata is sealed, every reader verifies all of a file.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arroyo_core.ids import MAX_KEY_HASH, KeyRange
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state.cache import Shelf
from arroyo_core.state.chunks import combine, cut_rows, take_rows
from arroyo_core.state.config import KEY_HASH_COLUMN, OPERATION_COLUMN
from arroyo_core.state.failures import DamagedStateError, MissingFileError
from arroyo_core.state.fitting import source_columns
from arroyo_core.state.limits import STATE_FILE_BYTES
from arroyo_core.state.messages import OperationCode
from arroyo_core.state.paths import check_reference
from arroyo_core.state.storage import StorageProvider

ROW_GROUP_ROWS = 128 * 1024
#: And so many bytes in memory, at most, unless one row has more.
ROW_GROUP_BYTES = 64 * 2**20
#: Below this size one whole read is cheaper than the three that reading a part takes.
WHOLE_READ_BYTES = 256 * 1024
#: From this size on a file's checksum is computed while the file is being decoded.
PARALLEL_VERIFY_BYTES = 4 * 1024 * 1024
#: What a file holds in memory, at most: it is encoded there, and each reader decodes it there.
MAX_FILE_BYTES = 256 * 2**20
#: Row groups of more bytes, all together, are decoded one by one.
_DECODED_AT_ONCE_BYTES = 2**29
VERSION_KEY = b"version"
FORMAT_KEY = b"arroyo_core.state_format"
FORMAT = b"1"

Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class ReadCounts:
    """What restoring opened and read; tests and metrics look at it."""

    files_opened: int = 0
    row_groups_read: int = 0
    cache_hits: int = 0
    rows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, files_opened: int = 0, row_groups_read: int = 0, cache_hits: int = 0, rows: int = 0) -> None:
        """Count; files of one table may be read by several threads."""
        with self._lock:
            self.files_opened += files_opened
            self.row_groups_read += row_groups_read
            self.cache_hits += cache_hits
            self.rows += rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """The facts of a new file that its rows do not tell."""

    path: str
    epoch: int
    subtask_index: int
    state_version: int = 0
    compaction_generation: int = 0
    timestamp_column: str | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A data file before it is stored."""

    facts: StateFile
    data: memoryview = field(repr=False)


def sort_by_key_hash(table: pa.Table) -> pa.Table:
    """The rows by key hash; rows of one hash keep their order."""
    hashes = key_hashes(table)
    if len(hashes) < 2 or bool(np.all(hashes[:-1] <= hashes[1:])):
        return table
    return take_rows(table, np.argsort(hashes, kind="stable"))


def key_hashes(table: pa.Table) -> Hashes:
    """The `_key_hash` column, without a copy where it is one chunk."""
    column = table.column(KEY_HASH_COLUMN)
    if column.num_chunks == 1:
        found: Hashes = column.chunk(0).to_numpy()
    else:
        found = column.to_numpy().astype(np.uint64, copy=False)
    return found


def key_range_parts(hashes: Hashes, max_rows: int) -> Iterator[slice]:
    """Sorted hashes in parts of about `max_rows`; all rows of one hash are in one part."""
    start = 0
    while start < len(hashes):
        end = min(start + max_rows, len(hashes))
        end = int(np.searchsorted(hashes, hashes[end - 1], side="right"))
        yield slice(start, end)
        start = end


def encode_file(table: pa.Table, origin: FileOrigin) -> EncodedFile:
    """A sorted, non-empty table as a Parquet file in memory, with its facts."""
    hashes = key_hashes(table)
    sink = pa.BufferOutputStream()
    metadata = dict(table.schema.metadata or {})
    metadata |= {VERSION_KEY: str(origin.state_version).encode(), FORMAT_KEY: FORMAT}
    stored = table.replace_schema_metadata(metadata)
    statistics = [KEY_HASH_COLUMN, *([origin.timestamp_column] if origin.timestamp_column else [])]
    with pq.ParquetWriter(
        sink,
        stored.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[field.name for field in stored.schema if _repeats(field)],
        # Sorted hashes differ by little: the fuller a file, the fewer bits each takes.
        column_encoding={KEY_HASH_COLUMN: "DELTA_BINARY_PACKED"},
        write_statistics=statistics,
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(stored.schema.get_field_index(KEY_HASH_COLUMN))],
    ) as writer:
        # A group of wide rows would hold pages of more bytes than Parquet can count.
        for part in cut_rows(stored, ROW_GROUP_BYTES):
            writer.write_table(part, row_group_size=ROW_GROUP_ROWS)
    data = memoryview(sink.getvalue())
    least, greatest = time_bounds(table, origin.timestamp_column)
    facts = StateFile(
        path=origin.path,
        size_bytes=len(data),
        checksum=hashlib.sha256(data).digest(),
        rows=table.num_rows,
        delete_rows=count_deletes(table),
        epoch=origin.epoch,
        subtask_index=origin.subtask_index,
        min_key_hash=int(hashes[0]),
        max_key_hash=int(hashes[-1]),
        min_timestamp_us=least,
        max_timestamp_us=greatest,
        compaction_generation=origin.compaction_generation,
        live_key_start=0,
        live_key_end=MAX_KEY_HASH,
        state_version=origin.state_version,
        footer_checksum=hashlib.sha256(_footer(data)).digest(),
        memory_bytes=table.nbytes,
        part=origin.part,
    )
    return EncodedFile(facts, data)


def _repeats(field: pa.Field) -> bool:
    """Whether a dictionary is worth its place: numbers seldom repeat, and Zstd finds it when they do."""
    is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    return bool(is_text or pa.types.is_boolean(field.type) or field.name == OPERATION_COLUMN)


def count_deletes(table: pa.Table) -> int:
    return int(pc.sum(pc.not_equal(table.column(OPERATION_COLUMN), int(OperationCode.INSERT))).as_py() or 0)


def time_bounds(table: pa.Table, timestamp_column: str | None) -> tuple[int | None, int | None]:
    """The least and greatest event time of the inserted rows, in microseconds."""
    if timestamp_column is None:
        return None, None
    inserts = table.filter(pc.equal(table.column(OPERATION_COLUMN), int(OperationCode.INSERT)))
    bounds = pc.min_max(event_times_us(inserts, timestamp_column)).as_py()
    return bounds["min"], bounds["max"]


def event_times_us(table: pa.Table | pa.RecordBatch, column: str) -> Any:
    """An event-time column as microseconds; finer units round down."""
    times = table.column(column)
    if times.type.unit == "ns":
        # Plain division rounds to zero: events before 1970 would move forward.
        nanos = times.cast(pa.int64())
        return pc.subtract(pc.divide(nanos, 1000), pc.less(_remainder(nanos, 1000), 0).cast(pa.int64()))
    return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())


def _remainder(values: Any, divisor: int) -> Any:
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def read_file(
    storage: StorageProvider,
    file: StateFile,
    *,
    job_id: str,
    key_range: KeyRange,
    counts: ReadCounts,
    cache: Shelf | None = None,
    columns: Sequence[str] | None = None,
    is_rewritten: bool = False,
    is_sealed: bool = False,
) -> pa.Table:
    """The rows of `file` with a live key hash inside `key_range`, sorted; event times are not looked at.

    `columns`, which must include the key hash, saves decoding the others; those that the file has no values for are
    left out. `is_rewritten` says that the rows are to be stored again, in place of this file: nothing is taken from the
    cache unchecked, and nothing put there. With `is_sealed` all of the file is verified, whatever part of it is wanted.
    """
    check_reference(job_id, file.path)
    columns = None if columns is None else source_columns(columns, file.column_names)
    start, end = max(file.live_key_start, key_range.start), min(file.live_key_end, key_range.end)
    if cache is not None and (warm := cache.get(file, start, end, is_checked=is_rewritten)) is not None:
        counts.add(cache_hits=1)
        return slice_key_range(_select(warm, columns), start, end)
    if is_rewritten:
        cache = None
    # The cache keeps all columns: the next reader may be a compaction.
    wanted = list(columns) if columns is not None and cache is None else None
    is_whole = start <= file.min_key_hash and file.max_key_hash <= end
    try:
        if is_whole or is_sealed or file.size_bytes <= WHOLE_READ_BYTES:
            table, part = _read_whole(storage, file, counts, wanted, is_sealed=is_sealed), None
        else:
            table, part = _read_part(storage, file, start, end, counts, wanted), (start, end)
    except MissingFileError as error:
        raise DamagedStateError(f"{storage.url}/{file.path} of epoch {file.epoch} is missing") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedStateError(f"{storage.url}/{file.path} of epoch {file.epoch} is damaged: {error}") from error
    if cache is not None:
        cache.put(file, table, part)
    table = slice_key_range(_select(table, columns), start, end)
    counts.add(files_opened=1, rows=table.num_rows)
    return table


def _select(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    """Those of some columns that are there."""
    if columns is None:
        return table
    known = set(table.column_names)
    return table.select([name for name in columns if name in known])


def slice_key_range(table: pa.Table, start: int, end: int) -> pa.Table:
    """The rows of a sorted table with a key hash in `start..end`; no copy."""
    if table.num_rows == 0:
        return table
    if start > end:
        return table.slice(0, 0)
    hashes = key_hashes(table)
    first = int(np.searchsorted(hashes, np.uint64(start), side="left"))
    last = int(np.searchsorted(hashes, np.uint64(end), side="right"))
    return table.slice(first, last - first)


def verify_file(storage: StorageProvider, file: StateFile) -> bytes:
    """The content of a data file; `DamagedStateError` unless it is exactly what was written."""
    try:
        data = storage.read(file.path, max_bytes=file.size_bytes)
    except MissingFileError as error:
        raise DamagedStateError(f"{storage.url}/{file.path} of epoch {file.epoch} is missing") from error
    _verify(storage, file, data)
    return data


def _verify(storage: StorageProvider, file: StateFile, data: bytes) -> None:
    if len(data) != file.size_bytes:
        raise DamagedStateError(
            f"{storage.url}/{file.path} of epoch {file.epoch} has {len(data)} bytes, {file.size_bytes} were written"
        )
    if hashlib.sha256(data).digest() != file.checksum:
        raise DamagedStateError(f"{storage.url}/{file.path} of epoch {file.epoch} does not match its checksum")


def _read_whole(
    storage: StorageProvider, file: StateFile, counts: ReadCounts, columns: list[str] | None, *, is_sealed: bool
) -> pa.Table:
    data = storage.read(file.path, max_bytes=file.size_bytes)
    counts.add(row_groups_read=-(-file.rows // ROW_GROUP_ROWS))
    if is_sealed or len(data) < PARALLEL_VERIFY_BYTES:
        # What somebody else may have written is not decoded before it is known.
        _verify(storage, file, data)
        return _decode(_open_parquet(pa.BufferReader(data), file), None, columns)
    # Hashing and decoding large files take about as long, and both leave the interpreter alone.
    with ThreadPoolExecutor(1) as pool:
        verified = pool.submit(_verify, storage, file, data)
        try:
            table = _decode(_open_parquet(pa.BufferReader(data), file), None, columns)
        finally:
            # Whatever decoding says of damaged bytes, the checksum says it better.
            verified.result()
        return table


def _read_part(
    storage: StorageProvider,
    file: StateFile,
    start: int,
    end: int,
    counts: ReadCounts,
    columns: list[str] | None,
) -> pa.Table:

    def read(source: Any) -> pa.Table:
        source.seek(0, 2)
        if source.tell() != file.size_bytes:
            raise ValueError(f"it has {source.tell()} bytes, {file.size_bytes} were written")
        source.seek(max(0, file.size_bytes - 8))
        length = int.from_bytes(source.read(4), "little")
        if length + 8 > file.size_bytes:
            raise ValueError("its footer is longer than the file")
        source.seek(file.size_bytes - 8 - length)
        if hashlib.sha256(source.read(length + 8)).digest() != file.footer_checksum:
            raise ValueError("its footer does not match its checksum")
        reader = _open_parquet(source, file, page_checksum_verification=True)
        groups = _overlapping_groups(reader.metadata, start, end)
        counts.add(row_groups_read=len(groups))
        return _decode(reader, groups, columns)

    return storage.read_parts(file.path, read)


def _open_parquet(source: Any, file: StateFile, **settings: Any) -> pq.ParquetFile:
    """A file whose footer promises what the metadata says of it, and no more than a reader can hold."""
    reader = pq.ParquetFile(source, **settings)
    found = reader.metadata
    if found.num_rows != file.rows:
        raise ValueError(f"it has {found.num_rows} rows, {file.rows} were written")
    pages = sum(found.row_group(group).total_byte_size for group in range(found.num_row_groups))
    # Values that repeat take no room in pages; each row has a hash, at least.
    size_bytes = max(pages, file.memory_bytes, found.num_rows * 8)
    limit = STATE_FILE_BYTES.value
    if size_bytes > limit:
        raise ValueError(
            f"it unpacks to {size_bytes} bytes, and at most {limit} are allowed ({STATE_FILE_BYTES.variable})"
        )
    return reader


def _decode(reader: pq.ParquetFile, groups: Sequence[int] | None, columns: list[str] | None) -> pa.Table:
    """The rows of some row groups, or of all; in one chunk unless that would be too large."""
    chosen = range(reader.metadata.num_row_groups) if groups is None else groups
    if sum(reader.metadata.row_group(group).total_byte_size for group in chosen) <= _DECODED_AT_ONCE_BYTES:
        table = reader.read(columns=columns) if groups is None else reader.read_row_groups(groups, columns=columns)
        return combine(table)
    # Lists are read in one piece, which must not have more than 2 GiB.
    return combine(pa.concat_tables(reader.read_row_group(group, columns=columns) for group in chosen))


def _overlapping_groups(metadata: Any, start: int, end: int) -> list[int]:
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    position = paths.index(KEY_HASH_COLUMN)
    groups = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(position).statistics
        if statistics is None or not statistics.has_min_max or (statistics.min <= end and start <= statistics.max):
            groups.append(group)
    return groups


def _footer(data: memoryview) -> memoryview:
    length = int.from_bytes(data[-8:-4], "little")
    return data[len(data) - 8 - length :]
