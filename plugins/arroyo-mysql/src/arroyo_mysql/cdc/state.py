"""What the source remembers between epochs: where it is, and what the snapshot has read."""

from __future__ import annotations

import msgspec
from arroyo_connectors import SnapshotState

from arroyo_core.api import StateTables, TaskInfo
from arroyo_mysql.cdc.places import Begun, Place


class CdcPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the source is."""

    #: Transactions before are read. None with a snapshot alone.
    place: Place | None
    #: What was read of the transaction that comes next.
    begun: Begun | None = None
    #: XA transactions that were read, and have not ended.
    prepared: tuple[str, ...] = ()
    is_snapshot_complete: bool = False
    #: Where the last chunk was read: what was committed later is in none of them.
    horizon: Place | None = None
    #: Where to end; None for nowhere.
    until: Place | None = None
    #: The rows that the snapshot has read.
    snapshot_rows: int = 0
    #: The latest event time that was read.
    latest_us: int | None = None
    is_idle: bool = False
    #: For how long no change had come. A length and not a moment: the time a job was down is nobody's idleness.
    quiet_us: int = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that were read in one query: those behind the chunk before, up to `last`."""

    #: The key of its last row, as SQL has it; None for the last chunk, which has all that is behind.
    last: tuple[str, ...] | None
    #: Where the binlog was when the query saw the table; None with a snapshot alone.
    place: Place | None


class CdcState(SnapshotState[CdcPosition, Chunk]):
    """The state of the subtask that reads; None of it elsewhere."""

    def __init__(self, tables: StateTables, task: TaskInfo, table: str) -> None:
        super().__init__(tables, task, table, CdcPosition, Chunk)
