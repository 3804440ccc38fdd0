"""What the source remembers between epochs: where it is, and what the snapshot has read."""

from __future__ import annotations

from arroyo_connectors.cdc import CdcChunk, CdcPosition


class PostgresPosition(CdcPosition, frozen=True, kw_only=True):
    """Where the source is."""

    #: Changes that were committed before are read.
    lsn: int
    #: Of the transaction that comes next so many changes are read.
    read_of_next: int = 0
    #: What was `lsn` when the epoch began: the epoch before it ended there, and is committed when the next one begins.
    former_lsn: int
    #: The server's identifier: positions mean nothing to another one.
    system: str = ""
    #: Where the log was when the snapshot was complete: what was committed later is in none of its chunks.
    horizon_lsn: int = 0
    #: Where to end; None for nowhere.
    until_lsn: int | None = None


class PostgresChunk(CdcChunk, frozen=True, kw_only=True):
    """Its `last` has texts."""

    #: What the query saw, as `pg_current_snapshot()` writes it.
    seen: str
