"""The table as one commit sees it: COPY, and the token, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from arroyo_connectors import Committed, Target, TokenKey, Writer

from arroyo_postgres.sink.settings import SinkSettings
from arroyo_postgres.sink.table import (
    SinkTable,
    create_table,
    create_token_table,
    find_table,
    missing_table,
    quoted,
    statement,
)
from arroyo_postgres.sink.texts import encode_csv

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[Any]"
Connect: TypeAlias = Callable[[], Connection]

#: A driver that is paused in the middle of a commit holds its locks no longer than this.
_SESSION = {"idle_in_transaction_session_timeout": "60s"}
#: Nor in the middle of a batch; what moves rows between tables may take as long as it does.
_BATCH_TIMEOUT = "set local statement_timeout = '120s'"
_NO_TIMEOUT = "set local statement_timeout = 0"
_CHANGED, _GONE = "arroyo_changed_rows", "arroyo_gone_keys"


class PostgresTarget(Target):
    """One table of one database."""

    def __init__(self, settings: SinkSettings, rows: pa.Schema, connect: Connect | None = None) -> None:
        self._settings = settings
        self._rows = rows
        self._connect = connect or (lambda: settings.server.connect(name="arroyo sink", settings=_SESSION))

    def name(self) -> str:
        return f"table {self._settings.table!r} of {self._settings.server.display()}"

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with closing(self._connect()) as connection:
            tokens = create_token_table(connection, self._settings.token_table)
            table = self._prepare(connection)
            # Whatever is the default: each statement must see what others have committed.
            connection.execute("begin isolation level read committed")
            connection.execute(_BATCH_TIMEOUT)
            writer = PostgresWriter(connection, table, tokens=tokens, keys=self._settings.keys)
            yield writer
            writer.finish()
            connection.execute("commit")

    def translate(self, error: Exception) -> Exception | None:
        import psycopg

        if isinstance(error, psycopg.Error):
            return self._settings.server.translate(error, f"cannot write to {self.name()}")
        return None

    def _prepare(self, connection: Connection) -> SinkTable:
        """The table, which is made before the transaction: two drivers may do that at once."""
        settings = self._settings
        table = find_table(connection, settings.table)
        if table is None:
            if not settings.creates_table:
                raise missing_table(settings.table)
            create_table(connection, settings.table, self._rows, settings.keys)
            table = find_table(connection, settings.table)
            if table is None:
                raise missing_table(settings.table)
        table.check(self._rows, mode=str(settings.mode), keys=settings.keys)
        return table


class PostgresWriter(Writer):
    """Rows that are added go to the table at once; changes to temporary tables, and from there with one statement."""

    def __init__(self, connection: Connection, table: SinkTable, *, tokens: str, keys: Sequence[str]) -> None:
        """`tokens` is the table of tokens as SQL has it."""
        self._connection = connection
        self._table = table
        # Beside parameters a percent sign is written twice.
        self._tokens = tokens.replace("%", "%%")
        self._keys = keys
        self._changed: list[str] = []
        self._has_gone = False

    def lock_token(self, key: TokenKey) -> Committed | None:
        # Makes the row where there is none, and locks it in either case: who comes second waits for the first.
        row = self._connection.execute(
            statement(
                f"insert into {self._tokens} as held (incarnation, node, generation, epoch) values (%s, %s, 0, 0) "
                "on conflict (incarnation, node) do update set epoch = held.epoch returning generation, epoch"
            ),
            [key.incarnation, key.node],
        ).fetchone()
        assert row is not None
        return Committed(*row) if row != (0, 0) else None

    def write_token(self, key: TokenKey, committed: Committed, *, is_new: bool) -> None:
        self._connection.execute(
            statement(f"update {self._tokens} set generation = %s, epoch = %s where incarnation = %s and node = %s"),
            [committed.generation, committed.epoch, key.incarnation, key.node],
        )

    def add(self, rows: pa.RecordBatch) -> None:
        self._copy(self._table.quoted, rows)

    def replace(self, rows: pa.RecordBatch) -> None:
        if not self._changed:
            self._changed = list(rows.schema.names)
            self._make_temporary(_CHANGED, self._changed)
        self._copy(f"pg_temp.{_CHANGED}", rows)

    def remove(self, keys: pa.RecordBatch) -> None:
        if not self._has_gone:
            self._has_gone = True
            self._make_temporary(_GONE, keys.schema.names)
        self._copy(f"pg_temp.{_GONE}", keys)

    def finish(self) -> None:
        """Bring the changes into the table. No key is in both: only its last change comes."""
        if not self._changed and not self._has_gone:
            return
        self._connection.execute(_NO_TIMEOUT)
        table, keys = self._table.quoted, ", ".join(quoted(key) for key in self._keys)
        if self._has_gone:
            same = " and ".join(f"here.{quoted(key)} = gone.{quoted(key)}" for key in self._keys)
            self._connection.execute(
                statement(f"delete from {table} as here using pg_temp.{_GONE} as gone where {same}")
            )
        if self._changed:
            columns = ", ".join(quoted(name) for name in self._changed)
            others = [quoted(name) for name in self._changed if name not in self._keys]
            action = f"update set {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "nothing"
            self._connection.execute(
                statement(
                    f"insert into {table} ({columns}) select {columns} from pg_temp.{_CHANGED} "
                    f"on conflict ({keys}) do {action}"
                )
            )

    def _make_temporary(self, name: str, columns: list[str]) -> None:
        wanted = ", ".join(quoted(column) for column in columns)
        self._connection.execute(
            statement(
                f"create temporary table {name} on commit drop as "
                f"select {wanted} from {self._table.quoted} with no data"
            )
        )

    def _copy(self, table: str, rows: pa.RecordBatch) -> None:
        columns = ", ".join(quoted(name) for name in rows.schema.names)
        data = encode_csv(rows)
        with (
            self._connection.cursor() as cursor,
            cursor.copy(statement(f"copy {table} ({columns}) from stdin (format csv)")) as copy,
        ):
            copy.write(data)
