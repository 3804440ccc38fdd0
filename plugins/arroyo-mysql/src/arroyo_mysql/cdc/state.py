"""What the source remembers between epochs: where it is, and what the snapshot has read."""

from __future__ import annotations

from arroyo_connectors.cdc import CdcChunk, CdcPosition

from arroyo_mysql.cdc.places import Begun, Place


class MysqlPosition(CdcPosition, frozen=True, kw_only=True):
    """Where the source is."""

    #: Transactions before are read. None with a snapshot alone.
    place: Place | None
    #: What was read of the transaction that comes next.
    begun: Begun | None = None
    #: XA transactions that were read, and have not ended.
    prepared: tuple[str, ...] = ()
    #: Where the last chunk was read: what was committed later is in none of them.
    horizon: Place | None = None
    #: Where to end; None for nowhere.
    until: Place | None = None


class MysqlChunk(CdcChunk, frozen=True, kw_only=True):
    """Its `last` has literals of SQL."""

    #: Where the binlog was when the query saw the table; None with a snapshot alone.
    place: Place | None
