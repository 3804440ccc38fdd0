"""The changes of one table, as they come in a binlog: where it is, and the rows of what has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.errors import DataError
from arroyo_mysql.cdc import binlog_events as events
from arroyo_mysql.cdc.binlog_events import Event, EventError, Query
from arroyo_mysql.cdc.binlog_stream import BinlogStream
from arroyo_mysql.cdc.binlog_types import make_array
from arroyo_mysql.cdc.ddl import Effect, effect_of
from arroyo_mysql.cdc.held import Block, HeldRows
from arroyo_mysql.cdc.places import Begun, Gtids, Place, Sight, Transaction, file_order, read_gtids
from arroyo_mysql.cdc.refusals import EFFECTS, REFUSED_EVENTS
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.tables import BinlogFacts, Tables

#: What is handled at once: so many bytes of rows, and so many events about whatever.
_BLOCK_BYTES = 8 << 20
_BLOCK_EVENTS = 1 << 14

Sees = Callable[[Transaction], bool]


class ChangeReader:
    """Reads a stream from a place on, which moves with what it gives."""

    def __init__(
        self,
        settings: CdcSettings,
        stream: BinlogStream,
        facts: BinlogFacts,
        *,
        place: Place,
        begun: Begun | None,
        prepared: Sequence[str],
        until: Place | None,
        warn: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._stream = stream
        self._facts = facts
        self._is_mariadb = settings.table.is_mariadb
        self._gtids: Gtids | None = (
            read_gtids(place.gtid, is_mariadb=self._is_mariadb) if place.gtid is not None else None
        )
        #: Behind the last transaction that is read, and what is given of the next one.
        self._file, self._offset = place.file, place.offset
        self.begun = begun
        #: XA transactions that were read, and have not ended.
        self._prepared = set(prepared)
        #: Whether the last look gave no events at all.
        self.is_quiet = True
        #: Updates and deletes that were left out, since somebody looked.
        self.ignored = 0
        self._until = Sight(until, is_mariadb=self._is_mariadb) if until is not None else None
        self.is_done = self._until is not None and self._sight().has_reached(self._until)
        self._warn = warn
        #: Whether the first chunk of the snapshot has seen a transaction; None for none of them.
        self._is_in_snapshot: Sees | None = None
        #: The transaction that has begun; None where none has.
        self._open: Transaction | None = None
        #: The GTID that was told for what comes next.
        self._next_gtid: str | None = None
        self._is_standalone = self._is_xa = self._is_left_out = False
        #: Rows of it that are not given.
        self._held = HeldRows()
        #: Its end, where rows of it are left to give.
        self._ending: Event | None = None
        self._server_id, self._stream_file = 0, place.file
        self._begin_at = self._server_id, self._stream_file, 0
        self._tables = Tables(settings, facts, warn)
        self._rows: list[tuple[Any, ...]] = []
        self._retracts: list[bool] = []
        self._of: list[Transaction] = []
        self._bytes = self._handled = self._limit = 0

    @property
    def place(self) -> Place:
        """Behind the last transaction that is read."""
        return Place(self._file, self._offset, self._gtids.text() if self._gtids is not None else None)

    @property
    def resumes_at(self) -> tuple[Place, Begun | None]:
        """Where another stream would go on."""
        return self.place, self.begun

    @property
    def prepared(self) -> tuple[str, ...]:
        """XA transactions that were read, and have not ended."""
        return tuple(sorted(self._prepared))

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Who is told, from now on."""
        self._warn = self._tables.warn = warn

    def leave_out(self, is_in_snapshot: Sees | None) -> None:
        """Do not look at transactions that the whole snapshot has seen, nor at what the table was like then."""
        self._is_in_snapshot = is_in_snapshot

    def close(self) -> None:
        self._stream.close()

    def read(self, limit: int, seconds: float) -> Block | None:
        """About so many rows; None where there was nothing about the table. Waits at most so long.

        Raises `DataError` for what cannot be read, and what connections raise.
        """
        self._rows, self._retracts, self._of = [], [], []
        self._bytes = self._handled = 0
        self._limit = limit
        self.is_quiet = False
        goes_on = True
        if self._ending is not None:
            goes_on = self._complete(self._ending)
        if goes_on and not self.is_done and not self._cut():
            self.is_quiet = not self._stream.receive(self._take, seconds=seconds)
            self._cut()
        if not self._rows:
            return None
        return Block(rows=self._rows, is_retract=np.array(self._retracts, dtype=np.bool_), transactions=self._of)

    def batch(self, block: Block) -> pa.RecordBatch:
        """The rows of a block."""
        columns = self._settings.columns
        arrays = self._arrays(block, range(len(columns)))
        return pa.RecordBatch.from_arrays(arrays, schema=self._settings.follow.schema)

    def keys(self, block: Block) -> Sequence[pa.Array]:
        """The columns of the primary key."""
        names = [column.name for column in self._tables.wanted]
        return self._arrays(block, [names.index(column.name) for column in self._settings.key])

    def _arrays(self, block: Block, places: Sequence[int]) -> list[pa.Array]:
        return [
            make_array(
                [row[place] for row in block.rows], self._tables.wanted[place].type, self._tables.wanted[place].name
            )
            for place in places
        ]

    def _take(self, event: Event) -> bool:
        """Handle one event; whether more are wanted."""
        self._handled += 1
        code = event.code
        goes_on = True
        if code in events.ROW_KINDS:
            goes_on = self._take_rows(event)
        elif code == events.TABLE_MAP:
            self._take_table(event.body)
        elif code in (events.MARIADB_GTID, events.GTID, events.ANONYMOUS_GTID):
            self._take_gtid(event)
        elif code in (events.QUERY, events.QUERY_COMPRESSED):
            goes_on = self._take_query(events.read_query(event, self._facts.charsets), event)
        elif code in (events.XID, events.XA_PREPARE):
            goes_on = self._end(event)
        elif code == events.ROTATE:
            self._take_rotate(event)
        elif code == events.FORMAT:
            self._void()
            self._server_id = event.server_id
            self._pass(event)
        elif code in REFUSED_EVENTS:
            raise EventError(f"{self._where()}: {REFUSED_EVENTS[code]}")
        else:
            self._pass(event)
        return goes_on and not self.is_done and self._handled < _BLOCK_EVENTS

    def _take_gtid(self, event: Event) -> None:
        if event.code == events.MARIADB_GTID:
            gtid = events.read_mariadb_gtid(event)
            self._next_gtid, self._is_standalone, self._is_xa = gtid.text, gtid.is_standalone, gtid.is_xa
            if not gtid.is_standalone:
                self._begin(event)
        else:
            self._next_gtid = events.read_mysql_gtid(event) if event.code == events.GTID else None
            self._is_standalone = True  # until a BEGIN follows

    def _begin(self, event: Event) -> None:
        self._open = Transaction(self._file, self._offset, self._next_gtid)
        self._begin_at = self._server_id, self._stream_file, event.end
        begun = self.begun
        if begun is not None and not begun.is_same(self._next_gtid, *self._begin_at):
            raise DataError(
                f"{self._where()}: {begun.rows} rows of a transaction were read, and another one comes in its place: "
                "the server is another one, which has transactions in another order, or has lost some when it died. "
                "Start the job over, without its state"
            )
        self._held = HeldRows(begun.rows if begun is not None else 0)
        self._is_left_out = self._is_in_snapshot is not None and self._is_in_snapshot(self._open)

    def _end(self, event: Event) -> bool:
        """The transaction, or the statement that stands alone, is complete; whether more is wanted."""
        if self._held.lacks:
            raise DataError(
                f"{self._where()}: the transaction that comes next has fewer rows of the table than were read of it. "
                "Start the job over, without its state"
            )
        if event.code == events.XA_PREPARE:
            self._prepared |= events.read_prepared(event)
        return self._complete(event)

    def _complete(self, event: Event) -> bool:
        """Give the rows of a transaction that has ended; behind the last one it is read. Whether more is wanted."""
        self._give()
        if self._held:
            self._ending = event
            return False
        self._ending = None
        if self._gtids is not None and self._next_gtid is not None:
            self._gtids.add(self._next_gtid)
        self._forget_open()
        self.begun = None
        self._move(event, goes_up=True)
        return len(self._rows) < self._limit

    def _forget_open(self) -> None:
        self._open, self._next_gtid, self._is_xa, self._is_standalone = None, None, False, False
        self._held = HeldRows()

    def _void(self) -> None:
        """A file that ends in the middle of a transaction: the server died while it wrote it."""
        if self._open is None and self._next_gtid is None:
            return
        if self.begun is not None:
            raise DataError(
                f"{self._where()}: the server died while it wrote a transaction into its binlog, which does not count, "
                "and rows of it were read. Start the job over, without its state"
            )
        self._forget_open()

    def _pass(self, event: Event) -> None:
        """An event that says nothing; outside of transactions the place is behind it."""
        if self._open is None and self._next_gtid is None:
            self._move(event)

    def _move(self, event: Event, *, goes_up: bool = False) -> None:
        if event.end and not event.flags & events.ARTIFICIAL:
            is_same, end = self._file == self._stream_file, event.end
            # The log has 32 bits of it; and the head of a file comes again wherever a stream begins in it.
            while is_same and goes_up and end < self._offset:
                end += 1 << 32
            self._file, self._offset = self._stream_file, max(end, self._offset if is_same else 0)
        self._check_end()

    def _check_end(self) -> None:
        if self._until is not None and self._sight().has_reached(self._until):
            self.is_done = True

    def _sight(self) -> Sight:
        return Sight(self.place, is_mariadb=self._is_mariadb)

    def _take_rotate(self, event: Event) -> None:
        file, offset = events.read_rotate(event.body)
        if file != self._stream_file:
            self._void()
        self._stream_file = file
        self._tables.forget()
        if self._open is None and (file_order(file), offset) > (file_order(self._file), self._offset):
            self._file, self._offset = file, offset

    def _take_query(self, query: Query, event: Event) -> bool:
        """Whether more is wanted."""
        text = query.text.strip().rstrip(";")
        word = text[:24].upper()
        if word == "BEGIN" or word.startswith("XA START"):
            self._is_xa = self._is_xa or word != "BEGIN"
            self._is_standalone = False
            self._begin(event)
            return True
        if self._open is not None and word in ("COMMIT", "ROLLBACK"):
            if word == "ROLLBACK" and not self._held.take_back():
                raise self._taken_back()
            return self._end(event)
        if self._open is None:
            self._begin(event)
            is_alone = not text.upper().endswith("START TRANSACTION")
        else:
            is_alone = self._is_standalone
            if not self._held.heed_savepoint(text):
                raise self._taken_back()
        if word.startswith(("XA COMMIT", "XA ROLLBACK")):
            self._end_prepared(text)
        if not self._is_left_out:
            self._heed(query)
        return self._end(event) if is_alone else True

    def _taken_back(self) -> DataError:
        return DataError(
            f"{self._where()}: a transaction that the binlog has was rolled back, in whole or in part, behind rows "
            "that were read of it. Start the job over, without its state; a larger batch_rows reads more of a "
            "transaction at once"
        )

    def _end_prepared(self, statement: str) -> None:
        xid = events.find_xid(statement)
        is_known = xid in self._prepared
        self._prepared.discard(xid)
        is_commit = statement[:9].upper() == "XA COMMIT" and not statement.upper().endswith("ONE PHASE")
        if is_commit and not is_known and not self._is_left_out:
            raise DataError(
                f"{self._where()}: the XA transaction {xid} was committed, which had been prepared before the job "
                "began: nobody knows whether rows of the table are in it. Start the job over, without its state, while "
                "XA RECOVER shows none"
            )

    def _heed(self, query: Query) -> None:
        """A statement may change rows, or the table, without telling the rows."""
        effect = next(filter(None, (self._effect(query.schema, text) for text in query.readings)), None)
        if effect is None:
            return
        text = f"{self._where()}: {EFFECTS[effect]}"
        if effect is Effect.TRUNCATED and self._settings.follow.ignores_truncate:
            self._warn(f"{text}; on_truncate: ignore leaves its rows in the results")
            return
        again = "Start the job over, without its state"
        if effect is Effect.TRUNCATED:
            again += ", or go on with on_truncate: ignore"
        raise DataError(f"{text}. {again}")

    def _effect(self, schema: str, statement: str) -> Effect | None:
        name = self._settings.name
        plain = statement.lower().replace("``", "`")
        if name.name.lower() not in plain and name.schema.lower() not in plain:
            return None
        return effect_of(statement, schema, name, folds_case=self._facts.folds_case)

    def _take_table(self, body: bytes) -> None:
        try:
            # What the table was like does not matter where its rows are left out.
            self._tables.take(body, is_read=not self._is_left_out)
        except DataError as error:
            raise type(error)(f"{self._where()}: {error.message}") from error

    def _take_rows(self, event: Event) -> bool:
        reader = self._tables.reader(event)
        if reader is None:
            return True
        if self._open is None:
            raise EventError(f"{self._where()}: rows are outside of a transaction")
        if self._is_xa:
            raise DataError(
                f"{self._where()}: rows were changed in an XA transaction, whose changes are in the binlog before it "
                "is certain that they stay. These are not read: write to the table without XA"
            )
        kind = events.ROW_KINDS[event.code]
        rows: Sequence[Any] = reader.read(event)
        if kind == events.UPDATE:
            rows = list(zip(rows[::2], rows[1::2], strict=True))
        self._bytes += len(event.body)
        each = 2 if kind == events.UPDATE else 1
        if self._settings.follow.inserts_only and kind != events.WRITE:
            each = 0
        self._held.add(kind, rows, each=each, size=len(event.body))
        return self._held.count < self._settings.follow.batch_rows and self._bytes < _BLOCK_BYTES

    def _cut(self) -> bool:
        """Give rows of a transaction that goes on, where they are too many to be held; whether there were any."""
        held = self._held
        if self._rows or not held or (held.count < self._settings.follow.batch_rows and held.size < _BLOCK_BYTES):
            return False
        self._give()
        return True

    def _give(self) -> None:
        """Rows that are held, as many as are wanted."""
        if not self._held:
            return
        assert self._open is not None
        for kind, each, rows in self._held.take(self._limit - len(self._rows)):
            if not each:
                self.ignored += len(rows)
            elif each == 2:
                for before, after in rows:
                    self._rows += (before, after)
                self._retracts += [True, False] * len(rows)
            else:
                self._rows += rows
                self._retracts += [kind == events.DELETE] * len(rows)
            self._of += [self._open] * (each * len(rows))
        self.begun = Begun(self._held.given, self._open.gtid, *self._begin_at)

    def _where(self) -> str:
        return f"table {self._settings.name}, in the binlog behind {self.place.display()}"
