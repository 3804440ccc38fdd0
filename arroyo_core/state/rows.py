"""Rows of expiring tables as files hold them: the user's columns, then what state adds.

`_key_hash` routes and sorts a row, `_operation` says what it does (`OperationCode`), `_until_us` ends
a deleted time range whose start is the row's event time, and `_generation` is the epoch of a row of a
last-value table. Deletes leave columns they do not need null. Later rows act on earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.hashing import hash_batch
from arroyo_core.api.operations import DataOperation, DeleteTimeKey, DeleteTimeRange, DeleteValue, Insert
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.state.chunks import cut_chunks, take_column, take_rows
from arroyo_core.state.config import GENERATION_COLUMN, KEY_HASH_COLUMN, OPERATION_COLUMN, UNTIL_COLUMN
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.files import Hashes, event_times_us, key_hashes, sort_by_key_hash
from arroyo_core.state.keys import Mask, Rows, group_codes
from arroyo_core.state.messages import OPERATION_CODES, OperationCode

INSERT = Insert()
_NO_TIME = np.iinfo(np.int64).min

#: Where rows are numbered; no table has such a column.
_ROW_COLUMN = "__row"


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The columns of one expiring table."""

    table: str
    schema: ArroyoSchema
    is_generational: bool
    #: The hash of rows of a table without keys: the start of the writing subtask's range.
    unkeyed_hash: int

    @property
    def key_columns(self) -> tuple[str, ...]:
        return self.schema.key_columns or ()

    @property
    def file_schema(self) -> pa.Schema:
        fields = [field.with_nullable(True) for field in self.schema.schema]
        if self.is_generational:
            fields.append(pa.field(GENERATION_COLUMN, pa.uint64()))
        fields.append(pa.field(KEY_HASH_COLUMN, pa.uint64(), nullable=False))
        fields.append(pa.field(OPERATION_COLUMN, pa.uint8(), nullable=False))
        fields.append(pa.field(UNTIL_COLUMN, pa.int64()))
        return pa.schema(fields)

    @property
    def memory_schema(self) -> pa.Schema:
        """The columns of rows in memory: those of files without the generation, which only readers of files need."""
        return pa.schema([field for field in self.file_schema if field.name != GENERATION_COLUMN])

    def for_file(self, rows: pa.Table, generation: int) -> pa.Table:
        """Rows in memory with all columns that a file has."""
        if not self.is_generational:
            return rows
        generations = pa.array(np.full(rows.num_rows, generation, dtype=np.uint64))
        index = self.file_schema.get_field_index(GENERATION_COLUMN)
        return rows.add_column(index, self.file_schema.field(index), generations)

    def encode(self, batch: pa.RecordBatch, operation: DataOperation = INSERT) -> pa.Table:
        """The rows of `batch`, doing `operation`, as memory holds them; in the order given."""
        needed = self._needed_columns(operation)
        columns = {name: self._cast(batch, name) for name in needed}
        rows = batch.num_rows
        if isinstance(operation, DeleteTimeRange):
            columns[self._timestamp_column()] = self._times(operation.start_us, rows)
        keys = pa.RecordBatch.from_arrays([columns[name] for name in self.key_columns], names=list(self.key_columns))
        hashes = self.hash_keys(keys, rows)
        until = operation.end_us if isinstance(operation, DeleteTimeRange) else None
        state = {
            KEY_HASH_COLUMN: pa.array(hashes, pa.uint64()),
            OPERATION_COLUMN: pa.array(np.full(rows, OPERATION_CODES[type(operation)], dtype=np.uint8)),
            UNTIL_COLUMN: pa.nulls(rows, pa.int64()) if until is None else pa.array([until] * rows, pa.int64()),
        }
        known = columns | state
        schema = self.memory_schema
        arrays = [known[field.name] if field.name in known else pa.nulls(rows, field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def decode(self, rows: pa.Table) -> pa.RecordBatch:
        """The user's columns of rows of a file, as one batch; raises `StateValueError` if it cannot hold them."""
        try:
            chosen = rows.select(self.schema.schema.names).cast(self.schema.schema)
        except ValueError as error:
            # Files have null where deletes need no value; rows that are left may have none in a column without nulls.
            raise StateValueError(f"table {self.table!r}: its rows do not fit its columns: {error}") from error
        return self.as_batch(chosen)

    def as_batch(self, rows: pa.Table) -> pa.RecordBatch:
        """Rows of any columns as one batch; raises `StateValueError` if it cannot hold them."""
        try:
            columns = [_one_chunk(column) for column in rows.columns]
        except pa.ArrowInvalid as error:
            raise StateValueError(
                f"table {self.table!r}: {rows.num_rows} rows were asked for at once, which take {rows.nbytes} bytes: "
                "a batch holds 2 GiB of a column; ask for fewer keys, or take the rows in parts"
            ) from error
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def decode_parts(self, rows: pa.Table) -> list[pa.RecordBatch]:
        """The user's columns of rows of a file, in order, in as few batches as can hold them."""
        return [self.decode(part) for part in cut_chunks(rows)]

    def empty(self) -> pa.Table:
        return self.file_schema.empty_table()

    def empty_in_memory(self) -> pa.Table:
        return self.memory_schema.empty_table()

    def cast_keys(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """The key columns of a batch in the table's types, and no others."""
        columns = [self._cast(keys, name) for name in self.key_columns]
        fields = [pa.field(name, self.schema.schema.field(name).type) for name in self.key_columns]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def hash_keys(self, keys: pa.RecordBatch, rows: int) -> Hashes:
        if self.schema.key_columns is None:
            return np.full(rows, self.unkeyed_hash, dtype=np.uint64)
        if not self.key_columns:
            return np.zeros(rows, dtype=np.uint64)
        return hash_batch(keys, self.key_columns)

    def times_us(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Event times in microseconds; the least integer where a delete has none."""
        times = event_times_us(rows, self._timestamp_column())
        found: npt.NDArray[np.int64] = pc.fill_null(times, _NO_TIME).to_numpy()
        return found

    def expire(self, rows: pa.Table, cutoff_us: int | None) -> pa.Table:
        """Without rows before `cutoff_us`, and without deletes that only concern such rows.

        Rows without an `_operation` column are all inserts.
        """
        keep = self.kept_by(rows, cutoff_us)
        return rows if keep is None else rows.filter(pa.array(keep))

    def kept_by(self, rows: pa.Table, cutoff_us: int | None) -> Mask | None:
        """Which rows `expire` keeps; None for all."""
        if cutoff_us is None or self.schema.timestamp_column is None or rows.num_rows == 0:
            return None
        keep = self.times_us(rows) >= cutoff_us
        if OPERATION_COLUMN in rows.column_names and not keep.all():
            until = pc.fill_null(rows.column(UNTIL_COLUMN), _NO_TIME).to_numpy()
            keep |= (until >= cutoff_us) | (operations(rows) == OperationCode.DELETE_KEY)
        return None if keep.all() else keep

    def resolve_deletes(self, rows: pa.Table, *, keep_deletes: bool) -> pa.Table:
        """Without the rows that later ones delete; `rows` are oldest first. Deletes themselves stay on request."""
        codes = operations(rows)
        if rows.num_rows == 0 or not (codes != OperationCode.INSERT).any():
            return rows
        alive = self._alive(rows, codes)
        keep = alive if keep_deletes else alive & (codes == OperationCode.INSERT)
        return rows if keep.all() else rows.filter(pa.array(keep))

    def last_of_each_key(self, rows: pa.Table, *, keep_deletes: bool) -> pa.Table:
        """The newest row of each key, by key hash; `rows` are oldest first. A newest row that deletes stays on request.

        What stays is worked out from the keys, so that the other columns are copied once.
        """
        if rows.num_rows == 0:
            return rows
        chosen = self.newest_of_each_key(rows, keep_deletes=keep_deletes)
        is_same = len(chosen) == rows.num_rows and bool((chosen[:-1] <= chosen[1:]).all())
        return rows if is_same else take_rows(rows, chosen)

    def newest_of_each_key(self, rows: pa.Table, *, keep_deletes: bool) -> Rows:
        """The numbers of the rows of `last_of_each_key`; there must be rows."""
        hashes = key_hashes(rows)
        order = np.argsort(hashes, kind="stable")
        codes = group_codes(hashes[order], [take_column(rows.column(name), order) for name in self.key_columns])
        newest = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        newest[codes] = np.arange(rows.num_rows)
        keep = np.zeros(rows.num_rows, dtype=np.bool_)
        keep[newest[newest >= 0]] = True
        if not keep_deletes:
            keep &= (operations(rows) == OperationCode.INSERT)[order]
        return order if keep.all() else order[keep]

    def live_by_key_hash(self, rows: pa.Table, cutoff_us: int | None, *, keep_deletes: bool) -> Rows:
        """The numbers of the rows that neither their time nor a later row makes void, by key hash.

        `rows` are oldest first. Only the columns that decide are looked at; a delete by value needs all.
        """
        others = set(self.schema.names) - {*self.key_columns, self.schema.timestamp_column}
        if (operations(rows) == OperationCode.DELETE_VALUE).any():
            others = set()
        deciding = rows.select([name for name in rows.column_names if name not in others])
        numbered = deciding.append_column(_ROW_COLUMN, pa.array(np.arange(rows.num_rows)))
        live = sort_by_key_hash(self.expire(numbered, cutoff_us))
        found: Rows = self.resolve_deletes(live, keep_deletes=keep_deletes).column(_ROW_COLUMN).to_numpy()
        return found

    def _alive(self, rows: pa.Table, codes: npt.NDArray[np.uint8]) -> Mask:
        alive = np.ones(rows.num_rows, dtype=np.bool_)
        inserts = codes == OperationCode.INSERT
        position = np.arange(rows.num_rows)
        hashes = key_hashes(rows)
        keys = group_codes(hashes, [rows.column(name) for name in self.key_columns])
        groups = {OperationCode.DELETE_KEY: keys}
        if self.schema.timestamp_column is not None:
            groups[OperationCode.DELETE_TIME_KEY] = _pair(keys, self.times_us(rows))
        if (codes == OperationCode.DELETE_VALUE).any():
            groups[OperationCode.DELETE_VALUE] = group_codes(hashes, [rows.column(n) for n in self.schema.schema.names])
        for operation, group in groups.items():
            deleting = codes == operation
            if deleting.any():
                last = np.full(int(group.max()) + 1, -1, dtype=np.int64)
                last[group[deleting]] = position[deleting]
                alive &= ~(inserts & (position < last[group]))
        if (codes == OperationCode.DELETE_TIME_RANGE).any():
            alive &= ~self._in_deleted_range(rows, codes, keys)
        return alive

    def _in_deleted_range(self, rows: pa.Table, codes: npt.NDArray[np.uint8], keys: npt.NDArray[np.int64]) -> Mask:
        """Inserts that a later time-range delete of their key covers: every pair of one key is looked at."""
        times = self.times_us(rows)
        until = pc.fill_null(rows.column(UNTIL_COLUMN), _NO_TIME).to_numpy()
        deletes = np.flatnonzero(codes == OperationCode.DELETE_TIME_RANGE)
        inserts = np.flatnonzero(codes == OperationCode.INSERT)
        inserts = inserts[np.argsort(keys[inserts], kind="stable")]
        first = np.searchsorted(keys[inserts], keys[deletes], side="left")
        count = np.searchsorted(keys[inserts], keys[deletes], side="right") - first
        delete_of_pair = np.repeat(deletes, count)
        insert_of_pair = inserts[expand_ranges(first, count)]
        hit = (
            (insert_of_pair < delete_of_pair)
            & (times[insert_of_pair] >= times[delete_of_pair])
            & (times[insert_of_pair] <= until[delete_of_pair])
        )
        covered = np.zeros(rows.num_rows, dtype=np.bool_)
        covered[insert_of_pair[hit]] = True
        return covered

    def _needed_columns(self, operation: DataOperation) -> list[str]:
        if isinstance(operation, Insert | DeleteValue):
            return list(self.schema.schema.names)
        if self.schema.key_columns is None:
            raise StateValueError(f"table {self.table!r} has no keys: its rows cannot be deleted by key")
        return [*self.key_columns, *([self._timestamp_column()] if isinstance(operation, DeleteTimeKey) else [])]

    def _timestamp_column(self) -> str:
        if self.schema.timestamp_column is None:
            raise StateValueError(f"table {self.table!r} has no event-time column")
        return self.schema.timestamp_column

    def _times(self, time_us: int, rows: int) -> pa.Array:
        kind = self.schema.schema.field(self._timestamp_column()).type
        return pa.array([time_us] * rows, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)

    def _cast(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        index = batch.schema.get_field_index(name)
        if index < 0:
            raise StateValueError(
                f"table {self.table!r} needs column {name!r}; the batch has {', '.join(batch.schema.names) or 'none'}"
            )
        column, field = batch.column(index), self.schema.schema.field(name)
        if name == self.schema.timestamp_column and column.null_count:
            raise StateValueError(f"table {self.table!r}: event-time column {name!r} has {column.null_count} nulls")
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise StateValueError(
                f"table {self.table!r}: column {name!r} is not of type {field.type}: {error}"
            ) from error


def operations(rows: pa.Table) -> npt.NDArray[np.uint8]:
    """The `_operation` column."""
    found: npt.NDArray[np.uint8] = rows.column(OPERATION_COLUMN).to_numpy()
    return found


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def expand_ranges(first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The integers of all ranges `first[i] .. first[i] + count[i] - 1`, one after the other."""
    total = int(count.sum())
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64), count)
    expanded: npt.NDArray[np.int64] = starts + np.arange(total)
    return expanded


def _pair(codes: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    _, labels = np.unique(times, return_inverse=True)
    _, pairs = np.unique(codes * (int(labels.max(initial=0)) + 1) + labels, return_inverse=True)
    paired: npt.NDArray[np.int64] = pairs.astype(np.int64, copy=False)
    return paired
