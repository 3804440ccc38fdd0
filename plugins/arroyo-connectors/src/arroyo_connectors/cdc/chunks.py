"""Rows that were read in chunks, and changes that were made meanwhile: what is in which chunk, and what is new."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from arroyo_connectors.cdc.state import CdcChunk, CdcPosition
from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.state import TableConfig, global_table_config, hash_key

POSITION_TABLE = "position"
CHUNKS_TABLE = "chunks"
_KEY = "table"

P = TypeVar("P", bound=CdcPosition)
C = TypeVar("C", bound=CdcChunk)
T = TypeVar("T", bound=Hashable)

#: Of rows whose key may be in a chunk, and the number of the chunk for each: whether they are behind it.
FindBehind = Callable[[npt.NDArray[np.int64], Sequence[int]], Sequence[bool]]


def snapshot_tables() -> dict[str, TableConfig]:
    """The tables that `SnapshotState` needs."""
    tables = dict(global_table_config(POSITION_TABLE, "where the source is in the log", is_partitioned=True))
    return tables | global_table_config(CHUNKS_TABLE, "what the snapshot has read", is_partitioned=True)


class SnapshotState(Generic[P, C]):
    """The state of the subtask that reads: a position, and the chunks in order. There is none of it elsewhere.

    The table `position` has one key, and `chunks` one for each chunk; both belong to the subtask that reads.
    """

    def __init__(
        self, tables: StateTables, task: TaskInfo, table: str, position_type: type[P], chunk_type: type[C]
    ) -> None:
        owner = reader_of(table, task.parallelism)
        self._position = tables.get_partitioned_keyed_state(
            POSITION_TABLE, lambda key: owner, key_type=str, value_type=position_type
        )
        self._chunks = tables.get_partitioned_keyed_state(
            CHUNKS_TABLE, lambda key: owner, key_type=int, value_type=chunk_type
        )
        #: The chunks in order, once somebody has asked.
        self._known: list[C] | None = None

    def position(self) -> P | None:
        """None before the first epoch."""
        return self._position.get(_KEY)

    def save(self, position: P) -> None:
        if self._position.get(_KEY) != position:
            self._position.insert(_KEY, position)

    def chunks(self) -> Sequence[C]:
        if self._known is None:
            found: Mapping[int, C] = self._chunks.get_all()
            self._known = [found[number] for number in sorted(found)]
        return self._known

    def add_chunk(self, chunk: C) -> None:
        self._chunks.insert(len(self.chunks()), chunk)
        self._known = [*self.chunks(), chunk]

    def forget_chunks(self) -> None:
        for number in range(len(self.chunks())):
            self._chunks.remove(number)
        self._known = []


def reader_of(table: str, parallelism: int) -> int:
    """The subtask that reads a table. Tables of several sources are spread."""
    return hash_key(table) % parallelism


def find_new(
    transactions: Sequence[T] | npt.NDArray[Any],
    sees: Sequence[Callable[[T], bool]],
    find_behind: FindBehind,
) -> npt.NDArray[np.bool_]:
    """Which rows the snapshot does not have as they are after their change.

    `transactions` has that of each row, and `sees` says for each chunk, in the order of the key, whether it has seen a
    transaction. Chunks were read one after the other, so what one has seen all later ones have seen: changes of keys
    behind the last chunk that has not seen it are in the snapshot, the others are new.
    """
    known: dict[T, int] = {}
    first = np.empty(len(transactions), dtype=np.int64)
    for row, transaction in enumerate(transactions):
        if transaction not in known:
            known[transaction] = _first_that_sees(transaction, sees)
        first[row] = known[transaction]
    is_new: npt.NDArray[np.bool_] = first >= len(sees)
    doubtful = np.flatnonzero((first > 0) & ~is_new)
    if len(doubtful):
        chunks = [number - 1 for number in first[doubtful].tolist()]
        is_new[doubtful] = ~np.array(find_behind(doubtful, chunks), dtype=np.bool_)
    return is_new


def _first_that_sees(transaction: T, sees: Sequence[Callable[[T], bool]]) -> int:
    """The number of the first chunk that has seen a transaction; how many there are where none has."""
    low, high = 0, len(sees)
    while low < high:
        middle = (low + high) // 2
        if sees[middle](transaction):
            high = middle
        else:
            low = middle + 1
    return low
