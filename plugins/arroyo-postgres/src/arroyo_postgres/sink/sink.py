"""`postgres.sink`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from arroyo_connectors import Target, TransactionalSink

from arroyo_core.api import Dataset, DisplayableOperator
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ExternalError
from arroyo_postgres.sink.settings import SinkSettings
from arroyo_postgres.sink.table import find_table, missing_table
from arroyo_postgres.sink.target import Connect, PostgresTarget
from arroyo_postgres.sink.texts import check_texts


class PostgresSink(TransactionalSink):
    """Rows of a stream in a table, exactly once."""

    def __init__(self, settings: SinkSettings, connect: Connect | None = None) -> None:
        super().__init__(mode=settings.mode, keys=settings.keys, deleted_column=settings.deleted_column)
        self._settings = settings
        self._connect = connect

    def name(self) -> str:
        return "postgres.sink"

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [("database", settings.server.display()), ("table", settings.table), ("mode", str(settings.mode))]
        if settings.keys:
            fields.append(("keys", ", ".join(settings.keys)))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.server.dataset(self._settings.table)]

    def token_place(self) -> str:
        return f"table {self._settings.token_table} of {self._settings.server.display()}"

    def check_rows(self, schema: pa.Schema) -> None:
        """Ask the database. Where nobody answers the commit will: a job can start before its database does."""
        if current_policy().is_untrusted:
            return
        settings = self._settings
        try:
            with (
                settings.server.connect(name="arroyo plan") as connection,
                settings.server.translating(f"cannot look at table {settings.table!r}"),
            ):
                table = find_table(connection, settings.table)
        except ExternalError:
            return
        if table is not None:
            table.check(schema, mode=str(settings.mode), keys=settings.keys)
        elif not settings.creates_table:
            raise missing_table(settings.table)

    def check_batch(self, rows: pa.RecordBatch) -> None:
        check_texts(rows)

    def target(self, schema: pa.Schema) -> Target:
        return PostgresTarget(self._settings, schema, self._connect)
