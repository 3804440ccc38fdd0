"""Reads Parquet by row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_formats.conditions import Pieces
from arroyo_formats.conform import conform, plain_schema
from arroyo_formats.files import TO_THE_END, DamagedFileError, FileReader, is_damage, is_local
from arroyo_formats.parquet.footers import check_sizes, read_footer
from arroyo_formats.parquet.sizes import BytesSource, FileSource, RowSizes, row_sizes
from arroyo_formats.parquet.statistics import wanted_runs
from arroyo_formats.whole_files import check_message

#: What is read of a column at a time, where reading little costs little.
READ_BYTES = 256 * 2**10

#: A batch has about as much at most, if the file tells the truth about what its rows weigh, or else the batch after it.
BATCH_BYTES = 16 * 2**20


def read_schema(fs: Any, path: str) -> pa.Schema:
    """The plain schema of a file."""
    with _open(fs, path) as file:
        return plain_schema(file.schema_arrow)


def piece_bytes(fs: Any, path: str) -> list[int]:
    """The compressed size of each row group."""
    with _open(fs, path) as file:
        try:
            check_sizes(read_footer(fs, path), file)
        except ValueError as error:
            raise DamagedFileError(path, str(error)) from error
        groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    return [sum(group.column(index).total_compressed_size for index in range(group.num_columns)) for group in groups]


class ParquetFileReader(FileReader):
    """Reads row groups; positions are rows from the start of the part."""

    def __init__(self, fs: Any, *, schema: pa.Schema, batch_rows: int) -> None:
        self._fs = fs
        self._schema = schema
        self._batch_rows = batch_rows
        self._pieces: Pieces | None = None

    def leave_out(self, pieces: Pieces | None) -> None:
        self._pieces = pieces

    def read(self, path: str, part: tuple[int, int], position: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        start, stop = part
        with _open(self._fs, path) as file:
            groups = range(start, file.metadata.num_row_groups if stop == TO_THE_END else stop)
            # By position in the schema a column of a struct would be several leaves: names take them all.
            columns = [name for name in self._schema.names if name in file.schema_arrow.names]
            before = 0
            for run, is_wanted in wanted_runs(file, groups, self._pieces):
                rows = sum(file.metadata.row_group(group).num_rows for group in run)
                behind = before + rows
                if behind > position and not is_wanted:
                    self._left_out()
                    yield None, behind
                elif behind > position:
                    begun = max(0, position - before)
                    for batch, after in self._run(file, path, run, columns=columns, position=begun):
                        yield batch, before + after
                before = behind

    def _left_out(self) -> None:
        if self._pieces is not None:
            self._pieces.on_left_out()

    def _run(
        self, file: pq.ParquetFile, path: str, groups: range, *, columns: Sequence[str], position: int
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All rows of neighbouring row groups from a position on."""
        if columns:
            yield from self._bounded(file, path, groups, columns=columns, position=position)
        else:
            yield from self._nulls(file, groups, position=position)

    def _bounded(
        self, file: pq.ParquetFile, path: str, groups: range, *, columns: Sequence[str], position: int
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches of so many rows as come to `BATCH_BYTES`."""
        source = FileSource(self._fs, path)
        sizes = row_sizes(source, file, groups, columns, max_bytes=BATCH_BYTES, max_rows=self._batch_rows)
        rows = sizes.rows
        is_done = False
        while not is_done:
            is_done = True
            batches = self._batches(file, path, groups, columns=columns, position=position, rows=rows, sizes=sizes)
            for batch, after in self._undamaged(batches, path, rows):
                if batch is None:
                    # All rows before the damage are wanted, and no other ones by chance.
                    rows = max(1, rows // 16)
                    is_done = False
                    break
                position = after
                yield batch, position
                # A file may hold a long text once for many rows.
                if batch.nbytes > 2 * BATCH_BYTES and batch.num_rows > 1:
                    rows = max(1, batch.num_rows * BATCH_BYTES // batch.nbytes)
                    is_done = False
                    break

    def _undamaged(
        self, batches: Iterator[tuple[pa.RecordBatch, int]], path: str, rows: int
    ) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """The batches; None for one with a damage in it, unless it is of a single row."""
        try:
            yield from batches
        except (pa.ArrowException, OSError) as error:
            if rows == 1 or not is_damage(error):
                raise _named(path, error) from error
            yield None, 0

    def _batches(
        self,
        file: pq.ParquetFile,
        path: str,
        groups: range,
        *,
        columns: Sequence[str],
        position: int,
        rows: int,
        sizes: RowSizes,
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        left, skipped = _skip_groups(file.metadata, groups, position)
        # In a task that has one core, a pool of one thread only adds a hand-over for each column.
        threads = pa.cpu_count() > 1
        batch_size = min(rows, sizes.safe_rows)
        read = file.iter_batches(batch_size=batch_size, row_groups=left, columns=columns, use_threads=threads)
        conformed = self._conformed(read, path, position - skipped)
        for batch in gathered(conformed, rows, max_bytes=BATCH_BYTES) if sizes.safe_rows < rows else conformed:
            position += batch.num_rows
            yield batch, position

    def _conformed(self, batches: Iterable[pa.RecordBatch], path: str, skipped: int) -> Iterator[pa.RecordBatch]:
        """The batches in the schema, without so many rows at the beginning."""
        for batch in batches:
            if skipped >= batch.num_rows:
                skipped -= batch.num_rows
                continue
            rest = batch.slice(skipped) if skipped else batch
            skipped = 0
            yield conform(rest, self._schema, place=path)

    def _nulls(self, file: pq.ParquetFile, groups: range, *, position: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """A file without any wanted column still has its rows."""
        left = sum(file.metadata.row_group(group).num_rows for group in groups) - position
        while left > 0:
            rows = min(left, self._batch_rows)
            left -= rows
            position += rows
            columns = [pa.nulls(rows, field.type) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema), position


def read_message(data: bytes, schema: pa.Schema) -> pa.Table:
    """The rows of a file in memory that has those of a message; raises `DataError` where they are too many."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        check_sizes(data, file)
        check_message(file.metadata.num_rows * max(1, len(schema)))
        columns = [name for name in schema.names if name in file.schema_arrow.names]
        groups = range(file.metadata.num_row_groups)
        sizes = row_sizes(BytesSource(data), file, groups, columns, max_bytes=BATCH_BYTES, max_rows=2**16)
        rows = min(sizes.rows, sizes.safe_rows)
        found: list[pa.RecordBatch] = []
        size = 0
        for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
            # Counting follows offsets, which may lead anywhere.
            batch.validate()
            size += batch.nbytes
            check_message(size)
            found.append(batch)
        kept = pa.schema([file.schema_arrow.field(name) for name in columns])
        return pa.Table.from_batches(found, kept) if columns else _without_columns(file.metadata.num_rows)


def _without_columns(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)})


