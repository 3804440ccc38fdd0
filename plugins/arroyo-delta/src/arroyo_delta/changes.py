"""The last change of each key in an epoch, which is all that a merge needs to know."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.updating import retract_mask
from arroyo_core.errors import DataError, ExternalError
from arroyo_delta.location import Files
from arroyo_delta.staging import DamagedCommitError, StagedFile

#: Whether the row of a key is gone. No column of a table is called so.
IS_DELETED = "__arroyo_is_deleted"
#: Changes are made fewer when there are so many more.
COMPACTED_ROWS = 2**18


class LastChanges:
    """Rows in the columns of the table, of which the last of each key counts."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str], *, deleted_column: str = "") -> None:
        """`schema` is that of the rows as they are written, without `deleted_column`."""
        self.schema = staged_columns(schema)
        self._required = [each.name for each in schema if not each.nullable]
        self._keys = list(keys)
        self._deleted_column = deleted_column
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._compacted_rows = 0

    def add(self, rows: pa.RecordBatch, changes: pa.RecordBatch) -> None:
        """Take rows; `changes` are the same rows as they came, and say which are taken back or deleted.

        Raises `DataError` for a row that stays and that the table cannot have.
        """
        flags = pa.array(retract_mask(changes))
        if self._deleted_column:
            flags = changes.column(self._deleted_column).fill_null(False)
        for name in self._required:
            if pc.any(pc.and_not(rows.column(name).is_null(), flags)).as_py():
                raise DataError(f"column {name!r} has a null, and the table has none there")
        self._batches.append(pa.RecordBatch.from_arrays([*rows.columns, flags], schema=self.schema))
        self._rows += rows.num_rows
        if self._rows - self._compacted_rows >= COMPACTED_ROWS:
            self.compact()

    def compact(self) -> pa.Table:
        """The last row of each key."""
        table = pa.Table.from_batches(self._batches, schema=self.schema).combine_chunks()
        if table.num_rows:
            last = last_places(table, self._keys)
            if len(last) < table.num_rows:
                table = table.take(pa.array(last))
        self._batches = table.to_batches()
        self._rows = self._compacted_rows = table.num_rows
        return table

    def store(self, files: Files, folder: str, *, task_index: int) -> list[StagedFile]:
        """Write the changes beside the table; nothing where there are none.

        Raises `DataError` for values that the commit would refuse.
        """
        table = self.compact()
        if not table.num_rows:
            return []
        for name in table.schema.names:
            try:
                table.column(name).validate(full=True)
            except pa.ArrowInvalid as error:
                raise DataError(f"column {name!r} has a value that a table cannot have: {error}") from error
        name = f"{folder}/part-{task_index:03}-0-{uuid.uuid4().hex}.arrow"
        stream = files.create(name)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
            writer.write_table(table)
        size = stream.tell()
        files.close(name, stream)
        return [StagedFile(name, table.num_rows, size)]


def staged_columns(schema: pa.Schema) -> pa.Schema:
    """Those of changes to rows with these columns: of a row that is deleted all but the keys may be null."""
    columns = [each.with_nullable(True) for each in schema]
    return pa.schema([*columns, pa.field(IS_DELETED, pa.bool_())])


def last_places(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """Where the last row of each key is, in the order of the rows."""
    indexed = table.select(list(keys)).append_column("__place", pa.array(np.arange(table.num_rows)))
    grouped = indexed.group_by(list(keys), use_threads=False).aggregate([("__place", "max")])
    return np.sort(grouped.column("__place_max").to_numpy())


def read_changes(files: Files, names: Sequence[str]) -> Iterator[pa.Table]:
    """The changes in files; raises `ExternalError` where another driver has committed and deleted them meanwhile."""
    for name in names:
        try:
            with files.open_input(name) as file, pa.ipc.open_stream(file) as reader:
                changes = reader.read_all()
                # Offsets beyond the values would be followed out of them.
                changes.validate(full=True)
                yield changes
        except (pa.ArrowException, ValueError) as error:
            raise DamagedCommitError(f"{name}: the changes are damaged: {error}") from error
        except FileNotFoundError as error:
            raise ExternalError(f"{name}: the changes are gone: somebody else has merged them") from error
