"""Reads the rows that a table has, in chunks of its primary key, each as of a place in the binlog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pyarrow as pa
from arroyo_connectors.cdc import Emit, ReadChunk, SnapshotMode

from arroyo_core.errors import DataError, ExternalError
from arroyo_mysql.cdc.catalogue import current_place, make_place
from arroyo_mysql.cdc.keys import behind, typed_keys
from arroyo_mysql.cdc.places import Place
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.state import MysqlChunk
from arroyo_mysql.connection import Session
from arroyo_mysql.names import quoted
from arroyo_mysql.result_columns import ResultColumn, read_column

#: Rows that become a batch at once.
_BATCH_ROWS = 16_384
#: How long a chunk of MySQL waits for those who write to the table, in seconds; meanwhile nobody else begins to.
_LOCK_SECONDS = 10


class SnapshotReader:
    """Reads chunks in a session of raw values."""

    def __init__(self, settings: CdcSettings, session: Session) -> None:
        self._settings = settings
        self._session = session
        names = [column.name for column in settings.columns]
        self._extra = [column for column in settings.key if column.name not in names]
        self._read: list[ResultColumn] = [*settings.columns, *self._extra]

    def read(self, after: MysqlChunk | None, limit: int, emit: Emit) -> ReadChunk[MysqlChunk]:
        """The rows behind a chunk, at most so many; all that are left where the table has no key.

        `emit` is given them, a batch at a time. Raises errors of the client, `DataError` and `ExternalError`.
        """
        settings, session = self._settings, self._session
        names = ", ".join(column.sql for column in self._read)
        query = f"select {names} from {settings.name.quoted}"
        if after is not None and after.last is not None:
            query += f" where {behind(settings.table.key, after.last)}"
        has_key = bool(settings.key)
        if has_key:
            query += f" order by {', '.join(quoted(column.name) for column in settings.key)} limit {limit}"
        rows, last = 0, None
        with self._as_of_one_moment() as place:
            self._check_columns()
            for values in session.stream(query, _BATCH_ROWS):
                rows += len(values)
                columns = [
                    column.make_array(list(each))
                    for column, each in zip(self._read, zip(*values, strict=True), strict=True)
                ]
                last = self._last_key(columns)
                wanted = columns[: len(settings.columns)]
                emit(pa.RecordBatch.from_arrays(wanted, schema=settings.follow.schema))
        if not has_key or rows < limit:
            last = None
        return ReadChunk(MysqlChunk(last=last, place=place), rows)

    @contextmanager
    def _as_of_one_moment(self) -> Iterator[Place | None]:
        """A transaction that sees what the binlog has up to a place, and nothing else."""
        session = self._session
        session.execute("set session transaction isolation level repeatable read")
        if self._settings.follow.snapshot is SnapshotMode.ONLY:
            session.execute("start transaction with consistent snapshot, read only")
            place = None
        elif self._settings.table.is_mariadb:
            place = self._begin_in_mariadb()
        else:
            place = self._begin_behind_a_lock()
        try:
            yield place
        finally:
            # The session is closed where this fails.
            session.execute("rollback")

    def _begin_in_mariadb(self) -> Place:
        """MariaDB says which place a snapshot of its engines is of."""
        self._session.execute("start transaction with consistent snapshot")
        found = dict(self._session.execute("show status like 'binlog_snapshot_%'"))
        file = found.get("Binlog_snapshot_file", "")
        if not file:
            raise ExternalError("the server does not say where in the binlog a snapshot is")
        return make_place(self._session, file, int(found["Binlog_snapshot_position"]), None)

    def _begin_behind_a_lock(self) -> Place:
        """MySQL does not: for the moment in which the transaction begins nobody may write to the table.

        Whoever has written to it before has committed by then, so that binlog and table say the same.
        """
        with closing(self._settings.server.connect()) as locking:
            locking.execute(f"set lock_wait_timeout = {_LOCK_SECONDS}")
            locking.execute(f"lock tables {self._settings.name.quoted} read")
            self._session.execute("start transaction with consistent snapshot")
            place = current_place(locking)
            locking.execute("unlock tables")
        return place

    def _check_columns(self) -> None:
        """Rows are read as they were planned, or not at all."""
        names = ", ".join(quoted(column.name) for column in self._read)
        found = [
            read_column(field)
            for field in self._session.describe(f"select {names} from {self._settings.name.quoted} limit 0")
        ]
        for column, now in zip(self._read, found, strict=True):
            if now.type != column.type:
                raise DataError(
                    f"column {column.name!r} of table {self._settings.name} is {now.type} now, and was {column.type} "
                    "when the pipeline was planned: start it again"
                )

    def _last_key(self, columns: list[pa.Array]) -> tuple[str, ...] | None:
        if not self._settings.key:
            return None
        names = [column.name for column in self._read]
        last = [columns[names.index(column.name)][-1:] for column in self._settings.key]
        return typed_keys(last, self._settings.table.key)[0]
