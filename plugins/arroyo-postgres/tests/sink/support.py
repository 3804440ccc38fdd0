"""The sink under test: its database, and connections that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
from arroyo_postgres.plugin import SinkConstructor
from arroyo_postgres.sink.settings import check_sink
from arroyo_postgres.sink.sink import PostgresSink
from arroyo_testing.databases import Faults, SinkDatabase


class Lost(psycopg.OperationalError):
    """A connection that broke, as libpq reports it: without a SQLSTATE."""


class FaultyConnections(Faults):
    def lost(self) -> Exception:
        return Lost("server closed the connection unexpectedly")

    def connect(self) -> Any:
        with ExitStack() as opened:
            with self.call("connect"):
                connection = opened.enter_context(closing(self.server.connect()))
            opened.pop_all()
            return FaultyConnection(connection, self)


class FaultyConnection:
    """Takes the calls that a commit makes, and passes them on."""

    def __init__(self, connection: psycopg.Connection[Any], faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def execute(self, query: Any, parameters: Any = None) -> Any:
        with self._faults.call(query if isinstance(query, str) else query.decode()):
            return self._connection.execute(query, parameters)

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            yield FaultyCursor(cursor, self._faults)

    def close(self) -> None:
        self._connection.close()


class FaultyCursor:
    def __init__(self, cursor: Any, faults: Faults) -> None:
        self._cursor = cursor
        self._faults = faults

    @contextmanager
    def copy(self, query: Any) -> Iterator[Any]:
        with self._faults.call("copy"), self._cursor.copy(query) as copy:
            yield copy


class Database(SinkDatabase):
    constructor = SinkConstructor()
    faults = FaultyConnections

    def empty(self) -> None:
        self.server.execute("drop schema public cascade", "create schema public")

    def sink(self, config: Any, connect: Callable[[], Any]) -> PostgresSink:
        return PostgresSink(check_sink(config), connect)

    def has_table(self) -> bool:
        return self.execute("select to_regclass('totals') is not null") == [(True,)]
