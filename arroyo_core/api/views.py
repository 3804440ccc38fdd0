"""What `ctx.table_manager` gives: views of state tables.

The classes behind them are in `arroyo_core.state`: `GlobalKeyedView`, `PartitionedKeyedView`, `ExpiringTimeKeyView`,
`KeyTimeView` and `LastKeyValueView`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.operations import DataOperation
from arroyo_core.api.signals import Watermark

K = TypeVar("K")
V = TypeVar("V")

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Event times in microseconds.
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of a table that have the key of a row of the batch that was looked up.

    `query_rows[i]` is the row of that batch to which row i of `batch` belongs, in ascending order.
    """

    query_rows: Rows
    batch: pa.RecordBatch


class GlobalKeyedState(Protocol[K, V]):
    """A subtask's view of a global keyed table: a dictionary that survives.

    A read gives what a restore would give: a value is encoded when it is inserted, so changing it
    afterwards changes nothing. Without a `value_type` tuples come back as lists.
    """

    def get(self, key: K, default: V | None = None) -> V | None:
        """The value of `key`, or `default`."""
        ...

    def __contains__(self, key: K) -> bool: ...

    def insert(self, key: K, value: V) -> None:
        """Set the value of `key`; it is durable with the next checkpoint."""
        ...

    def remove(self, key: K) -> V | None:
        """Forget `key`; returns the value it had, or None."""
        ...

    def get_all(self) -> dict[K, V]:
        """Every key with its value, of all subtasks as of the last checkpoint and of this one since."""
        ...


class PartitionedKeyedState(GlobalKeyedState[K, V], Protocol[K, V]):
    """The keys of a partitioned table that one subtask owns: a dictionary that survives.

    `owner` gives the subtask to which a key belongs at the present parallelism: the same answer in every subtask and
    in every epoch. A key for which it gives none of them is forgotten when the table is handed over.
    """

    def get_restored(self) -> dict[K, V]:
        """What the checkpoint held: the keys of this subtask; those of all subtasks where the table was handed over.

        For what a subtask goes on from, though others wrote it: its own part may be none of what there is. Of a view
        that lives on, the keys of this subtask.
        """
        ...

    def insert(self, key: K, value: V) -> None:
        """Set the value of `key`, which this subtask owns; it is durable with the next checkpoint."""
        ...

    def remove(self, key: K) -> V | None:
        """Forget `key`, which this subtask owns; returns the value it had, or None."""
        ...

    def get_all(self) -> dict[K, V]:
        """Every key that this subtask owns, with its value."""
        ...


class ExpiringTimeKeyState(Protocol):
    """Batches by event time, oldest first; made for windows.

    A row that expires before it was written never is. Expiring the oldest times costs nothing: the checkpoint only
    records up to where the table is empty; a time in the middle is recorded as deletes. Rows of one time that were
    written by several epochs have no fixed order.
    Methods that return rows time by time take a step for each time: `take_before` does not.
    """

    def insert(self, timestamp_us: int, batch: pa.RecordBatch) -> None:
        """Add rows that all have the event time `timestamp_us`."""
        ...

    def insert_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows of any event times."""
        ...

    def delete(self, operation: DataOperation, batch: pa.RecordBatch) -> None:
        """Delete what `operation` says for each row of `batch`; looks at every row of the table."""
        ...

    def get_min_time(self) -> int | None:
        """The earliest event time with rows, in microseconds."""
        ...

    def times(self) -> list[int]:
        """Every event time with rows, in order."""
        ...

    def get_batches(self, timestamp_us: int) -> list[pa.RecordBatch]:
        """The rows of one event time."""
        ...

    def count_parts(self, times_us: Times) -> npt.NDArray[np.int64]:
        """In how many parts the rows of each of these times are: one for each epoch that wrote some, about."""
        ...

    def all_batches_for_watermark(
        self, watermark: Watermark | int | None = None
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Every event time with its rows, oldest first, that retention keeps at `watermark`; None keeps all."""
        ...

    def expire_timestamp(self, timestamp_us: int) -> list[pa.RecordBatch]:
        """Remove the rows of one event time, and return them."""
        ...

    def expire_timestamps(self, times_us: Times) -> list[pa.RecordBatch]:
        """Remove the rows of some event times, and return them: a batch for each part, oldest epoch first."""
        ...

    def expire_before(self, time_us: int) -> list[tuple[int, list[pa.RecordBatch]]]:
        """Remove all rows before `time_us`, and return them, by event time, oldest first."""
        ...

    def take_before(self, time_us: int) -> pa.RecordBatch | None:
        """Remove all rows before `time_us`, and return them in the order of their times; None if there are none.

        Raises `StateValueError` if one batch cannot hold them: `take_parts_before` gives any number of them.
        """
        ...

    def take_parts_before(self, time_us: int) -> list[pa.RecordBatch]:
        """The same as `take_before` for who needs no order: one batch for each part, each in the order of its times.

        Rows of one time come in the same order as with `take_before`.
        """
        ...

    def flush(self) -> None:
        """Hand what was inserted to the next checkpoint, which does so itself: for operators that like to."""
        ...

    def flush_timestamp(self, timestamp_us: int) -> None:
        """Hand what was inserted for one event time to the next checkpoint."""
        ...


