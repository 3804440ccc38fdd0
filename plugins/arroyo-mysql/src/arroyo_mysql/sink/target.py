"""The table as one commit sees it: INSERTs of many rows, and the token, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from arroyo_connectors import Committed, Target, TokenKey, Writer

from arroyo_core.errors import DataError
from arroyo_mysql.connection import Session
from arroyo_mysql.literals import key_condition, row_literals, statements
from arroyo_mysql.names import TableName, quoted, text_literal
from arroyo_mysql.sink.create import check_creatable, create_table, create_token_table
from arroyo_mysql.sink.settings import SinkSettings
from arroyo_mysql.sink.table import SinkTable, find_table, missing_table

#: The server ends a transaction of a driver that is paused for longer than this, in seconds.
IDLE_S = 60
#: Larger statements are no faster.
STATEMENT_BYTES = 1 << 20
STATEMENT_ROWS = 100_000
#: How many keys are deleted at once: beyond some MBs of ranges the server would read the whole table.
DELETED_KEYS = 500


class MysqlTarget(Target):
    """One table of one database."""

    def __init__(self, settings: SinkSettings, rows: pa.Schema, connect: Callable[[], Session] | None = None) -> None:
        self._settings = settings
        self._rows = rows
        self._connect = connect or (lambda: settings.server.connect(idle_s=IDLE_S))

    def name(self) -> str:
        return f"table {str(self._settings.table)!r} of {self._settings.server.display()}"

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with closing(self._connect()) as session:
            # All that makes tables comes first: it would end the transaction.
            self._prepare_tokens(session)
            table = self._prepare(session)
            ((limit,),) = session.execute("select @@session.max_allowed_packet")
            # No locks on gaps between rows, which others may write into.
            session.execute("set transaction isolation level read committed")
            session.execute("start transaction")
            yield MysqlWriter(
                session, table, tokens=self._settings.token_table, keys=self._settings.keys, packet_bytes=limit
            )
            session.execute("commit")

    def translate(self, error: Exception) -> Exception | None:
        import pymysql

        if isinstance(error, pymysql.Error):
            return self._settings.server.translate(error, f"cannot write to {self.name()}")
        return None

    def _prepare_tokens(self, session: Session) -> None:
        name = self._settings.token_table
        found = find_table(session, name)
        if found is None:
            create_token_table(session, name)
            found = find_table(session, name)
        if found is None:
            raise missing_table(name)
        found.check_engine("token_table")

    def _prepare(self, session: Session) -> SinkTable:
        settings = self._settings
        table = find_table(session, settings.table)
        if table is None:
            if not settings.creates_table:
                raise missing_table(settings.table)
            check_creatable(self._rows, settings.keys)
            create_table(session, settings.table, self._rows, settings.keys)
            table = find_table(session, settings.table)
            if table is None:
                raise missing_table(settings.table)
        table.check(self._rows, mode=str(settings.mode), keys=settings.keys)
        return table


class MysqlWriter(Writer):
    """Rows and keys go to the table in statements of many."""

    def __init__(
        self, session: Session, table: SinkTable, *, tokens: TableName, keys: Sequence[str], packet_bytes: int
    ) -> None:
        self._session = session
        self._table = table.name.quoted
        self._tokens = tokens.quoted
        self._keys = tuple(keys)
        self._padded = table.padded(keys)
        # The packet has some bytes beside the statement.
        self._most_bytes = packet_bytes - 1024
        self._usual_bytes = min(self._most_bytes, STATEMENT_BYTES)

    def lock_token(self, key: TokenKey) -> Committed | None:
        # Makes the row where there is none, and locks it in either case: who comes second waits for the first.
        incarnation, node = text_literal(key.incarnation), text_literal(key.node)
        self._session.execute(
            f"insert into {self._tokens} (incarnation, node, generation, epoch) values ({incarnation}, {node}, 0, 0) "
            "on duplicate key update epoch = epoch"
        )
        ((generation, epoch),) = self._session.execute(
            f"select generation, epoch from {self._tokens} where incarnation = {incarnation} and node = {node} "
            "for update"
        )
        return Committed(generation, epoch) if (generation, epoch) != (0, 0) else None

    def write_token(self, key: TokenKey, committed: Committed, *, is_new: bool) -> None:
        self._session.execute(
            f"update {self._tokens} set generation = {committed.generation:d}, epoch = {committed.epoch:d} "
            f"where incarnation = {text_literal(key.incarnation)} and node = {text_literal(key.node)}"
        )

    def add(self, rows: pa.RecordBatch) -> None:
        self._insert(rows, "")

    def replace(self, rows: pa.RecordBatch) -> None:
        self._check_ends(rows)
        changed = [quoted(name) for name in rows.schema.names if name not in self._keys]
        # Where there is nothing but the key, something has to be set.
        changed = changed or [quoted(self._keys[0])]
        self._insert(rows, " on duplicate key update " + ", ".join(f"{name} = values({name})" for name in changed))

    def remove(self, keys: pa.RecordBatch) -> None:
        self._check_ends(keys)
        found = key_condition(keys)
        before = f"delete from {self._table} where {found.before}"
        self._run(found.texts, before, found.separator, found.after, DELETED_KEYS)

    def _insert(self, rows: pa.RecordBatch, after: str) -> None:
        columns = ", ".join(map(quoted, rows.schema.names))
        self._run(row_literals(rows), f"insert into {self._table} ({columns}) values ", ",", after, STATEMENT_ROWS)

    def _run(self, texts: pa.Array, before: str, separator: str, after: str, rows: int) -> None:
        largest = pc.max(pc.binary_length(texts)).as_py() or 0
        frame = len(before.encode()) + len(after.encode()) + len(separator)
        # As usual, or as large as it takes for a row that is larger by itself.
        limit = self._usual_bytes if largest + frame <= self._usual_bytes else self._most_bytes
        for statement in statements(texts, before, separator, after, limit, rows):
            self._session.execute(statement)

    def _check_ends(self, rows: pa.RecordBatch) -> None:
        for name in self._padded:
            ended = pc.ends_with(rows.column(name), " ").fill_null(False)
            if ended.true_count:
                value = rows.column(name).filter(ended)[0].as_py()
                raise DataError(
                    f"column {name!r} of the key has a text with a space at its end, {value[:60]!r}, and its collation "
                    "takes it for the same key as without: use utf8mb4_nopad_bin, of MySQL utf8mb4_0900_bin"
                )
