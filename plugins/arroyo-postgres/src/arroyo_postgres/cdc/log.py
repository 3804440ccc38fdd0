"""A table of PostgreSQL and its slot, as one epoch sees them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec
from arroyo_connectors.cdc import ChangeLog, Emit, ReadChunk, Sees, SnapshotMode

from arroyo_core.api import SourceContext
from arroyo_postgres.cdc.changes import Block, ChangeReader
from arroyo_postgres.cdc.lsn import parse_lsn
from arroyo_postgres.cdc.settings import CdcSettings
from arroyo_postgres.cdc.slots import find_start, open_changes, session_name
from arroyo_postgres.cdc.snapshot import SETTINGS, SnapshotReader, find_behind
from arroyo_postgres.cdc.state import PostgresChunk, PostgresPosition
from arroyo_postgres.cdc.visibility import Visibility

if TYPE_CHECKING:
    import psycopg


class PostgresLog(ChangeLog[PostgresPosition, PostgresChunk, ChangeReader, Block]):
    """The slot may forget what the epoch before the last one has read: that is committed."""

    def __init__(self, settings: CdcSettings, ctx: SourceContext, position: PostgresPosition | None) -> None:
        self._settings = settings
        self._ctx = ctx
        #: Where the epoch began. The next one but one confirms it.
        self._begin_lsn = position.lsn if position is not None else 0
        #: What is committed: the epoch before the last one ended here.
        self._confirmable_lsn = position.former_lsn if position is not None else 0
        self._connection: psycopg.Connection[Any] | None = None

    def translating(self) -> AbstractContextManager[None]:
        return self._settings.server.translating(f"cannot read table {self._settings.follow.table}")

    def begin(self) -> PostgresPosition:
        settings, connection = self._settings, self._connect()
        until_lsn = None
        lsn = 0
        if settings.follow.snapshot is not SnapshotMode.ONLY:
            lsn = find_start(settings, connection, self._ctx)
            if settings.follow.ends:
                # A record of our own: the stream comes to its end for certain, and not to that of the log.
                until_lsn = self._ask_lsn("pg_logical_emit_message(true, 'arroyo', 'until')")
        self._begin_lsn = self._confirmable_lsn = lsn
        is_complete = settings.follow.snapshot is SnapshotMode.NEVER
        return PostgresPosition(lsn=lsn, former_lsn=lsn, until_lsn=until_lsn, is_snapshot_complete=is_complete)

    def read_chunk(self, after: PostgresChunk | None, limit: int, emit: Emit) -> ReadChunk[PostgresChunk]:
        return SnapshotReader(self._settings, self._connect()).read(after, limit, emit)

    def complete(self, position: PostgresPosition, chunk: PostgresChunk) -> PostgresPosition:
        return msgspec.structs.replace(position, horizon_lsn=self._ask_lsn("pg_current_wal_insert_lsn()"))

    def has_changes(self, position: PostgresPosition) -> bool:
        return self._settings.follow.snapshot is not SnapshotMode.ONLY

    def open(self, position: PostgresPosition) -> ChangeReader:
        return open_changes(self._settings, self._connect(), self._ctx, position)

    def use(self, reader: ChangeReader) -> None:
        reader.confirm(self._confirmable_lsn)

    def stream_key(self) -> Hashable:
        settings, follow = self._settings, self._settings.follow
        what = (settings.server, settings.slot, settings.publication, settings.table.oid, settings.columns)
        return (*what, follow.inserts_only, follow.ignores_truncate, session_name(self._ctx.task_info))

    def resumes_at(self, position: PostgresPosition) -> Hashable:
        return position.lsn, position.read_of_next

    def moved(self, position: PostgresPosition, reader: ChangeReader) -> PostgresPosition:
        lsn, read_of_next = reader.resumes_at
        return msgspec.structs.replace(
            position, lsn=lsn, read_of_next=read_of_next, former_lsn=self._begin_lsn, system=reader.system
        )

    def sights(self, chunks: Sequence[PostgresChunk]) -> Sequence[Sees]:
        return [Visibility.parse(chunk.seen).sees for chunk in chunks]

    def is_beyond(self, position: PostgresPosition) -> bool:
        return position.lsn >= position.horizon_lsn

    def find_behind(self, reader: ChangeReader, block: Block, bounds: Sequence[tuple[str, ...]]) -> Sequence[bool]:
        keys = reader.texts(block, self._settings.follow.key)
        return find_behind(self._connect(), self._settings.table.key, keys, bounds)

    def bytes_read(self, position: PostgresPosition) -> int:
        return position.lsn - self._begin_lsn

    def bytes_behind(self, position: PostgresPosition) -> int:
        # Its stream does not tell where the log ends.
        with self._settings.server.translating("cannot ask how far the log is"):
            return max(0, self._ask_lsn("pg_current_wal_lsn()") - position.lsn)

    def is_within(self, position: PostgresPosition) -> bool:
        return position.read_of_next > 0

    def check_lag(self, position: PostgresPosition, lag: int) -> None:
        kept = position.lsn + lag - self._confirmable_lsn
        if kept > self._settings.follow.warn_lag_bytes:
            self._ctx.warn(
                f"the server keeps {kept >> 20} MiB of its log for slot {self._settings.slot!r}; {lag >> 20} MiB of it "
                "are not read yet",
                topic="lag of the slot",
            )

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        """The connection for queries, which is not that of the stream."""
        if self._connection is None:
            self._connection = self._settings.server.connect(name="arroyo snapshot", settings=SETTINGS)
        return self._connection

    def _ask_lsn(self, function: str) -> int:
        row = self._connect().execute(f"select {function}::text".encode()).fetchone()
        assert row is not None
        return parse_lsn(row[0])
