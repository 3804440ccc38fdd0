"""`postgres.lookup`: the rows of some keys, by `= ANY`, read as CSV."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from arroyo_connectors import IdleConnections, PartedLookup, check_distinct

from arroyo_core.errors import ConfigError, DataError
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.lookup_pb2 import LookupConfig
from arroyo_postgres.reading import FoundColumn, copy_out, describe, read_csv, read_relation
from arroyo_postgres.sink.table import quoted
from arroyo_postgres.sink.texts import array_literal

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

#: Questions change nothing, and end.
_SESSION = {"default_transaction_read_only": "on", "statement_timeout": "60s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """A checked config. `relation` is what stands after FROM."""

    server: Server
    name: str
    relation: str
    columns: tuple[str, ...]


class PostgresLookup(PartedLookup):
    """A table, a view or a query. Columns come in the types that `postgres.cdc` gives them."""

    def __init__(self, settings: LookupSettings) -> None:
        self._settings = settings
        self._described: tuple[FoundColumn, ...] | None = None

    def name(self) -> str:
        return self._settings.name

    def cache_key(self) -> Hashable:
        return ("postgres.lookup", self._settings)

    def schema(self) -> pa.Schema:
        self._described = self._run(self._describe)
        return pa.schema([each.column.field for each in self._described])

    def check_keys(self, keys: Sequence[str]) -> None:
        for each in self._columns():
            if each.column.name in keys and not _is_key(each.column.type):
                raise ConfigError(f"column {each.column.name!r} is {each.sql}: rows are not looked up by such values")

    def ask(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        found = {each.column.name: each for each in self._columns()}
        missing = [name for name in schema.names if name not in found]
        if missing:
            raise DataError(
                f"{self.name()} had a column {missing[0]!r} when the pipeline was planned, and has none now"
            )
        columns = [found[name] for name in schema.names]
        data = self._run(lambda connection: copy_out(connection, self._question(connection, keys, columns)))
        return read_csv(data, [each.column for each in columns])

    def _columns(self) -> tuple[FoundColumn, ...]:
        if self._described is None:
            self._described = self._run(self._describe)
        return self._described

    def _question(self, connection: psycopg.Connection[Any], keys: pa.Table, columns: Sequence[FoundColumn]) -> str:
        """The rows of these keys, as SQL with literals: COPY takes no parameters."""
        from psycopg import sql

        types = {each.column.name: each.sql for each in columns}
        wanted = ", ".join(quoted(each.column.name) for each in columns)
        names = [quoted(name) for name in keys.schema.names]
        arrays = []
        for name in keys.schema.names:
            text = array_literal(keys.column(name).combine_chunks(), name)
            arrays.append(f"{sql.Literal(text).as_string(connection)}::{types[name]}[]")
        condition = f"({', '.join(names)}) in (select * from unnest({', '.join(arrays)}))"
        if len(names) == 1:
            condition = f"{names[0]} = any({arrays[0]})"
        return f"select {wanted} from {self._settings.relation} where {condition}"

    def _describe(self, connection: psycopg.Connection[Any]) -> tuple[FoundColumn, ...]:
        return describe(connection, self._settings.relation, self._settings.columns)

    def _run(self, ask: Callable[[psycopg.Connection[Any]], T]) -> T:
        server = self._settings.server
        with server.translating(f"cannot look up rows of {self.name()}"), _reading():
            return connections.ask(server, ask, is_broken=_is_broken)


def _connect(server: Server) -> psycopg.Connection[Any]:
    return server.connect(name="arroyo lookup", settings=_SESSION)


def _is_broken(error: Exception) -> bool:
    import psycopg

    return isinstance(error, psycopg.OperationalError)


#: Those of this process.
connections = IdleConnections(_connect).keep_for_process()


@contextmanager
def _reading() -> Iterator[None]:
    """What is looked up changes nothing; here this is not the sign of a standby that is written to."""
    from psycopg import errors

    try:
        yield
    except errors.ReadOnlySqlTransaction as error:
        raise ConfigError(f"a lookup only reads: {error.diag.message_primary}", field="query") from error


def check_lookup(config: LookupConfig) -> LookupSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    relation = read_relation(config.table, config.query)
    check_distinct(config.columns)
    server = read_connection(config.connection)
    return LookupSettings(
        server=server,
        name=f"{f'table {config.table}' if config.table else 'a query'} of {server.display()}",
        relation=relation,
        columns=tuple(config.columns),
    )


def _is_key(kind: pa.DataType) -> bool:
    # Two floats that look the same need not be equal here and there.
    return not pa.types.is_floating(kind)
