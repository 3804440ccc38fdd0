"""What the source remembers between epochs: where it is, and what the snapshot has read."""

from __future__ import annotations

import msgspec
from arroyo_connectors import SnapshotState

from arroyo_core.api import StateTables, TaskInfo


class CdcPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the source is."""

    #: Changes that were committed before are read.
    lsn: int
    #: Of the transaction that comes next so many changes are read.
    read_of_next: int = 0
    #: What was `lsn` when the epoch began: the epoch before it ended there, and is committed when the next one begins.
    former_lsn: int
    #: The server's identifier: positions mean nothing to another one.
    system: str = ""
    is_snapshot_complete: bool = False
    #: Where the log was when the snapshot was complete: what was committed later is in none of its chunks.
    horizon_lsn: int = 0
    #: Where to end; None for nowhere.
    until_lsn: int | None = None
    #: The rows that the snapshot has read.
    snapshot_rows: int = 0
    #: The latest event time that was read.
    latest_us: int | None = None
    is_idle: bool = False
    #: For how long no change had come. A length and not a moment: the time a job was down is nobody's idleness.
    quiet_us: int = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that were read in one query: those behind the chunk before, up to `last`."""

    #: The key of its last row, as texts; None for the last chunk, which has all that is behind.
    last: tuple[str, ...] | None
    #: What the query saw, as `pg_current_snapshot()` writes it.
    seen: str


class CdcState(SnapshotState[CdcPosition, Chunk]):
    """The state of the subtask that reads; None of it elsewhere."""

    def __init__(self, tables: StateTables, task: TaskInfo, table: str) -> None:
        super().__init__(tables, task, table, CdcPosition, Chunk)
