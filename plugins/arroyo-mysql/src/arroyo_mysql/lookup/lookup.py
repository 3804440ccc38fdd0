"""`mysql.lookup`: the rows of some keys, by an index."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, TypeVar

import pyarrow as pa
from arroyo_connectors import IdleConnections, PartedLookup

from arroyo_core.errors import ConfigError, DataError
from arroyo_mysql.connection import Server, Session
from arroyo_mysql.errors import error_number
from arroyo_mysql.literals import key_condition, statements
from arroyo_mysql.lookup.settings import LookupSettings
from arroyo_mysql.result_columns import ResultColumn, describe

T = TypeVar("T")

#: An answer in a session that only reads.
_READ_ONLY = 1792
#: The connection is gone.
_BROKEN = frozenset({0, 2006, 2013, 2055, 4031, 1927})
_STATEMENT_BYTES = 1 << 20
#: How long a question may take, in seconds.
ANSWER_S = 60


class MysqlLookup(PartedLookup):
    """A table, a view or a query."""

    # Beyond a thousand MariaDB makes a table of the keys, and may read the whole other one to join them.
    keys_at_once: ClassVar[int] = 500

    def __init__(self, settings: LookupSettings) -> None:
        self._settings = settings
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
        import pymysql

        server = self._settings.server
        with server.translating(f"cannot look up rows of {self.name()}"):
            try:
                return sessions.ask(server, ask, is_broken=_is_broken)
            except pymysql.Error as error:
                if error_number(error) != _READ_ONLY:
                    raise
                raise ConfigError(f"a lookup only reads: {error.args[1]}", field="query") from error


def _connect(server: Server) -> Session:
    session = server.connect(answer_s=ANSWER_S, raw=True)
    # Questions change nothing.
    session.execute("set session transaction read only")
    return session


def _is_broken(error: Exception) -> bool:
    import pymysql

    is_of_connection = isinstance(error, pymysql.OperationalError | pymysql.InterfaceError)
    return is_of_connection and error_number(error) in _BROKEN


#: Those of this process.
sessions = IdleConnections(_connect).keep_for_process()
