"""`template.sink`: rows and the token of their epoch in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa
from arroyo_connectors import Mode, SqlWriter, Target, TokenTable, TransactionalSink, Writer

from arroyo_core.api import DisplayableOperator
from arroyo_template_database.database import column_type, listed, open_database, quoted, translate


class DatabaseSink(TransactionalSink):
    """Says what to write to; the base stages rows, keeps the last of each key, and decides what a commit does."""

    def __init__(self, path: str, table: str, *, mode: Mode, keys: Sequence[str], deleted_column: str) -> None:
        super().__init__(mode=mode, keys=keys, deleted_column=deleted_column)
        self._path = path
        self._table = table

    def name(self) -> str:
        return "template.sink"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("path", self._path), ("table", self._table), ("mode", self.mode)])

    def target(self, schema: pa.Schema) -> Target:
        return Table(self._path, self._table, schema, self.keys)

    def check_rows(self, schema: pa.Schema) -> None:
        for field in schema:
            column_type(field)

    def token_place(self) -> str:
        return self._path


class Table(Target):
    """A table, for one commit."""

    def __init__(self, path: str, table: str, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._path = path
        self._table = table
        self._schema = schema
        self._keys = keys

    def name(self) -> str:
        return f"table {self._table!r} of {self._path}"

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with closing(open_database(self._path)) as database:
            # From here on nobody else writes, and so nobody else takes the token. To close it is to roll back.
            database.execute("begin immediate")
            tokens = TokenTable(database.execute)
            tokens.create()
            database.execute(self._create())
            yield TableWriter(database, tokens, self._table)
            database.execute("commit")

    def translate(self, error: Exception) -> Exception | None:
        return translate(error)

    def _create(self) -> str:
        columns = [f"{quoted(field.name)} {column_type(field)}" for field in self._schema]
        if self._keys:
            columns.append(f"primary key ({listed(self._keys)})")
        return f"create table if not exists {quoted(self._table)} ({', '.join(columns)})"


class TableWriter(SqlWriter):
    """The inside of a transaction."""

    def __init__(self, database: sqlite3.Connection, tokens: TokenTable, table: str) -> None:
        super().__init__(tokens)
        self._database = database
        self._table = quoted(table)

    def add(self, rows: pa.RecordBatch) -> None:
        self._write("insert", rows)

    def replace(self, rows: pa.RecordBatch) -> None:
        self._write("insert or replace", rows)

    def remove(self, keys: pa.RecordBatch) -> None:
        same = " and ".join(f"{quoted(name)} = ?" for name in keys.schema.names)
        self._database.executemany(f"delete from {self._table} where {same}", _values(keys))

    def _write(self, statement: str, rows: pa.RecordBatch) -> None:
        names = rows.schema.names
        into = f"{self._table} ({listed(names)}) values ({', '.join('?' for _ in names)})"
        self._database.executemany(f"{statement} into {into}", _values(rows))


def _values(rows: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)