def gathered(batches: Iterable[pa.RecordBatch], rows: int, *, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of so many, or of fewer that have so many bytes."""
    held: list[pa.RecordBatch] = []
    have = size = 0
    for batch in batches:
        if held and (have + batch.num_rows > rows or size + batch.nbytes > max_bytes):
            yield pa.concat_batches(held)
            held, have, size = [], 0, 0
        held.append(batch)
        have, size = have + batch.num_rows, size + batch.nbytes
    if held:
        yield pa.concat_batches(held)


def _skip_groups(metadata: pq.FileMetaData, groups: range, position: int) -> tuple[list[int], int]:
    """The row groups from the one with `position` on, and the rows before it."""
    skipped = 0
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if skipped + rows > position:
            return list(range(group, groups.stop)), skipped
        skipped += rows
    return [], skipped


def _open(fs: Any, path: str) -> pq.ParquetFile:
    try:
        if is_local(fs):
            # Page by page: mapped or read whole, the chunks of all columns would count as this process's memory.
            return pq.ParquetFile(path, buffer_size=READ_BYTES)
        # Row groups are read whole: pre-buffering joins their small reads into few large ones.
        return pq.ParquetFile(fs.open(path, "rb", cache_type="none"), pre_buffer=True)
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, "the name of a column is not UTF-8") from error
    except (pa.ArrowException, OSError) as error:
        raise _named(path, error) from error


def _named(path: str, error: Exception) -> Exception:
    """What to raise for an error of Arrow, which does not name the file."""
    return DamagedFileError(path, str(error)) if is_damage(error) else error
