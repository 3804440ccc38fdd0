"""Which rows a sink adds, replaces or removes: the last change of each key within an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import UPDATING_META, is_updating, retract_mask, row_ids
from arroyo_core.errors import ConfigError, DataError

#: The column of staged changes that is true where the row of the key is to go.
DELETED = "_deleted"
#: Changes are reduced to the last of each key when there are so many more than before.
LEAST_NEW_ROWS = 65_536

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Mode(StrEnum):
    """What a row does."""

    #: It is added to those that are there.
    APPEND = "append"
    #: It takes the place of the one with its key, or ends it.
    UPSERT = "upsert"


def read_mode(written: str) -> Mode:
    """The mode of a config; raises `ConfigError`."""
    try:
        return Mode(written)
    except ValueError:
        raise ConfigError(f"unknown mode {written!r}", field="mode", value=written, allowed=[*Mode]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """What a sink was told; `keys` and `deleted_column` are only for upserts."""

    mode: Mode
    keys: tuple[str, ...] = ()
    #: The column of the input that is true where a row ends its key, as `std.upsert` makes it; empty for none.
    deleted_column: str = ""

    def row_schema(self, stream: ArroyoSchema) -> pa.Schema:
        """The columns that reach the target, in plain types; raises `ConfigError` where the input does not fit."""
        updating = is_updating(stream)
        if self.mode is Mode.APPEND:
            self._check_append(is_updating=updating)
        left_out = {UPDATING_META, self.deleted_column}
        schema = pa.schema([pa.field(f.name, plain_type(f.type)) for f in stream.schema if f.name not in left_out])
        if self.mode is Mode.UPSERT:
            self._check_upsert(stream, schema, is_updating=updating)
            if DELETED in schema.names:
                raise ConfigError(f"a column cannot be called {DELETED!r} in mode upsert: rename it before the sink")
        return schema

    def _check_append(self, *, is_updating: bool) -> None:
        for field in ("keys", "deleted_column"):
            if getattr(self, field):
                raise ConfigError(f"{field} is for mode upsert: rows that are added have no key", field=field)
        if is_updating:
            raise ConfigError(
                "the input is updating: it takes back rows, and mode append only adds them. Give mode: upsert, and the "
                "columns of the key in keys",
                field="mode",
                value=str(self.mode),
                suggestion=str(Mode.UPSERT),
            )

    def _check_upsert(self, stream: ArroyoSchema, schema: pa.Schema, *, is_updating: bool) -> None:
        if not self.keys:
            raise ConfigError("mode upsert needs the columns of the key", field="keys")
        for position, name in enumerate(self.keys):
            place = f"keys[{position}]"
            if name not in schema.names:
                raise ConfigError(f"no column {name!r}", field=place, value=name, allowed=schema.names)
            if not is_hashable(schema.field(name).type):
                raise ConfigError(f"column {name!r} is {schema.field(name).type}: it cannot be a key", field=place)
            if name in self.keys[:position]:
                raise ConfigError(f"column {name!r} is named twice", field=place, value=name)
        if not self.deleted_column:
            return
        if self.deleted_column not in stream.names:
            raise ConfigError(
                f"no column {self.deleted_column!r}",
                field="deleted_column",
                value=self.deleted_column,
                allowed=[name for name in stream.names if name != UPDATING_META],
            )
        if stream.schema.field(self.deleted_column).type != pa.bool_():
            raise ConfigError(
                f"column {self.deleted_column!r} is {stream.schema.field(self.deleted_column).type}, not bool",
                field="deleted_column",
            )
        if is_updating:
            raise ConfigError(
                "the input is updating: rows are taken back, so a column that says so is one too many",
                field="deleted_column",
            )


class PendingChanges:
    """The last change of each key of one subtask, of one epoch."""

    def __init__(self, settings: ChangeSettings, rows: pa.Schema) -> None:
        self._settings = settings
        self.schema = rows.append(pa.field(DELETED, pa.bool_()))
        self._batches: list[pa.RecordBatch] = []
        self._kept = self._new = 0

    def add(self, batch: pa.RecordBatch, rows: pa.RecordBatch) -> None:
        """A batch of the input, and its rows without what says how they change.

        Raises `DataError` for a row whose key is NULL.
        """
        for name in self._settings.keys:
            if batch.column(name).null_count:
                raise DataError(f"a row has no key: {name!r} is NULL, and an upsert replaces the row of its key")
        deleted = pa.array(self._deleted(batch))
        self._batches.append(pa.RecordBatch.from_arrays([*rows.columns, deleted], schema=self.schema))
        self._new += batch.num_rows
        if self._new > max(LEAST_NEW_ROWS, self._kept):
            self._reduce()

    def take(self) -> pa.RecordBatch:
        """All changes, each of another key, in the order in which they came; begins again."""
        self._reduce()
        taken = self._batches.pop()
        self._kept = self._new = 0
        return taken

    def _deleted(self, batch: pa.RecordBatch) -> Mask:
        if not self._settings.deleted_column:
            return retract_mask(batch)
        flags: Mask = batch.column(self._settings.deleted_column).fill_null(False).to_numpy(zero_copy_only=False)
        return flags

    def _reduce(self) -> None:
        joined = pa.Table.from_batches(self._batches, schema=self.schema).combine_chunks()
        changes = joined.to_batches()[0] if joined.num_rows else pa.RecordBatch.from_pylist([], schema=self.schema)
        if changes.num_rows:
            changes = last_changes(changes, self._settings.keys, follows_values=not self._settings.deleted_column)
        self._batches = [changes]
        self._kept, self._new = changes.num_rows, 0


def last_changes(changes: pa.RecordBatch, keys: Sequence[str], *, follows_values: bool) -> pa.RecordBatch:
    """The last change of each key, in order.

    With `follows_values` a row that is taken back ends its key only where it is the row that was added last: one that
    comes after its successor, as can happen when they come from several subtasks, changes nothing.
    """
    ids = row_ids(changes, keys).dictionary_encode()
    codes = ids.indices.to_numpy().astype(np.int64)
    places, count = np.arange(changes.num_rows), len(ids.dictionary)
    deleted: Mask = changes.column(DELETED).to_numpy(zero_copy_only=False)
    added, removed = _last(codes, places, ~deleted, count), _last(codes, places, deleted, count)
    if follows_values:
        is_doubtful = deleted & (added[codes] >= 0) & (places > added[codes])
        if is_doubtful.any():
            removed[(added >= 0) & (removed > added)] = -1
            doubtful = places[is_doubtful]
            taken_back, last_added = _row_words(changes, doubtful), _row_words(changes, added[codes[doubtful]])
            same = (taken_back == last_added).all(axis=1)
            removed[codes[doubtful[same]]] = doubtful[same]
    return changes.take(pa.array(np.sort(np.maximum(added, removed))))


def _row_words(changes: pa.RecordBatch, places: Places) -> npt.NDArray[np.uint64]:
    """Two numbers for each of these rows: the same where all its values are."""
    rows = changes.drop_columns([DELETED]).take(pa.array(places))
    columns = [
        column if is_hashable(column.type) else pa.array([repr(value) for value in column.to_pylist()], pa.string())
        for column in rows.columns
    ]
    names = [str(number) for number in range(len(columns))]
    ids = row_ids(pa.RecordBatch.from_arrays(columns, names=names), names)
    return np.frombuffer(ids.buffers()[1], dtype="<u8").reshape(-1, 2)


def _last(codes: Places, places: Places, mask: Mask, count: int) -> Places:
    found = np.full(count, -1, dtype=np.int64)
    # Of several assignments to one place the last remains.
    found[codes[mask]] = places[mask]
    return found


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without the way in which values are kept: dictionaries and run ends are for batches, not for streams."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def plain_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, in its types."""
    columns = [batch.column(field.name) for field in schema]
    cast = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
