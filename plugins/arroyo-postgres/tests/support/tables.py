"""Tables under test, sources that read them, and what becomes of their changes."""

from __future__ import annotations

import uuid
from typing import Any

from arroyo_postgres.cdc.open_streams import open_streams
from arroyo_postgres.cdc_pb2 import CdcConfig
from arroyo_postgres.plugin import CdcConstructor
from arroyo_testing import FakeClock, SourceHarness
from google.protobuf import json_format

from arroyo_core.api import ConstructedOperator, Registry, with_defaults
from tests.materialized import Materialized, kinds, sort
from tests.postgres_server import PostgresServer
from tests.waiting import wait_until

__all__ = ["Materialized", "Table", "catch_up", "cdc_config", "kinds", "make_cdc", "sort"]

_DURATIONS = ("max_lateness", "idle_after", "give_up_after")


def cdc_config(server: PostgresServer, **config: Any) -> CdcConfig:
    """A config as the planner would make it, with the defaults of its fields. Durations are in microseconds."""
    written = CdcConfig()
    json_format.ParseDict({"connection": server.config, **config}, written)
    return with_defaults(written)


def make_cdc(config: CdcConfig) -> ConstructedOperator:
    """A source of a config that is resolved as a plan has it."""
    return CdcConstructor().with_config(CdcConstructor().resolve(config), Registry())


class Table:
    """A table of its own, with a slot and a source that reads it; `close` it."""

    def __init__(
        self, server: PostgresServer, columns: str = "id int primary key, name text", *, identity: str = "full"
    ) -> None:
        self.server = server
        self.name = f"t_{uuid.uuid4().hex[:10]}"
        self.slot = f"s_{self.name}"
        self._harnesses: list[SourceHarness] = []
        server.execute(f"create table {self.name} ({columns})")
        if identity:
            server.execute(f"alter table {self.name} replica identity {identity}")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements, with the table's name for `$t`; returns the rows of the last one."""
        return self.server.execute(*(statement.replace("$t", self.name) for statement in statements))

    def fill(self, count: int, first: int = 1) -> None:
        self.run(
            f"insert into $t (id, name) select i, 'row ' || i from generate_series({first}, {first + count - 1}) i"
        )

    def config(self, **config: Any) -> CdcConfig:
        given = {"table": self.name, "slot": self.slot, "create": True, **config}
        return cdc_config(self.server, **{name: value for name, value in given.items() if value is not None})

    def source(self, *, clock: FakeClock | None = None, lives_on: bool = False, **config: Any) -> SourceHarness:
        resolved = CdcConstructor().resolve(self.config(**config))
        harness = SourceHarness(
            lambda: CdcConstructor().with_config(resolved, Registry()), clock=clock, lives_on=lives_on
        )
        self.keep(harness)
        return harness

    def keep(self, harness: SourceHarness) -> None:
        """Close it with the table."""
        self._harnesses.append(harness)

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.run(f"select {columns} from $t order by 1")

    def slot_row(self, what: str) -> Any:
        found = self.run(f"select {what} from pg_replication_slots where slot_name = '{self.slot}'")
        return found[0][0] if found else None

    def drop(self) -> None:
        """The table, its publication, and its slot when nobody reads it any more."""
        self.run(f"drop publication if exists {self.slot}", "drop table if exists $t")
        if self.slot_row("1") is not None:
            wait_until(lambda: self.slot_row("active_pid") is None)
            self.run(f"select pg_drop_replication_slot('{self.slot}')")

    def close(self) -> None:
        for harness in self._harnesses:
            harness.close()
        open_streams.close_all()


def catch_up(source: SourceHarness, result: Materialized, made: Table, columns: str = "*", **options: Any) -> None:
    """Run epochs, and apply what they give, until the result is what the table has."""

    def is_equal() -> bool:
        result.add(source.run(interval_ms=100, **options).table)
        assert result.mistakes == []
        return result.rows() == sort(made.rows(columns))

    wait_until(is_equal, patience_s=60, problem=lambda: f"{result.rows()[:5]} is not {made.rows(columns)[:5]}")
