"""`postgres.source`: the next rows by a column that grows, batch after batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import psycopg
import pyarrow as pa
from arroyo_connectors import GrowingSource
from psycopg import sql

from arroyo_core.api import Dataset
from arroyo_postgres.cdc.columns import TableColumn
from arroyo_postgres.growing.settings import SourceColumns, SourceSettings, find_columns, read_columns
from arroyo_postgres.reading import copy_out, read_csv
from arroyo_postgres.sink.table import quoted, statement

#: Batches change nothing, and end.
_SESSION = {"default_transaction_read_only": "on", "statement_timeout": "10min"}


class PostgresSource(GrowingSource):
    """A table, a view or a query."""

    def __init__(self, settings: SourceSettings) -> None:
        super().__init__(settings.growing)
        self._settings = settings
        self._connection: psycopg.Connection[Any] | None = None
        #: Set by `open_schema`, which is called first.
        self._columns: SourceColumns

    def name(self) -> str:
        return "postgres.source"

    def datasets(self) -> Sequence[Dataset]:
        settings = self._settings
        return [settings.server.dataset(settings.relation)] if not settings.relation.startswith("(") else []

    def find_schema(self) -> pa.Schema:
        return find_columns(self._settings).schema

    def open_schema(self) -> pa.Schema:
        self._columns = read_columns(self._settings, self._open())
        return self._columns.schema

    def read_page(self, after: str | None, end: str | None, limit: int) -> pa.Table:
        connection, columns = self._open(), self._columns
        growing = quoted(self._growing.column)
        conditions = [f"{growing} is not null"]
        for operator, value in ((">", after), ("<=", end)):
            if value is not None:
                literal = sql.Literal(value).as_string(connection)
                conditions.append(f"{growing} {operator} {literal}::{columns.growing.sql}")
        if self._settings.delay_us:
            conditions.append(f"{growing} < now() - interval '{self._settings.delay_us} microseconds'")
        read = ", ".join(quoted(each.column.name) for each in columns.read)
        data = copy_out(
            connection,
            # The order must be that of the column, and not of its text, which has its name outside.
            f"select {read}, {growing}::text from (select * from {self._settings.relation} "
            f"where {' and '.join(conditions)} order by {growing} fetch first {limit} rows with ties) as page "
            f"order by page.{growing}",
        )
        text = TableColumn("position", 0, -1, pa.string())
        return read_csv(data, [*(each.column for each in columns.read), text])

    def read_end(self) -> str | None:
        growing = quoted(self._growing.column)
        row = (
            self._open()
            .execute(
                statement(
                    f"select value::text from (select {growing} as value from {self._settings.relation} "
                    f"where {growing} is not null order by {growing} desc limit 1) as last"
                )
            )
            .fetchone()
        )
        return row[0] if row is not None else None

    def translating(self) -> AbstractContextManager[None]:
        return self._settings.server.translating(f"cannot read {self._growing.name}")

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = self._settings.server.connect(name="arroyo source", settings=_SESSION)
        return self._connection
