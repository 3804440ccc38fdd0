"""`mysql.lookup`: the rows of some keys, by an index."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, TypeVar

import pyarrow as pa
from arroyo_connectors import PartedLookup

from arroyo_core.errors import ConfigError, DataError
from arroyo_mysql.connection import Session
from arroyo_mysql.errors import error_number
from arroyo_mysql.literals import key_condition, statements
from arroyo_mysql.lookup.idle_sessions import IdleSessions, idle_sessions
from arroyo_mysql.lookup.settings import LookupSettings
from arroyo_mysql.result_columns import ResultColumn, describe

T = TypeVar("T")

#: An answer in a session that only reads.
_READ_ONLY = 1792
#: The connection is gone.
_BROKEN = frozenset({0, 2006, 2013, 2055, 4031, 1927})
_STATEMENT_BYTES = 1 << 20


class MysqlLookup(PartedLookup):
    """A table, a view or a query."""

    # Beyond a thousand MariaDB makes a table of the keys, and may read the whole other one to join them.
    keys_at_once: ClassVar[int] = 500

    def __init__(self, settings: LookupSettings, sessions: IdleSessions | None = None) -> None:
        self._settings = settings
        self._sessions = sessions
        self._described: tuple[ResultColumn, ...] | None = None

    def name(self) -> str:
        return self._settings.name

    def cache_key(self) -> Hashable:
        return ("mysql.lookup", self._settings)

    def schema(self) -> pa.Schema:
        self._described = self._run(self._describe)
        return pa.schema([pa.field(each.name, each.type) for each in self._described])

    def check_keys(self, keys: Sequence[str]) -> None:
        for each in self._columns():
            # Two floats that look the same need not be equal here and there.
            kind = each.type
            if each.name in keys and (pa.types.is_floating(kind) or pa.types.is_duration(kind)):
                raise ConfigError(f"column {each.name!r} is {kind}: rows are not looked up by such values")

    def ask(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        found = {each.name: each for each in self._columns()}
        missing = [name for name in schema.names if name not in found]
        if missing:
            raise DataError(
                f"{self.name()} had a column {missing[0]!r} when the pipeline was planned, and has none now"
            )
        columns = [found[name] for name in schema.names]
        (batch,) = keys.combine_chunks().to_batches()
        condition = key_condition(batch)
        wanted = ", ".join(each.sql for each in columns)
        before = f"select {wanted} from {self._settings.relation} where {condition.before}"
        questions = list(
            statements(
                condition.texts, before, condition.separator, condition.after, _STATEMENT_BYTES, self.keys_at_once
            )
        )
        rows = self._run(lambda session: [row for question in questions for row in session.execute(question)])
        values = zip(*rows, strict=True) if rows else ([] for _ in columns)
        arrays = [column.make_array(list(each)) for column, each in zip(columns, values, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _columns(self) -> tuple[ResultColumn, ...]:
        if self._described is None:
            self._described = self._run(self._describe)
        return self._described

    def _describe(self, session: Session) -> tuple[ResultColumn, ...]:
        return describe(session, self._settings.relation, self._settings.columns)

    def _run(self, ask: Callable[[Session], T]) -> T:
        """Ask in an idle session; where that is broken, once more in a new one."""
        import pymysql

        sessions, server = self._sessions or idle_sessions(), self._settings.server
        with server.translating(f"cannot look up rows of {self.name()}"):
            try:
                if sessions.has_idle(server):
                    try:
                        with sessions.taken(server) as session:
                            return ask(session)
                    except (pymysql.OperationalError, pymysql.InterfaceError) as error:
                        # It may have been closed while nobody used it: by the server, or by what is between.
                        if error_number(error) not in _BROKEN:
                            raise
                with sessions.taken(server, is_new=True) as session:
                    return ask(session)
            except pymysql.Error as error:
                if error_number(error) != _READ_ONLY:
                    raise
                raise ConfigError(f"a lookup only reads: {error.args[1]}", field="query") from error
