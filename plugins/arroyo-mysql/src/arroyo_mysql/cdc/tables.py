"""Which tables the numbers in row events mean, and what reads their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arroyo_core.errors import DataError
from arroyo_mysql.cdc import binlog_events as events
from arroyo_mysql.cdc.binlog_events import Event, RowReader, TableMap
from arroyo_mysql.cdc.binlog_types import BinlogColumn, Read, reader_of, skipper_of
from arroyo_mysql.cdc.refusals import check_type
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.result_columns import ResultColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogFacts:
    """What a reader has to know of the server."""

    #: The character set of each collation.
    charsets: Mapping[int, str]
    folds_case: bool


class Tables:
    """The tables of one stream: one of them is read, and the others are not."""

    def __init__(self, settings: CdcSettings, facts: BinlogFacts, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._facts = facts
        self.warn = warn
        #: By the numbers that events have; None for other tables.
        self._readers: dict[int, RowReader | None] = {}
        self._map: bytes | None = None
        self._map_reader: RowReader | None = None
        self._known_columns: set[str] = set(settings.table.known)
        names = [column.name for column in settings.columns]
        #: The columns of the rows: those that are read, and then those of the key.
        self.wanted: list[ResultColumn] = [
            *settings.columns,
            *(column for column in settings.key if column.name not in names),
        ]

    def forget(self) -> None:
        """Numbers of tables are the server's own, and begin again where it does."""
        self._readers, self._map, self._map_reader = {}, None, None

    def reader(self, event: Event) -> RowReader | None:
        """What reads the rows of an event; None for another table."""
        return self._readers.get(events.rows_table(event.body))

    def take(self, body: bytes, *, is_read: bool) -> None:
        """A table map. Raises `DataError` where rows of the table cannot be read as they were planned."""
        table_id, schema, table = events.read_table_name(body)
        if not is_read or not self._is_ours(schema, table):
            self._readers[table_id] = None
            return
        if self._map is None or body[6:] != self._map[6:]:
            self._map_reader = self._adopt(events.read_table_map(body, is_mariadb=self._settings.table.is_mariadb))
            self._map = body
        self._readers[table_id] = self._map_reader

    def _is_ours(self, schema: str, table: str) -> bool:
        name = self._settings.name
        if self._facts.folds_case:
            return (schema.lower(), table.lower()) == (name.schema.lower(), name.name.lower())
        return (schema, table) == (name.schema, name.name)

    def _adopt(self, table: TableMap) -> RowReader:
        """The rows that come have these columns: all that are read must be there, as they are read."""
        if table.columns is None:
            raise DataError(
                "the binlog does not have the names of its columns. Run SET GLOBAL binlog_row_metadata = "
                "FULL, and start the job over: what was written before cannot be read"
            )
        found = {column.name: (place, column) for place, column in enumerate(table.columns)}
        for column in self.wanted:
            if column.name not in found:
                raise DataError(
                    f"it has no column {column.name!r}, which was dropped, renamed, or added after these "
                    f"changes; plan the pipeline again, or choose from {', '.join(found)} with columns: [...]"
                )
            check_type(column, found[column.name][1])
        for name in sorted(found.keys() - self._known_columns):
            self._known_columns.add(name)
            self.warn(
                f"table {self._settings.name} has a new column {name!r}, which is left out until the pipeline is "
                "planned again"
            )
        readers = [self._reader(column) for column in table.columns]
        return RowReader(readers, [found[column.name][0] for column in self.wanted])

    def _reader(self, column: BinlogColumn) -> Read:
        """Also of columns that are not read: what is behind them is."""
        if column.name not in [each.name for each in self.wanted]:
            return skipper_of(column)
        return reader_of(column, self._facts.charsets.get(column.collation, f"of collation {column.collation}"))
