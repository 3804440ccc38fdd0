"""Tables under test, and sources that read them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from arroyo_mysql.cdc.open_streams import open_streams
from arroyo_mysql.cdc_pb2 import CdcConfig
from arroyo_mysql.plugin import CdcConstructor
from arroyo_testing import FakeClock, SourceHarness
from google.protobuf import json_format

from arroyo_core.api import Registry, with_defaults
from arroyo_core.errors import ArroyoError, OperatorError
from tests.materialized import Materialized, sort
from tests.mysql_server import MysqlServer
from tests.waiting import wait_until


class Table:
    """A table of its own, and a source that reads it; `close` it."""

    def __init__(self, server: MysqlServer, columns: str = "id int primary key, name text") -> None:
        self.server = server
        self.name = f"t_{uuid.uuid4().hex[:10]}"
        self._harnesses: list[SourceHarness] = []
        server.execute(f"create table {self.name} ({columns})")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements, with the table's name for `$t`; returns the rows of the last one."""
        return self.server.execute(*(statement.replace("$t", self.name) for statement in statements))

    def fill(self, count: int, first: int = 1) -> None:
        last = first + count - 1
        self.run(f"insert into $t (id, name) select seq, concat('row ', seq) from seq_{first}_to_{last}")

    def config(self, **config: Any) -> CdcConfig:
        """As the planner would make it, with the defaults of its fields. Durations are in microseconds."""
        written = CdcConfig()
        json_format.ParseDict({"connection": self.server.config, "table": self.name, **config}, written)
        return with_defaults(written)

    def source(self, *, clock: FakeClock | None = None, lives_on: bool = False, **config: Any) -> SourceHarness:
        resolved = CdcConstructor().resolve(self.config(**config))
        harness = SourceHarness(
            lambda: CdcConstructor().with_config(resolved, Registry()), clock=clock, lives_on=lives_on
        )
        self._harnesses.append(harness)
        return harness

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.run(f"select {columns} from $t order by 1")

    def dump_threads(self) -> list[int]:
        """The sessions of the server that read its binlog."""
        return [row[0] for row in self.run("show processlist") if str(row[4]).startswith("Binlog Dump")]

    def drop(self) -> None:
        self.run("drop table if exists $t")

    def close(self) -> None:
        for harness in self._harnesses:
            harness.close()
        open_streams.close_all()


@contextmanager
def refused(kind: type[ArroyoError], *words: str) -> Iterator[None]:
    with pytest.raises(OperatorError) as caught:
        yield
    assert caught.value.cause_kind == kind.__name__
    for word in words:
        assert word in str(caught.value)


def run_until_it_fails(source: SourceHarness) -> None:
    for _ in range(50):
        source.run(interval_ms=100)


def catch_up(source: SourceHarness, result: Materialized, made: Table, columns: str = "*", **options: Any) -> None:
    """Run epochs, and apply what they give, until the result is what the table has."""

    def is_equal() -> bool:
        result.add(source.run(interval_ms=100, **options).table)
        assert result.mistakes == []
        return result.rows() == sort(made.rows(columns))

    wait_until(is_equal, patience_s=60, problem=lambda: f"{result.rows()[:5]} is not {made.rows(columns)[:5]}")
