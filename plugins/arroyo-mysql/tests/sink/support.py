"""What the tests of the sink share: sinks, and sessions that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pyarrow as pa
import pymysql
from arroyo_mysql.connection import Session, read_connection
from arroyo_mysql.plugin import SinkConstructor
from arroyo_mysql.sink.settings import check_sink
from arroyo_mysql.sink.sink import MysqlSink
from arroyo_mysql.sink_pb2 import SinkConfig
from arroyo_testing import ParallelHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from tests.mysql_server import MysqlServer


def read_config(server: MysqlServer, **fields: Any) -> SinkConfig:
    written = json_format.ParseDict({"connection": server.config, "table": "totals", **fields}, SinkConfig())
    return with_defaults(written)


def make_sink(server: MysqlServer, connect: Any = None, **fields: Any) -> Any:
    if connect is not None:
        return MysqlSink(check_sink(read_config(server, **fields)), connect)
    return SinkConstructor().with_config(read_config(server, **fields), Registry())


def harness(
    server: MysqlServer,
    stream: pa.Schema | ArroyoSchema,
    *,
    parallelism: int = 1,
    incarnation: str = "a1",
    connect: Any = None,
    **fields: Any,
) -> ParallelHarness:
    schema = stream if isinstance(stream, ArroyoSchema) else ArroyoSchema(stream)
    return ParallelHarness(
        lambda: make_sink(server, connect, **fields), inputs=[schema], parallelism=parallelism, incarnation=incarnation
    )


def write(server: MysqlServer, *batches: pa.RecordBatch, **fields: Any) -> None:
    """Each batch in an epoch of its own."""
    with harness(server, batches[0].schema, **fields) as life:
        for batch in batches:
            life.process(batch)
            life.commit(life.checkpoint())
            life.go_on()


class Faults:
    """Makes sessions, and breaks one of them at a statement: before it takes effect, or after it did."""

    def __init__(self, server: MysqlServer) -> None:
        self._server = read_connection(read_config(server).connection)
        self.calls: list[str] = []
        self.fail_at: int | None = None
        self.is_late = False
        self._act_at, self._act = 0, lambda: None

    def at(self, call: int, act: Callable[[], None]) -> None:
        """Do something right before a call, counted from 1."""
        self._act_at, self._act = call, act

    def connect(self) -> Any:
        with ExitStack() as opened:
            with self.call("connect"):
                session = opened.enter_context(closing(self._server.connect()))
            opened.pop_all()
            return FaultySession(session, self)

    @contextmanager
    def call(self, what: str) -> Iterator[None]:
        self.calls.append(what)
        if len(self.calls) == self._act_at:
            self._act()
        is_failing = len(self.calls) == self.fail_at
        if is_failing and not self.is_late:
            raise pymysql.OperationalError(2006, "Server has gone away")
        yield
        if is_failing:
            raise pymysql.OperationalError(2013, "Lost connection to server during query")


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
