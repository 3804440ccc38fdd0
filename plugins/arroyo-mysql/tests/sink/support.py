"""The sink under test: its database, and sessions that fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import pymysql
from arroyo_mysql.connection import Session, read_connection
from arroyo_mysql.connection_pb2 import Connection
from arroyo_mysql.plugin import SinkConstructor
from arroyo_mysql.sink.settings import check_sink
from arroyo_mysql.sink.sink import MysqlSink
from arroyo_testing.databases import Faults, SinkDatabase
from google.protobuf import json_format

from arroyo_core.api import with_defaults


class FaultySessions(Faults):
    """The first error is of a session that was closed, the second of one that broke while it waited."""

    def lost(self) -> Exception:
        if self.is_late:
            return pymysql.OperationalError(2013, "Lost connection to server during query")
        return pymysql.OperationalError(2006, "Server has gone away")

    def connect(self) -> Any:
        server = read_connection(with_defaults(json_format.ParseDict(self.server.config, Connection())))
        with ExitStack() as opened:
            with self.call("connect"):
                session = opened.enter_context(closing(server.connect()))
            opened.pop_all()
            return FaultySession(session, self)


class FaultySession:
    """Takes the statements of a commit, and passes them on."""

    def __init__(self, session: Session, faults: Faults) -> None:
        self._session = session
        self._faults = faults

    def execute(self, statement: str | bytes) -> list[tuple[Any, ...]]:
        with self._faults.call(statement if isinstance(statement, str) else statement.decode()):
            return self._session.execute(statement)

    def close(self) -> None:
        self._session.close()


class Database(SinkDatabase):
    constructor = SinkConstructor()
    faults = FaultySessions

    def empty(self) -> None:
        self.server.execute("drop database shop", "create database shop character set utf8mb4")

    def sink(self, config: Any, connect: Callable[[], Any]) -> MysqlSink:
        return MysqlSink(check_sink(config), connect)

    def has_table(self) -> bool:
        return bool(self.execute("show tables like 'totals'"))
