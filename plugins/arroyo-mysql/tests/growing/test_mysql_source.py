"""A table that grows, read from a real MariaDB: each row once, over epochs, restarts and outages."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arroyo_mysql.connection import Session
from arroyo_testing.databases import GrowingKillSuite, GrowingSuite, GrowingTable, words

from arroyo_core.errors import ConfigError
from tests.mysql_server import MysqlServer

from .support import Events

pytestmark = pytest.mark.server


@pytest.fixture
def events(database: MysqlServer) -> Events:
    return Events(database)


class TestGrowing(GrowingSuite):
    kinds = (
        (
            "decimal(30, 10)",
            ["1.5", "2", "10", "12345678901234567890.0000000001", "12345678901234567890.0000000002"],
        ),
        ("bigint unsigned", ["1", "18446744073709551614", "18446744073709551615"]),
        ("varchar(20) collate utf8mb4_bin", ["A'\\\\", "b", "É"]),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{number}" for number in range(3)]),
        ("datetime(6)", ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002", "2024-01-02"]),
        ("timestamp(3) null", ["2024-01-01 00:00:00.001", "2024-01-01 00:00:00.002", "2024-01-02"]),
        ("date", ["2024-01-01", "2024-01-02", "2024-02-01"]),
        ("year", ["1999", "2024", "2025"]),
    )
    mistakes = (
        ({"table": "nobody"}, "doesn't exist", "table"),
        ({"delay": "1000000"}, "is int64, not a time", "delay"),
        ({"after": "noon"}, "'noon' is not a number", "after"),
        ({"growing_column": "size"}, "is double, and cannot be what grows", "growing_column"),
    )


class TestKills(GrowingKillSuite):
    def cut_some(self, events: GrowingTable, monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> list[int]:
        cuts: list[int] = []
        execute = Session.execute

        def cut(session: Session, statement: str | bytes) -> Any:
            if "limit 1 offset" in str(statement) and dice.random() < 0.15:
                ((number,),) = execute(session, "select connection_id()")
                events.end_session(int(number))
                cuts.append(int(number))
            return execute(session, statement)

        monkeypatch.setattr(Session, "execute", cut)
        return cuts


def test_texts_that_are_equal_there_come_together(events: Events):
    events.server.execute(
        "create table things (k varchar(9) collate utf8mb4_general_ci, word text)",
        "insert into things values ('b', '1'), ('B', '2'), ('c', '3')",
    )
    life = events.harness(table="things", growing_column="k", batch_rows=1)
    assert sorted(words(life.run(rows=1).table)) == ["1", "2"]
    assert words(life.run(rows=1).table) == ["3"]
    life.close()


@pytest.mark.parametrize("kind", ["enum('b', 'a')", "set('b', 'a')"])
def test_an_enum_cannot_grow_for_it_is_sorted_otherwise_than_it_is_compared(events: Events, kind: str):
    events.server.execute(f"create table things (k {kind}, word text)")
    with pytest.raises(ConfigError, match="'k' is an enum or a set") as caught:
        events.make(table="things", growing_column="k").output_schema([])
    assert caught.value.field == "growing_column"
    with pytest.raises(ConfigError, match="'k' is an enum or a set"):
        events.make(table="", query="select k from things", growing_column="k").output_schema([])


def test_rows_that_are_deleted_between_the_queries_of_a_page_do_not_end_the_data(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    events.add(*"abcd")
    life = events.harness(until="latest", batch_rows=1)
    execute = Session.execute

    def delete_first(session: Session, statement: str, *args: Any) -> Any:
        found = execute(session, statement, *args)
        if "limit 1 offset" in statement:
            events.server.execute("delete from events where id <= 2")
        return found

    monkeypatch.setattr(Session, "execute", delete_first)
    assert words(life.run_all()) == ["a", "c", "d"]
    life.close()
