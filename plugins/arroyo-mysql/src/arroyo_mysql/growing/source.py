"""`mysql.source`: the next rows by a column that grows, batch after batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from arroyo_connectors import GrowingSource

from arroyo_core.api import Dataset
from arroyo_mysql.connection import Session
from arroyo_mysql.growing.settings import SourceColumns, SourceSettings, find_columns, read_columns, value_literal
from arroyo_mysql.names import quoted

#: How long a query may take, in seconds.
ANSWER_S = 600


class MysqlSource(GrowingSource):
    """A table, a view or a query."""

    def __init__(self, settings: SourceSettings) -> None:
        super().__init__(settings.growing)
        self._settings = settings
        self._session: Session | None = None
        #: Set by `open_schema`, which is called first.
        self._columns: SourceColumns

    def name(self) -> str:
        return "mysql.source"

    def datasets(self) -> Sequence[Dataset]:
        table, server = self._settings.table, self._settings.server
        return [server.dataset(table.schema, table.name)] if table is not None else []

    def find_schema(self) -> pa.Schema:
        return find_columns(self._settings).schema

    def open_schema(self) -> pa.Schema:
        self._columns = read_columns(self._settings, self._open())
        return self._columns.schema

    def read_page(self, after: str | None, end: str | None, limit: int) -> pa.Table:
        columns = self._columns
        session = self._open()
        # Both queries see the same rows: no page is empty because somebody has deleted some between them.
        session.execute("start transaction with consistent snapshot, read only")
        rows = self._read_rows(session, after, end, limit)
        session.execute("commit")
        values = list(zip(*rows, strict=True)) if rows else [()] * (len(columns.read) + 1)
        arrays = [column.make_array(list(each)) for column, each in zip(columns.read, values[:-1], strict=True)]
        schema = columns.schema.append(pa.field("position", pa.string()))
        return pa.Table.from_arrays([*arrays, pa.array(values[-1], pa.string())], schema=schema)

    def _read_rows(self, session: Session, after: str | None, end: str | None, limit: int) -> list[tuple[Any, ...]]:
        columns, growing = self._columns, quoted(self._growing.column)
        conditions = self._conditions(columns, after, end)
        # Rows of one value come together: up to that of the last row, and all that have it.
        bound = session.execute(
            f"select {growing} from {self._settings.relation} where {' and '.join(conditions)} "
            f"order by {growing} limit 1 offset {limit - 1}"
        )
        if bound:
            conditions.append(f"{growing} <= {value_literal(bound[0][0], columns.growing.type)}")
        wanted = ", ".join([*(each.sql for each in columns.read), growing])
        return list(
            session.execute(
                f"select {wanted} from {self._settings.relation} where {' and '.join(conditions)} order by {growing}"
            )
        )

    def read_end(self) -> str | None:
        growing = quoted(self._growing.column)
        found = self._open().execute(
            f"select {growing} from {self._settings.relation} where {growing} is not null "
            f"order by {growing} desc limit 1"
        )
        return str(found[0][0]) if found else None

    def translating(self) -> AbstractContextManager[None]:
        return self._settings.server.translating(f"cannot read {self._growing.name}")

    def disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _conditions(self, columns: SourceColumns, after: str | None, end: str | None) -> list[str]:
        growing = quoted(self._growing.column)
        conditions = [f"{growing} is not null"]
        for operator, value in ((">", after), ("<=", end)):
            if value is not None:
                conditions.append(f"{growing} {operator} {value_literal(value, columns.growing.type)}")
        if self._settings.delay_us:
            conditions.append(f"{growing} < utc_timestamp(6) - interval {self._settings.delay_us} microsecond")
        return conditions

    def _open(self) -> Session:
        if self._session is None:
            # The session is closed by the server where nobody reads for long, which is no outage: hence the time.
            idle_s = max(600, int(2 * self._growing.poll_s))
            self._session = self._settings.server.connect(idle_s=idle_s, answer_s=ANSWER_S, raw=True)
            self._session.execute("set session transaction isolation level repeatable read, read only")
        return self._session
