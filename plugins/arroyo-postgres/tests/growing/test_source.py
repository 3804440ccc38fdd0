"""A table that grows, read from a real PostgreSQL: each row once, over epochs, restarts and outages."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arroyo_postgres.growing import source
from arroyo_testing.databases import GrowingKillSuite, GrowingSuite, GrowingTable

from arroyo_core.errors import OperatorError
from tests.postgres_server import PostgresServer

from .support import Events

pytestmark = pytest.mark.server


@pytest.fixture
def events(server: PostgresServer) -> Events:
    return Events(server)


class TestGrowing(GrowingSuite):
    kinds = (
        ("numeric", ["1.5", "2", "10"]),
        ('text collate "C"', ["A'\\", "b", "É"]),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{number}" for number in range(3)]),
        ("timestamp", ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002", "2024-01-02"]),
        ("date", ["2024-01-01", "2024-01-02", "2024-02-01"]),
    )
    mistakes = (
        ({"table": "nobody"}, "does not exist", "table"),
        ({"delay": "1000000"}, "is bigint, not a time", "delay"),
    )


class TestKills(GrowingKillSuite):
    def cut_some(self, events: GrowingTable, monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> list[int]:
        cuts: list[int] = []
        copy_out = source.copy_out

        def cut(connection: Any, query: str) -> Any:
            if dice.random() < 0.15:
                events.end_session(connection.info.backend_pid)
                cuts.append(connection.info.backend_pid)
            return copy_out(connection, query)

        monkeypatch.setattr(source, "copy_out", cut)
        return cuts


def test_a_beginning_that_is_no_value_stops_the_job(events: Events):
    life = events.harness(after="noon")
    with pytest.raises(OperatorError, match="invalid input syntax for type bigint"):
        life.run(ends_at_wait=True)
    life.close()
