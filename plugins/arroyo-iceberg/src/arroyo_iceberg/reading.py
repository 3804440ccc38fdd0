"""Reads the rows of a data file, from any of its rows on, without those that deletes have taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from arroyo_core.api.urls import redact_url
from arroyo_core.errors import DataError
from arroyo_iceberg.schemas import cast_batch, stream_schema

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

Positions: TypeAlias = pa.ChunkedArray

_BUFFER_BYTES = 8 << 20
_READ_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows of one data file, and what they mean."""

    file: DataFile
    #: The files that say which of its rows are deleted: they do not come.
    deletes: tuple[DataFile, ...] = ()
    #: Of the others only rows that these files delete; None for all.
    only: tuple[DataFile, ...] | None = None
    #: Whether the rows are taken away from the table, and not added.
    is_taken_away: bool = False

    @property
    def path(self) -> str:
        return self.file.file_path

    def taken_away(self) -> Unit:
        return replace(self, is_taken_away=True)


def reader_of(table: Table, schema: pa.Schema) -> RowReader:
    """A reader of the columns of `schema`; raises `DataError` where the table has one of them no more."""
    columns = table.schema()
    missing = [name for name in schema.names if name not in [column.name for column in columns.columns]]
    if missing:
        raise DataError(
            f"table {'.'.join(table.name())} has no column {missing[0]!r} any more: start the job again, with columns "
            "that it has"
        )
    return RowReader(table.io, table.metadata, columns.select(*schema.names), schema)


class RowReader:
    """Reads units into batches with some columns of a table, in the order of the files."""

    def __init__(self, io: FileIO, metadata: TableMetadata, columns: Schema, schema: pa.Schema | None = None) -> None:
        """`columns` of the table are read; `schema` is that of the batches, by default as a stream has it."""
        self._io = io
        self._metadata = metadata
        self._columns = columns
        self._schema = schema if schema is not None else stream_schema(columns)

    def read(self, unit: Unit, *, start: int = 0, batch_rows: int = 65536) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches, each with the number of the file's row that comes next; rows are counted with the deleted ones."""
        from pyiceberg.io.pyarrow import (
            _get_column_projection_values,
            _to_requested_schema,
            pyarrow_to_schema,
        )
        from pyiceberg.manifest import FileFormat
        from pyiceberg.schema import prune_columns

        if unit.file.file_format != FileFormat.PARQUET:
            raise DataError(f"{unit.path} is a file of {unit.file.file_format}; only Parquet is read")
        metadata = self._metadata
        for file in (unit.file, *unit.deletes, *(unit.only or ())):
            check_place(file.file_path, metadata.location)
        deleted = self._positions(unit, unit.deletes)
        only = None if unit.only is None else self._positions(unit, unit.only)
        downcast = metadata.format_version <= 2
        with self._io.new_input(unit.path).open() as stream:
            parquet = ds.ParquetFileFormat(pre_buffer=True, buffer_size=_BUFFER_BYTES)
            fragment = parquet.make_fragment(stream)
            physical = fragment.physical_schema
            found = pyarrow_to_schema(
                physical,
                metadata.name_mapping(),
                downcast_ns_timestamp_to_us=downcast,
                format_version=metadata.format_version,
            )
            missing = _get_column_projection_values(
                unit.file, self._columns, metadata.schema(), metadata.specs().get(unit.file.spec_id), found.field_ids
            )
            kept = prune_columns(found, self._wanted_ids(), select_full_types=False)
            for batch, first in _batches(fragment, [each.name for each in kept.columns], start, batch_rows):
                rows = _left(batch, first, deleted, only)
                projected = _to_requested_schema(
                    self._columns,
                    kept,
                    rows,
                    downcast_ns_timestamp_to_us=downcast,
                    projected_missing_fields=missing,
                    allow_timestamp_tz_mismatch=True,
                )
                yield cast_batch(projected, self._schema, doing=unit.path), first + batch.num_rows

    def _wanted_ids(self) -> set[int]:
        """Of lists and maps those of what is in them: the library takes no others."""
        from pyiceberg.types import ListType, MapType

        columns = self._columns
        return {each for each in columns.field_ids if not isinstance(columns.find_type(each), ListType | MapType)}

    def _positions(self, unit: Unit, deletes: Iterable[DataFile]) -> Positions:
        """The numbers of the file's rows that these files delete."""
        from pyiceberg.io.pyarrow import _read_deletes

        found = [_read_deletes(self._io, each).get(unit.path) for each in deletes]
        chunks = [chunk.cast(pa.int64()) for each in found if each is not None for chunk in each.chunks]
        return pa.chunked_array(chunks, pa.int64())


def check_place(path: str, table: str) -> None:
    """Raise `DataError` for a file of this host that a table elsewhere names.

    A table may have files anywhere. Whoever can write to one that is shared could else have files read that only
    this host has.
    """
    if _is_local(path) and not _is_local(table):
        raise DataError(f"the table at {redact_url(table)} names {path!r}, a file of this host: it is not read")


def _is_local(url: str) -> bool:
    return "://" not in url or url.lower().startswith("file:")


def _batches(
    fragment: ds.ParquetFileFragment, columns: Collection[str], start: int, batch_rows: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches from a row on, each with the number of its first row; row groups before it are not read."""
    first = begun = 0
    groups: list[int] = []
    for number, group in enumerate(fragment.row_groups):
        if first + group.num_rows > start:
            if not groups:
                begun = first
            groups.append(number)
        first += group.num_rows
    if not groups:
        return
    part = fragment.subset(row_group_ids=groups)
    scanner = ds.Scanner.from_fragment(
        part,
        schema=fragment.physical_schema,
        columns=list(columns),
        batch_size=batch_rows,
        batch_readahead=_READ_AHEAD,
    )
    for batch in scanner.to_batches():
        skipped = min(max(start - begun, 0), batch.num_rows)
        if skipped < batch.num_rows:
            yield batch.slice(skipped), begun + skipped
        begun += batch.num_rows


def _left(batch: pa.RecordBatch, first: int, deleted: Positions, only: Positions | None) -> pa.RecordBatch:
    """The rows of a batch that come; `first` is the number of its first row."""
    if not len(deleted) and only is None:
        return batch
    numbers = pa.array(np.arange(first, first + batch.num_rows))
    is_left = pc.invert(pc.is_in(numbers, value_set=deleted))
    if only is not None:
        is_left = pc.and_(is_left, pc.is_in(numbers, value_set=only))
    return batch.filter(is_left)
