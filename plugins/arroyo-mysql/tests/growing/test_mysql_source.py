"""A table that grows, read from a real MariaDB: each row once, over epochs, restarts and outages."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from arroyo_mysql.connection import Session
from arroyo_mysql.growing.settings import check_source
from arroyo_mysql.growing.source import MysqlSource
from arroyo_mysql.plugin import SourceConstructor
from arroyo_mysql.source_pb2 import SourceConfig
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import Registry, with_defaults
from arroyo_core.errors import ConfigError, OperatorError
from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server


@pytest.fixture
def events(database: MysqlServer) -> MysqlServer:
    database.execute(
        "create table events (id bigint auto_increment primary key, word text, at timestamp(6) null, size double)"
    )
    return database


def add(database: MysqlServer, *words: str, at: str = "2024-01-01") -> None:
    for word in words:
        database.execute(f"insert into events (word, at) values ('{word}', '{at}')")


def read_config(server: MysqlServer, **fields: Any) -> SourceConfig:
    written = {"connection": server.config, "table": "events", "growing_column": "id", **fields}
    return with_defaults(json_format.ParseDict(written, SourceConfig()))


def make(server: MysqlServer, **fields: Any) -> Any:
    return SourceConstructor().with_config(read_config(server, **fields), Registry())


def harness(server: MysqlServer, **fields: Any) -> SourceHarness:
    """Planned once, as a pipeline is; the kit asks for the columns at each epoch."""
    planned = make(server, **fields).source.output_schema([])

    class Planned(MysqlSource):
        def output_schema(self, inputs: Any) -> Any:
            return planned

    return SourceHarness(lambda: Planned(check_source(read_config(server, **fields))))


def words(table: pa.Table) -> list[str]:
    return table.column("word").to_pylist()


def test_rows_that_are_added_come_in_a_later_epoch(events: MysqlServer):
    life = harness(events)
    add(events, "a", "b")
    first = life.run(ends_at_wait=True).table
    assert first.to_pylist()[0] == {
        "id": 1,
        "word": "a",
        "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        "size": None,
    }
    assert words(first) == ["a", "b"]
    assert words(life.run(ends_at_wait=True).table) == []
    add(events, "c")
    assert words(life.run(ends_at_wait=True).table) == ["c"]
    life.close()


def test_a_bounded_source_ends_with_what_was_there_at_first(events: MysqlServer):
    add(events, *"abcde")
    life = harness(events, until="latest", batch_rows=2)
    first = life.run(rows=2)
    assert words(first.table) == ["a", "b"]
    add(events, "f")
    assert words(life.run_all(rows=2)) == ["c", "d", "e"]
    assert words(life.run_all()) == []
    life.close()


def test_numbers_are_in_the_order_of_numbers(events: MysqlServer):
    add(events, *map(str, range(1, 13)))
    life = harness(events, until="latest", batch_rows=5, columns=["word"])
    assert words(life.run_all(rows=5)) == [str(number) for number in range(1, 13)]
    life.close()


def test_an_empty_table_ends_at_once(events: MysqlServer):
    life = harness(events, until="latest")
    assert life.run_all(parallelism=2).num_rows == 0
    life.close()


def test_rows_of_an_epoch_that_is_lost_come_again(events: MysqlServer):
    add(events, *"abcd")
    life = harness(events, batch_rows=2)
    assert words(life.run(rows=2).table) == ["a", "b"]
    assert words(life.run(rows=2, is_lost=True).table) == ["c", "d"]
    assert words(life.run(rows=2).table) == ["c", "d"]
    life.close()


def test_one_subtask_reads_whatever_the_parallelism(events: MysqlServer):
    life, found = harness(events), []
    for word, parallelism in (("a", 3), ("b", 1), ("c", 2)):
        add(events, word)
        found += words(life.run(ends_at_wait=True, parallelism=parallelism).table)
    assert found == ["a", "b", "c"]
    life.close()


def test_rows_of_one_value_are_not_torn_apart(events: MysqlServer):
    add(events, *"abc", at="2024-01-01")
    add(events, *"de", at="2024-01-02")
    life = harness(events, growing_column="at", batch_rows=1)
    assert words(life.run(rows=1).table) == ["a", "b", "c"]
    assert words(life.run(rows=1).table) == ["d", "e"]
    life.close()


def test_rows_without_a_value_are_not_read(events: MysqlServer):
    add(events, "a")
    events.execute("insert into events (word) values ('b')")
    life = harness(events, growing_column="at", until="latest")
    assert words(life.run_all()) == ["a"]
    life.close()


def test_the_beginning_can_be_given(events: MysqlServer):
    add(events, *"abc")
    life = harness(events, after="1", until="latest", columns=["word"])
    assert life.run_all().to_pylist() == [{"word": "b"}, {"word": "c"}]
    life.close()


def test_rows_stay_away_until_they_are_old_enough(events: MysqlServer):
    add(events, "old")
    events.execute("insert into events (word, at) values ('young', utc_timestamp() - interval 1 minute)")
    life = harness(events, growing_column="at", delay=str(3600 * 1_000_000))
    assert words(life.run(ends_at_wait=True).table) == ["old"]
    events.execute("update events set at = utc_timestamp() - interval 2 hour where word = 'young'")
    assert words(life.run(ends_at_wait=True).table) == ["young"]
    life.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("decimal(30, 10)", ["1.5", "2", "10", "12345678901234567890.0000000001", "12345678901234567890.0000000002"]),
        ("bigint unsigned", ["1", "18446744073709551614", "18446744073709551615"]),
        ("varchar(20) collate utf8mb4_bin", ["A'\\\\", "b", "É"]),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{number}" for number in range(3)]),
        ("datetime(6)", ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002", "2024-01-02"]),
        ("timestamp(3) null", ["2024-01-01 00:00:00.001", "2024-01-01 00:00:00.002", "2024-01-02"]),
        ("date", ["2024-01-01", "2024-01-02", "2024-02-01"]),
        ("year", ["1999", "2024", "2025"]),
    ],
)
def test_any_type_with_an_order_can_grow(events: MysqlServer, kind, values):
    events.execute(f"create table things (k {kind}, word text)")
    for place, value in enumerate(values):
        written = value.replace("'", "''")
        events.execute(f"insert into things values ('{written}', '{place}')")
    life = harness(events, table="things", growing_column="k", batch_rows=1, until="latest")
    assert words(life.run_all(rows=1)) == [str(place) for place in range(len(values))]
    life.close()


def test_texts_that_are_equal_there_come_together(events: MysqlServer):
    events.execute(
        "create table things (k varchar(9) collate utf8mb4_general_ci, word text)",
        "insert into things values ('b', '1'), ('B', '2'), ('c', '3')",
    )
    life = harness(events, table="things", growing_column="k", batch_rows=1)
    assert sorted(words(life.run(rows=1).table)) == ["1", "2"]
    assert words(life.run(rows=1).table) == ["3"]
    life.close()


def test_a_query_can_be_read(events: MysqlServer):
    add(events, *"abc")
    query = "select id * 10 as number, word from events where word <> 'b'"
    life = harness(events, table="", query=query, growing_column="number", until="latest", batch_rows=1)
    assert life.run_all().to_pylist() == [{"number": 10, "word": "a"}, {"number": 30, "word": "c"}]
    life.close()


def test_an_outage_is_waited_for(own_server: MysqlServer):
    own_server.execute("create table events (id bigint, word text)", "insert into events values (1, 'a')")
    life = harness(own_server)
    assert words(life.run(ends_at_wait=True).table) == ["a"]
    own_server.kill()
    down = life.run(ends_at_wait=True)
    assert down.counters == {"retries": 1}
    own_server.start()
    own_server.execute("insert into events values (2, 'b')")
    life.clock.advance(2)
    assert words(life.run(ends_at_wait=True).table) == ["b"]
    life.close()


def test_a_column_that_is_gone_is_told(events: MysqlServer):
    add(events, "a")
    life = harness(events)
    life.run(ends_at_wait=True)
    events.execute("alter table events drop column word")
    with pytest.raises(OperatorError, match="not those that the pipeline was planned with"):
        life.run(ends_at_wait=True)
    life.close()


@pytest.mark.parametrize(
    ("fields", "message", "field"),
    [
        ({"growing_column": ""}, "growing_column is needed", "growing_column"),
        ({"growing_column": "idd"}, "no column 'idd'", "growing_column"),
        ({"table": "nobody"}, "doesn't exist", "table"),
        ({"query": "select 1"}, "one of table and query", "query"),
        ({"columns": ["idd"]}, "no column 'idd'", "columns[0]"),
        ({"delay": "1000000"}, "is int64, not a time", "delay"),
        ({"event_time_field": "word"}, "'word' is string, not a timestamp", "event_time_field"),
        ({"after": "noon"}, "'noon' is not a number", "after"),
        ({"growing_column": "size"}, "is double, and cannot be what grows", "growing_column"),
        ({"until": "noon"}, "unknown end", "until"),
    ],
)
def test_mistakes_name_their_field(events: MysqlServer, fields, message, field):
    with pytest.raises(ConfigError, match=message) as refused:
        make(events, **fields).source.output_schema([])
    assert refused.value.field == field


@pytest.mark.parametrize("kind", ["enum('b', 'a')", "set('b', 'a')"])
def test_an_enum_cannot_grow_for_it_is_sorted_otherwise_than_it_is_compared(events: MysqlServer, kind: str):
    events.execute(f"create table things (k {kind}, word text)")
    with pytest.raises(ConfigError, match="'k' is an enum or a set") as caught:
        make(events, table="things", growing_column="k").source.output_schema([])
    assert caught.value.field == "growing_column"
    with pytest.raises(ConfigError, match="'k' is an enum or a set"):
        make(events, table="", query="select k from things", growing_column="k").source.output_schema([])


def test_rows_that_are_deleted_between_the_queries_of_a_page_do_not_end_the_data(
    events: MysqlServer, monkeypatch: pytest.MonkeyPatch
):
    add(events, *"abcd")
    life = harness(events, until="latest", batch_rows=1)
    execute = Session.execute

    def delete_first(session: Session, statement: str, *args: Any) -> Any:
        found = execute(session, statement, *args)
        if "limit 1 offset" in statement:
            events.execute("delete from events where id <= 2")
        return found

    monkeypatch.setattr(Session, "execute", delete_first)
    assert words(life.run_all()) == ["a", "c", "d"]
    life.close()
