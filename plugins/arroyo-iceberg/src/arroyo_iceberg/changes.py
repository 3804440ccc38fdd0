"""The rows of an epoch that are left of each key, for tables that have one row of a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.updating import retract_mask, row_ids

#: Rows wait until there are so many more than were left the last time; then what cannot count any more goes.
COMPACTED_ROWS = 1 << 20

Places: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Changes:
    """Rows in the order in which they came. The last one of a key counts.

    Where rows are taken back, a row counts unless it is taken back later, whatever else the key had meanwhile: rows
    that come from several subtasks may be added before the ones that they follow are taken back. A key none of whose
    rows counts is deleted.
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[str], *, deleted_column: str = "") -> None:
        """`schema` is that of the rows as they are written."""
        self._schema = schema
        self._keys = list(keys)
        self._deleted_column = deleted_column
        self._rows: list[pa.RecordBatch] = []
        self._gone: list[Mask] = []
        self._count = 0
        self._compacted = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """A batch of the input."""
        gone = retract_mask(batch)
        if self._deleted_column:
            column = batch.column(self._deleted_column)
            gone = gone | column.fill_null(False).to_numpy(zero_copy_only=False)
        self._rows.append(batch.select(self._schema.names))
        self._gone.append(gone)
        self._count += batch.num_rows
        if self._count - self._compacted >= COMPACTED_ROWS:
            self._compact()

    def result(self) -> tuple[pa.RecordBatch, pa.Table]:
        """The rows that are written, and the keys whose rows are deleted; empties."""
        rows, gone = self._joined()
        left = _last(rows, gone, self._keys, is_by_key=self._is_by_key)
        kept, deleted = left[~gone[left]], left[gone[left]]
        self._rows, self._gone, self._count, self._compacted = [], [], 0, 0
        return rows.take(pa.array(kept)), pa.Table.from_batches([rows.take(pa.array(deleted)).select(self._keys)])

    @property
    def _is_by_key(self) -> bool:
        """Whether what goes is known by its key alone, and not by all of its values."""
        return bool(self._deleted_column)

    def _joined(self) -> tuple[pa.RecordBatch, Mask]:
        rows = pa.Table.from_batches(self._rows, schema=self._schema).combine_chunks().to_batches()
        joined = pa.concat_batches(rows) if rows else pa.RecordBatch.from_pylist([], schema=self._schema)
        return joined, np.concatenate([np.zeros(0, dtype=np.bool_), *self._gone])

    def _compact(self) -> None:
        rows, gone = self._joined()
        if self._is_by_key or not gone.any():
            left = _last_of(_codes(row_ids(rows.select(self._keys), self._keys)), np.arange(len(gone)))
        else:
            left = _last_of(_codes(row_ids(rows, rows.schema.names)), np.arange(len(gone)))
        self._rows, self._gone = [rows.take(pa.array(left))], [gone[left]]
        self._count = self._compacted = len(left)


def _last(rows: pa.RecordBatch, gone: Mask, keys: list[str], *, is_by_key: bool) -> Places:
    """The place of the row of each key that decides, in order."""
    places = np.arange(len(gone))
    if not len(places):
        return places
    owner = _codes(row_ids(rows.select(keys), keys))
    if is_by_key or not gone.any():
        return _last_of(owner, places)
    events = _last_of(_codes(row_ids(rows, rows.schema.names)), places)
    added, taken = events[~gone[events]], events[gone[events]]
    # Of each key the last one that counts; one that is taken back only where there is none.
    last = np.full(owner.max() + 1, -1)
    last[owner[taken]] = taken
    last[owner[added]] = added
    return np.sort(last[last >= 0])


def _last_of(codes: Places, places: Places) -> Places:
    """The last place of each code, in order."""
    if not len(codes):
        return places
    last = np.full(codes.max() + 1, -1)
    last[codes] = places
    return np.sort(last[last >= 0])


def _codes(ids: pa.FixedSizeBinaryArray) -> Places:
    """A number for each different id."""
    codes: Places = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
