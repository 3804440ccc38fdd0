"""The changes of one table, as they come in a stream: where it is, and the rows of what has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.errors import DataError
from arroyo_postgres.cdc import pgoutput
from arroyo_postgres.cdc.columns import can_read, gather_texts, make_array
from arroyo_postgres.cdc.lsn import format_lsn
from arroyo_postgres.cdc.pgoutput import Relation, RowChanges
from arroyo_postgres.cdc.replication import ReplicationStream
from arroyo_postgres.cdc.settings import CdcSettings

#: What is handled at once: so many bytes, and so many messages about whatever.
_BLOCK_BYTES = 16 << 20
_BLOCK_MESSAGES = 1 << 16

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that came together, of tables that have the same columns."""

    changes: RowChanges
    #: The transaction of each row.
    xids: Ints
    #: Where the columns that are read are in the rows.
    places: tuple[int, ...]

    def take(self, rows: Ints) -> Block:
        return Block(changes=self.changes.take(rows), xids=self.xids[rows], places=self.places)

    @property
    def is_retract(self) -> npt.NDArray[np.bool_]:
        return self.changes.is_retract

    @property
    def transactions(self) -> list[int]:
        return list(self.xids.tolist())


class ChangeReader:
    """Reads a stream from a position on, which moves with what it gives."""

    def __init__(
        self,
        settings: CdcSettings,
        stream: ReplicationStream,
        *,
        lsn: int,
        read_of_next: int,
        until_lsn: int | None,
        warn: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._stream = stream
        #: What was committed before is read, and of the next transaction so many changes.
        self.lsn = lsn
        self.read_of_next = read_of_next
        #: Whether the last look gave no messages at all.
        self.is_quiet = True
        #: Updates and deletes that were left out, since somebody looked.
        self.ignored = 0
        self._until_lsn = until_lsn
        self._is_past_end = False
        self._warn = warn
        #: Transactions that the whole snapshot has seen; None for none of them.
        self._is_in_snapshot: Callable[[int], bool] | None = None
        #: Changes of the transaction that has begun; None where none has.
        self._seen_of_open: int | None = None
        self._xid = 0
        self._is_left_out = False
        #: The table as the messages that come have it, and as those of the block have it.
        self._told: Relation | None = None
        self._relation: Relation | None = None
        self._places: tuple[int, ...] = ()
        self._messages: list[bytes] = []
        self._xids: list[int] = []
        self._bytes = self._rows = self._given = 0
        self._limit = 0
        #: A row of a table whose columns have changed: what came before has to be handled first.
        self._held: bytes | None = None

    @property
    def system(self) -> str:
        return self._stream.system

    @property
    def resumes_at(self) -> tuple[int, int]:
        """Where another stream would go on."""
        return self.lsn, self.read_of_next

    @property
    def is_done(self) -> bool:
        """Whether all is read that is to be read."""
        return self._is_past_end or (self._until_lsn is not None and self.lsn >= self._until_lsn)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._relation.columns) if self._relation else ()

    def confirm(self, lsn: int) -> None:
        self._stream.confirm(lsn)

    def close(self) -> None:
        self._stream.close()

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Who is told, from now on."""
        self._warn = warn

    def leave_out(self, is_in_snapshot: Callable[[int], bool] | None) -> None:
        """Do not look at transactions that the whole snapshot has seen, nor at what the table was like then."""
        self._is_in_snapshot = is_in_snapshot

    def read(self, limit: int, seconds: float) -> Block | None:
        """About so many rows; None where there was nothing about the table. Waits at most so long.

        Raises `DataError` for what cannot be read, and what connections raise.
        """
        self._messages, self._xids = [], []
        self._bytes = self._rows = self._given = 0
        self._limit = limit
        held, self._held = self._held, None
        if held is not None:
            self._take_row(held[0], held)
        self.is_quiet = not self._stream.receive(self._take, seconds=seconds)
        if self._seen_of_open is None and not self._is_past_end:
            # Whatever was committed before has come.
            self.lsn = max(self.lsn, self._stream.sent_lsn)
        return self._block() if self._messages else None

    def batch(self, block: Block) -> pa.RecordBatch:
        """The rows of a block."""
        data = block.changes.data
        arrays = [
            make_array(gather_texts(block.changes.columns[place], data), column)
            for column, place in zip(self._settings.columns, block.places, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._settings.follow.schema)

    def texts(self, block: Block, names: Sequence[str]) -> list[list[str | None]]:
        """The texts of some columns of a block, row by row; raises `DataError` where one is not there."""
        known = self.column_names
        for name in names:
            if name not in known:
                raise DataError(
                    f"table {self._settings.follow.table} has no column {name!r} any more, of its primary key"
                )
        columns = [gather_texts(block.changes.columns[known.index(name)], block.changes.data) for name in names]
        return [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]

    def _take(self, message: bytes) -> bool:
        """Handle one message; whether more are wanted."""
        self._given += 1
        kind = message[0] if message else 0
        if kind in (pgoutput.INSERT, pgoutput.UPDATE, pgoutput.DELETE):
            return self._take_row(kind, message)
        if kind == pgoutput.BEGIN:
            begin = pgoutput.read_begin(message)
            if self._until_lsn is not None and begin.commit_lsn >= self._until_lsn:
                self._is_past_end = True
                return False
            self._xid, self._seen_of_open = begin.xid, 0
            self._is_left_out = self._is_in_snapshot is not None and self._is_in_snapshot(begin.xid)
        elif kind == pgoutput.COMMIT:
            self.lsn, self.read_of_next = pgoutput.read_commit(message).end_lsn, 0
            self._seen_of_open = None
        elif kind == pgoutput.RELATION:
            self._take_relation(pgoutput.read_relation(message))
        elif kind == pgoutput.TRUNCATE:
            self._take_truncate(pgoutput.read_truncate(message))
        elif kind not in pgoutput.IGNORED:
            raise pgoutput.MessageError(f"the stream has a message of kind {kind}, which is not known")
        return self._given < _BLOCK_MESSAGES

    def _take_row(self, kind: int, message: bytes) -> bool:
        if self._told is None or pgoutput.read_table(message) != self._told.oid:
            return self._given < _BLOCK_MESSAGES
        if self._seen_of_open is None:
            raise pgoutput.MessageError("a change is outside of a transaction")
        if self._messages and self._told != self._relation and not self._is_left_out:
            self._held = message
            return False
        self._seen_of_open += 1
        if self._seen_of_open <= self.read_of_next:
            return self._given < _BLOCK_MESSAGES  # an epoch before this one has it
        self.read_of_next = self._seen_of_open
        if self._is_left_out:
            return self._given < _BLOCK_MESSAGES
        if self._settings.follow.inserts_only and kind != pgoutput.INSERT:
            self.ignored += 1
            return self._given < _BLOCK_MESSAGES
        if self._told != self._relation:
            self._adopt(self._told)
        self._messages.append(message)
        self._xids.append(self._xid)
        self._bytes += len(message)
        self._rows += 2 if kind == pgoutput.UPDATE else 1
        return self._rows < self._limit and self._bytes < _BLOCK_BYTES

    def _take_relation(self, relation: Relation) -> None:
        table = self._settings.table
        if (relation.schema, relation.name) == (table.schema, table.name) or relation.oid == table.oid:
            self._told = relation

    def _adopt(self, relation: Relation) -> None:
        """The rows that come have these columns: all that are read must be there, as they are read."""
        settings, table = self._settings, self._settings.table
        where = f"table {settings.follow.table}, in the log after {format_lsn(self.lsn)}"
        if relation.oid != table.oid:
            raise DataError(
                f"{where}: it was dropped and made again, so that the rows that were read are gone without being "
                "deleted; start the job over, without its state and with another slot"
            )
        if (relation.schema, relation.name) != (table.schema, table.name):
            raise DataError(f"{where}: it is called {relation.schema}.{relation.name} now: change `table`")
        names = [column.name for column in relation.columns]
        places = []
        for column in settings.columns:
            if column.name not in names:
                raise DataError(
                    f"{where}: it has no column {column.name!r}, which was dropped, renamed, or added after these "
                    f"changes; plan the pipeline again, or choose from {', '.join(names)} with columns: [...]"
                )
            place = names.index(column.name)
            found = relation.columns[place]
            if not can_read(column, found.type_oid, found.type_modifier):
                raise DataError(
                    f"{where}: column {column.name!r} has another type, and is read as {column.type}; stop the job and "
                    f"plan it again, or read the column's texts: as_text: [{column.name}]"
                )
            places.append(place)
        for name in names:
            if name not in table.known:
                self._warn(
                    f"table {settings.follow.table} has a new column {name!r}, which is left out until the pipeline is "
                    "planned again"
                )
        self._relation, self._places = relation, tuple(places)

    def _take_truncate(self, truncate: pgoutput.Truncate) -> None:
        if self._settings.table.oid not in truncate.oids:
            return
        if self._seen_of_open is not None:
            self._seen_of_open += 1
            if self._seen_of_open <= self.read_of_next:
                return
        if self._is_left_out:
            return
        text = f"table {self._settings.follow.table} was emptied by TRUNCATE, after {format_lsn(self.lsn)}"
        if not self._settings.follow.ignores_truncate:
            raise DataError(
                f"{text}: the rows that were there are not in the log, and nobody can take them back. Start the job "
                "over, without its state and with another slot, or go on with on_truncate: ignore"
            )
        if self._seen_of_open is not None:
            self.read_of_next = self._seen_of_open
        self._warn(f"{text}; on_truncate: ignore leaves its rows in the results")

    def _block(self) -> Block:
        assert self._relation is not None
        changes = pgoutput.read_rows(
            self._messages, len(self._relation.columns), has_changes=not self._settings.follow.inserts_only
        )
        xids = np.array(self._xids, dtype=np.int64)[changes.messages]
        return Block(changes=changes, xids=xids, places=self._places)
