"""What the tests of the sink share: a schema of their own for each, sinks over it, and connections that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from arroyo_postgres.plugin import SinkConstructor
from arroyo_postgres.sink.settings import check_sink
from arroyo_postgres.sink.sink import PostgresSink
from arroyo_postgres.sink_pb2 import SinkConfig
from arroyo_testing import ParallelHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from tests.postgres_server import PostgresServer


def read_config(server: PostgresServer, **fields: Any) -> SinkConfig:
    written = json_format.ParseDict({"connection": server.config, "table": "totals", **fields}, SinkConfig())
    return with_defaults(written)


def make_sink(server: PostgresServer, connect: Any = None, **fields: Any) -> Any:
    if connect is not None:
        return PostgresSink(check_sink(read_config(server, **fields)), connect)
    return SinkConstructor().with_config(read_config(server, **fields), Registry())


def harness(
    server: PostgresServer,
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


def write(server: PostgresServer, *batches: pa.RecordBatch, **fields: Any) -> None:
    """Each batch in an epoch of its own."""
    with harness(server, batches[0].schema, **fields) as life:
        for batch in batches:
            life.process(batch)
            life.commit(life.checkpoint())
            life.go_on()


class Lost(psycopg.OperationalError):
    """A connection that broke, as libpq reports it: without a SQLSTATE."""


class Faults:
    """Makes connections, and breaks one of them at a statement: before it takes effect, or after it did."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
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
                connection = opened.enter_context(closing(self._server.connect()))
            opened.pop_all()
            return FaultyConnection(connection, self)

    @contextmanager
    def call(self, what: str) -> Iterator[None]:
        self.calls.append(what)
        if len(self.calls) == self._act_at:
            self._act()
        is_failing = len(self.calls) == self.fail_at
        if is_failing and not self.is_late:
            raise Lost("server closed the connection unexpectedly")
        yield
        if is_failing:
            raise Lost("server closed the connection unexpectedly")


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
