"""`mysql.sink`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import pyarrow as pa
from arroyo_connectors import Target, TransactionalSink

from arroyo_core.api import Dataset, DisplayableOperator
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ExternalError
from arroyo_mysql.connection import Session
from arroyo_mysql.literals import check_values
from arroyo_mysql.sink.create import check_creatable
from arroyo_mysql.sink.settings import SinkSettings
from arroyo_mysql.sink.table import find_table, missing_table
from arroyo_mysql.sink.target import MysqlTarget


class MysqlSink(TransactionalSink):
    """Rows of a stream in a table, exactly once."""

    def __init__(self, settings: SinkSettings, connect: Callable[[], Session] | None = None) -> None:
        super().__init__(mode=settings.mode, keys=settings.keys, deleted_column=settings.deleted_column)
        self._settings = settings
        self._connect = connect

    def name(self) -> str:
        return "mysql.sink"

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [("database", settings.server.display()), ("table", str(settings.table)), ("mode", str(settings.mode))]
        if settings.keys:
            fields.append(("keys", ", ".join(settings.keys)))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        table = self._settings.table
        return [self._settings.server.dataset(table.schema, table.name)]

    def token_place(self) -> str:
        server = self._settings.server
        return f"table {self._settings.token_table} of {server.host}:{server.port}"

    def check_rows(self, schema: pa.Schema) -> None:
        """Ask the database. Where nobody answers the commit will: a job can start before its database does."""
        if current_policy().is_untrusted:
            return
        settings = self._settings
        try:
            with (
                closing(settings.server.connect()) as session,
                settings.server.translating(f"cannot look at table {settings.table}"),
            ):
                table = find_table(session, settings.table)
        except ExternalError:
            return
        if table is not None:
            table.check(schema, mode=str(settings.mode), keys=settings.keys)
        elif not settings.creates_table:
            raise missing_table(settings.table)
        else:
            check_creatable(schema, settings.keys)

    def check_batch(self, rows: pa.RecordBatch) -> None:
        check_values(rows)

    def target(self, schema: pa.Schema) -> Target:
        return MysqlTarget(self._settings, schema, self._connect)
