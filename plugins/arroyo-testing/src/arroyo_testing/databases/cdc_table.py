"""Tables whose changes are read, sources that read them, and what tests do with both."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import pytest
from google.protobuf import json_format

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry, SourceOperator, with_defaults
from arroyo_core.errors import ArroyoError, ConfigError, OperatorError
from arroyo_testing.clock import FakeClock
from arroyo_testing.databases.materialized import Materialized, sort
from arroyo_testing.databases.server import DatabaseServer
from arroyo_testing.source_harness import SourceHarness
from arroyo_testing.waiting import wait_until


class CdcTable(ABC):
    """A table of its own, and sources that read it; `close` it, and `drop` it.

    A subclass says what is its database's. It is made with the columns `id` and `name`, or with those that are given.
    """

    #: What makes the source.
    constructor: ClassVar[OperatorConstructor[Any]]
    #: What people call the schema of the tests' tables.
    schema: ClassVar[str]

    def __init__(self, server: DatabaseServer, columns: str = "id int primary key, name text") -> None:
        self.server = server
        self.name = f"t_{uuid.uuid4().hex[:10]}"
        self._harnesses: list[SourceHarness] = []
        server.execute(f"create table {self.name} ({columns})")

    @abstractmethod
    def fill(self, count: int, first: int = 1) -> None:
        """Add rows in one statement: `(1, 'row 1')` and so on."""

    @abstractmethod
    def put(self, key: int, name: str) -> str:
        """A statement that adds a row, or gives the one with the key another name."""

    @abstractmethod
    def add_missing(self, key: int, name: str) -> str:
        """A statement that adds a row, where there is none with the key."""

    @abstractmethod
    def end_streams(self) -> None:
        """End the sessions by which the server gives the changes of this table."""

    @abstractmethod
    def close_streams(self) -> None:
        """Close what stays open between epochs in this process."""

    def given(self) -> dict[str, Any]:
        """What a config of the source needs beside connection and table."""
        return {}

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements, with the table's name for `$t`; returns the rows of the last one."""
        return self.server.execute(*(statement.replace("$t", self.name) for statement in statements))

    def fields(self, **config: Any) -> dict[str, Any]:
        """The fields of a config; those that are None are left out."""
        given = {"connection": self.server.config, "table": self.name, **self.given(), **config}
        return {name: value for name, value in given.items() if value is not None}

    def config(self, **config: Any) -> Any:
        """As the planner would make it, with the defaults of its fields. Durations are in microseconds."""
        return with_defaults(json_format.ParseDict(self.fields(**config), self.constructor.config_type()))

    def make(self, **config: Any) -> Callable[[], ConstructedOperator]:
        """Planned once, as a pipeline is."""
        resolved = self.constructor.resolve(self.config(**config))
        return lambda: self.constructor.with_config(resolved, Registry())

    def source(self, *, clock: FakeClock | None = None, lives_on: bool = False, **config: Any) -> SourceHarness:
        return self.keep(SourceHarness(self.make(**config), clock=clock, lives_on=lives_on))

    def watched(self, on_backlog: Callable[[int], None], **config: Any) -> SourceHarness:
        """A source that tells its backlog."""
        make = self.make(**config)

        def made() -> SourceOperator:
            source = make().source
            assert source is not None
            run = source.run

            def watching(ctx: Any, collector: Any) -> Any:
                ctx.report_backlog = on_backlog
                return run(ctx, collector)

            source.run = watching  # type: ignore[method-assign]
            return source

        return self.keep(SourceHarness(made))

    def keep(self, harness: SourceHarness) -> SourceHarness:
        """Close it with the table."""
        self._harnesses.append(harness)
        return harness

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.run(f"select {columns} from $t order by 1")

    def drop(self) -> None:
        self.run("drop table if exists $t")

    def close(self) -> None:
        for harness in self._harnesses:
            harness.close()
        self.close_streams()


#: Makes tables that are closed and dropped after the test: `table("id int primary key")`, `table(on=own_server)`.
MakeTable: TypeAlias = Callable[..., Any]
#: Statements to run before, fields of a config, the field that is wrong, and words of the message.
Plan: TypeAlias = tuple[list[str], dict[str, Any], str, str]


@contextmanager
def refused(kind: type[ArroyoError], *words: str) -> Iterator[None]:
    """An epoch fails for this reason, and says so."""
    with pytest.raises(OperatorError) as caught:
        yield
    assert caught.value.cause_kind == kind.__name__
    for word in words:
        assert word in str(caught.value)


def run_until_it_fails(source: SourceHarness) -> None:
    for _ in range(50):
        source.run(interval_ms=100)


def catch_up(source: SourceHarness, result: Materialized, made: CdcTable, columns: str = "*", **options: Any) -> None:
    """Run epochs, and apply what they give, until the result is what the table has."""

    def is_equal() -> bool:
        result.add(source.run(interval_ms=100, **options).table)
        assert result.mistakes == []
        return result.rows() == sort(made.rows(columns))

    wait_until(is_equal, patience_s=60, problem=lambda: f"{result.rows()[:5]} is not {made.rows(columns)[:5]}")


def go_on(source: SourceHarness, clock: FakeClock, result: Materialized, made: CdcTable) -> None:
    """Epochs in which the time for the next attempt always has come, until the result is what the table has."""

    def is_equal() -> bool:
        clock.advance(120)
        result.add(source.run(interval_ms=100).table)
        assert result.mistakes == []
        return result.rows() == made.rows()

    wait_until(is_equal, patience_s=60)


def check_refused(made: CdcTable, plan: Plan) -> None:
    """A plan that names the field that is wrong."""
    statements, config, field, words = plan
    if statements:
        made.run(*statements)
    if "table" in config:
        config = {**config, "table": config["table"].replace("$t", made.name)}
    with pytest.raises(ConfigError) as caught:
        made.source(**config).run(interval_ms=1)
    assert caught.value.field == field
    assert words in str(caught.value) + f" (did you mean {caught.value.suggestion!r}?)"
