"""How far a source is: positions of buckets, which are dealt to subtasks.

The files of a snapshot are sorted by their paths, and the file with number `i` is in bucket `i % BUCKETS`. Each bucket
goes through the snapshots on its own, so subtasks need not agree on anything, and a bucket that another subtask gets,
because the parallelism has changed, goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_iceberg.history import Begin, Place

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

TABLE = "p"
#: Also the greatest number of subtasks that read at the same time. Changes are one bucket: their order counts.
BUCKETS = 128


class OtherBucketsError(StateError):
    """The positions are of a source that has dealt its files otherwise; no retry helps."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a bucket is read."""

    table_id: str
    #: The snapshot that is read; None before the first one.
    snapshot: int | None
    #: All files of the snapshot are read; else those that it has added.
    is_full: bool
    #: So many files of the bucket are finished, and so many rows of the next one.
    files: int = 0
    rows: int = 0
    #: The snapshot is finished.
    is_done: bool = False
    #: Without `watch`: the snapshot to end with.
    until: int | None = None
    has_until: bool = False
    #: The sequence number of the snapshot.
    sequence: int = 0
    #: How many buckets the files are dealt to.
    buckets: int = BUCKETS

    @property
    def place(self) -> Place:
        return Place(self.snapshot, self.sequence)

    def finished(self) -> Position:
        return msgspec.structs.replace(self, files=0, rows=0, is_done=True)

    def at(self, files: int, rows: int) -> Position:
        return msgspec.structs.replace(self, files=files, rows=rows)

    def next(self, snapshot: Snapshot) -> Position:
        """The beginning of a snapshot that follows."""
        return Position(
            self.table_id,
            snapshot.snapshot_id,
            is_full=False,
            until=self.until,
            has_until=self.has_until,
            sequence=snapshot.sequence_number or 0,
            buckets=self.buckets,
        )


class Positions:
    """The positions of one subtask's buckets."""

    def __init__(self, tables: StateTables, task: TaskInfo, *, buckets: int = BUCKETS) -> None:
        self.buckets = buckets
        self._task = task
        self._view = tables.get_partitioned_keyed_state(TABLE, self._owner, key_type=str)

    def own(self) -> Iterator[int]:
        """The numbers of the subtask's buckets."""
        yield from range(self._task.task_index, self.buckets, self._task.parallelism)

    def get(self, bucket: int) -> Position | None:
        found: Any = self._view.get(str(bucket))
        return None if found is None else msgspec.convert(found, Position)

    def set(self, bucket: int, position: Position) -> None:
        self._view.insert(str(bucket), msgspec.to_builtins(position))

    def begin(self, table_id: str, begin: Begin, until: int | None, *, has_until: bool) -> None:
        """The beginning, for buckets that have none: also for those without files, so that all know the same one.

        Raises `StateError` where the positions are of files that were dealt to other buckets.
        """
        for bucket in self.own():
            position = self.get(bucket)
            if position is None:
                is_done = begin.snapshot is None or not begin.is_full
                made = Position(
                    table_id,
                    begin.snapshot,
                    begin.is_full,
                    is_done=is_done,
                    until=until,
                    has_until=has_until,
                    sequence=begin.sequence,
                    buckets=self.buckets,
                )
                self.set(bucket, made)
            elif position.buckets != self.buckets:
                raise OtherBucketsError(
                    f"the state of the source has its files in {position.buckets} buckets, and it reads them in "
                    f"{self.buckets} now: changes was another setting. Set it as it was, or give the node another id "
                    "to read the table again from its start"
                )
            elif has_until != position.has_until:
                # `watch` was left away, or added.
                self.set(bucket, msgspec.structs.replace(position, until=until, has_until=has_until))

    def _owner(self, key: str) -> int:
        return int(key) % self._task.parallelism
