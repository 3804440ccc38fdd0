"""A table of MySQL or MariaDB and the binlog, as one epoch sees them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager

import msgspec
from arroyo_connectors.cdc import ChangeLog, Emit, ReadChunk, Sees, SnapshotMode

from arroyo_core.api import SourceContext
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc.changes import ChangeReader
from arroyo_mysql.cdc.held import Block
from arroyo_mysql.cdc.keys import find_behind, typed_keys
from arroyo_mysql.cdc.opening import open_changes, replica_number
from arroyo_mysql.cdc.places import Place, Sight
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.snapshot import SnapshotReader
from arroyo_mysql.cdc.state import MysqlChunk, MysqlPosition
from arroyo_mysql.connection import Session

#: How long a query of the snapshot may take, in seconds.
_ANSWER_SECONDS = 3600


class MysqlLog(ChangeLog[MysqlPosition, MysqlChunk, ChangeReader, Block]):
    """Nothing is told to the server: it removes its binlog after a time, read or not."""

    def __init__(self, settings: CdcSettings, ctx: SourceContext, position: MysqlPosition | None) -> None:
        self._settings = settings
        self._ctx = ctx
        self._begin = position.place if position is not None else None
        self._session: Session | None = None
        self._horizon: Sight | None = None

    def translating(self) -> AbstractContextManager[None]:
        return self._settings.server.translating(f"cannot read table {self._settings.name}")

    def begin(self) -> MysqlPosition:
        follow = self._settings.follow
        if follow.snapshot is SnapshotMode.ONLY:
            return MysqlPosition(place=None)
        session = self._connect()
        catalogue.check_binlog(session, self._settings.name.schema)
        place = self._begin = catalogue.current_place(session)
        is_complete = follow.snapshot is SnapshotMode.NEVER
        return MysqlPosition(place=place, until=place if follow.ends else None, is_snapshot_complete=is_complete)

    def read_chunk(self, after: MysqlChunk | None, limit: int, emit: Emit) -> ReadChunk[MysqlChunk]:
        return SnapshotReader(self._settings, self._connect()).read(after, limit, emit)

    def complete(self, position: MysqlPosition, chunk: MysqlChunk) -> MysqlPosition:
        # What ends ends with all rows as of one moment.
        until = chunk.place if position.until is not None and chunk.place is not None else position.until
        return msgspec.structs.replace(position, horizon=chunk.place, until=until)

    def has_changes(self, position: MysqlPosition) -> bool:
        return position.place is not None

    def open(self, position: MysqlPosition) -> ChangeReader:
        return open_changes(self._settings, self._connect(), self._ctx, position, _place(position))

    def stream_key(self) -> Hashable:
        settings, follow, task = self._settings, self._settings.follow, self._ctx.task_info
        what = (settings.server, settings.name, tuple(follow.schema.names), follow.inserts_only)
        return (*what, follow.ignores_truncate, task.job_id, task.operator_id, replica_number(settings, task))

    def resumes_at(self, position: MysqlPosition) -> Hashable:
        return position.place, position.begun

    def moved(self, position: MysqlPosition, reader: ChangeReader) -> MysqlPosition:
        return msgspec.structs.replace(position, place=reader.place, begun=reader.begun, prepared=reader.prepared)

    def sights(self, chunks: Sequence[MysqlChunk]) -> Sequence[Sees]:
        return [self._sight(chunk.place).sees for chunk in chunks if chunk.place is not None]

    def is_beyond(self, position: MysqlPosition) -> bool:
        if position.horizon is None:
            return False
        if self._horizon is None:
            self._horizon = self._sight(position.horizon)
        return self._sight(_place(position)).has_reached(self._horizon)

    def find_behind(self, reader: ChangeReader, block: Block, bounds: Sequence[tuple[str, ...]]) -> Sequence[bool]:
        return find_behind(self._connect(), typed_keys(reader.keys(block), self._settings.table.key), bounds)

    def bytes_read(self, position: MysqlPosition) -> int:
        """As far as they are of one file."""
        place, begin = _place(position), self._begin
        return place.offset - begin.offset if begin is not None and begin.file == place.file else 0

    def bytes_behind(self, position: MysqlPosition) -> int:
        with self._settings.server.translating("cannot ask how far the binlog is"):
            return catalogue.bytes_behind(self._connect(), _place(position))

    def is_within(self, position: MysqlPosition) -> bool:
        return position.begun is not None

    def check_lag(self, position: MysqlPosition, lag: int) -> None:
        if lag > self._settings.follow.warn_lag_bytes:
            self._ctx.warn(
                f"{lag >> 20} MiB of the binlog are not read yet, of those that the server has: it removes them after "
                "a time, read or not",
                topic="lag of the binlog",
            )

    def disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _connect(self) -> Session:
        """The session for queries, which is not that of the stream."""
        if self._session is None:
            self._session = self._settings.server.connect(answer_s=_ANSWER_SECONDS, raw=True)
        return self._session

    def _sight(self, place: Place) -> Sight:
        return Sight(place, is_mariadb=self._settings.table.is_mariadb)


def _place(position: MysqlPosition) -> Place:
    """Of a position that has changes."""
    assert position.place is not None
    return position.place