class KeyTimeState(Protocol):
    """All rows of each key, in the order they were inserted; made for joins.

    Rows past retention disappear from reads when the watermark moves (`expire`), and from memory at
    the next checkpoint.
    """

    def insert(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are durable with the next checkpoint."""
        ...

    def delete(self, operation: DataOperation, batch: pa.RecordBatch) -> None:
        """Delete what `operation` says for each row of `batch`; only rows inserted before go."""
        ...

    def get_batch(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """Every live row with a key that is in `keys`, grouped by the rows of `keys`."""
        ...

    def lookup(self, keys: pa.RecordBatch) -> Matches:
        """Every live row for each row of `keys`; a key that appears twice finds its rows twice.

        Raises `StateValueError` if one batch cannot hold the rows: `lookup_parts` gives any number of them.
        """
        ...

    def lookup_parts(self, keys: pa.RecordBatch) -> Iterator[Matches]:
        """The same as `lookup` in parts that are batches of moderate size; the rows of one key may be in several."""
        ...

    def get_all(self) -> pa.RecordBatch:
        """Every live row, in no particular order; raises `StateValueError` if one batch cannot hold them."""
        ...

    def get_all_parts(self) -> list[pa.RecordBatch]:
        """Every live row, in no particular order, in batches of moderate size."""
        ...

    def expire(self, watermark_us: int, retention_us: int) -> None:
        """The watermark moved: rows before it minus the retention count no more."""
        ...


class LastKeyValueState(Protocol):
    """The last row of each key: upsert, delete, and vectorised lookups of whole batches of keys."""

    def upsert(self, batch: pa.RecordBatch) -> None:
        """Set the row of each key in `batch`; of two rows of one key the later counts."""
        ...

    def delete(self, keys: pa.RecordBatch) -> None:
        """Forget each key in `keys`; columns other than the keys are ignored."""
        ...

    def get(self, keys: pa.RecordBatch) -> tuple[Mask, pa.RecordBatch]:
        """For each row of `keys`: whether the key has a row; and those rows, in the order of `keys`.

        Raises `StateValueError` if one batch cannot hold the rows: `get_parts` gives any number of them.
        """
        ...

    def get_parts(self, keys: pa.RecordBatch) -> Iterator[tuple[Mask, pa.RecordBatch]]:
        """What `get` gives, for some of the keys after the other, with rows in batches of moderate size."""
        ...

    def get_aligned(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each row of `keys`: the key's row, or all nulls.

        Raises `StateValueError` if one batch cannot hold the rows: `get_aligned_parts` gives any number of them.
        """
        ...

    def get_aligned_parts(self, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What `get_aligned` gives, one after the other in batches of moderate size."""
        ...

    def get_all(self) -> pa.RecordBatch:
        """The last row of every key, in no particular order; raises `StateValueError` if one batch cannot hold them."""
        ...

    def get_all_parts(self) -> list[pa.RecordBatch]:
        """The last row of every key, in no particular order, in batches of moderate size."""
        ...

    def __len__(self) -> int: ...

    def expire(self, watermark_us: int, retention_us: int) -> None:
        """The watermark moved: a row before it minus the retention counts no more."""
        ...
