"""A table that grows, read from a real PostgreSQL: each row once, over epochs, restarts and outages."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from arroyo_core.errors import ConfigError, OperatorError
from tests.postgres_server import PostgresServer

from .support import add, harness, make, words

pytestmark = pytest.mark.server


def test_rows_that_are_added_come_in_a_later_epoch(database: PostgresServer):
    life = harness(database)
    add(database, "a", "b")
    first = life.run(ends_at_wait=True).table
    assert first.to_pylist()[0] == {
        "id": 1,
        "word": "a",
        "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
    }
    assert words(first) == ["a", "b"]
    assert words(life.run(ends_at_wait=True).table) == []
    add(database, "c")
    assert words(life.run(ends_at_wait=True).table) == ["c"]
    life.close()


def readers(database: PostgresServer) -> list[Any]:
    return database.execute("select pid from pg_stat_activity where application_name like '%arroyo source%'")


def test_one_connection_serves_many_epochs_of_a_source_that_lives_on(database: PostgresServer):
    life = harness(database, lives_on=True)
    add(database, "a")
    assert words(life.run(ends_at_wait=True).table) == ["a"]
    before = readers(database)
    assert len(before) == 1
    for word in "bcd":
        add(database, word)
        assert words(life.run(ends_at_wait=True).table) == [word]
        assert readers(database) == before
    life.close()


def test_a_connection_that_is_lost_between_two_epochs_is_made_again(database: PostgresServer):
    life = harness(database, lives_on=True)
    add(database, "a")
    assert words(life.run(ends_at_wait=True).table) == ["a"]
    ((pid,),) = readers(database)
    database.execute(f"select pg_terminate_backend({pid})")
    add(database, "b")
    assert life.run(ends_at_wait=True).counters == {"retries": 1}
    life.clock.advance(2)
    assert words(life.run(ends_at_wait=True).table) == ["b"]
    assert readers(database) not in ([], [(pid,)])
    life.close()


def test_a_source_that_lives_on_notices_that_the_table_has_changed(database: PostgresServer):
    life = harness(database, lives_on=True)
    add(database, "1")
    assert words(life.run(ends_at_wait=True).table) == ["1"]
    database.execute("alter table events alter column word type integer using word::integer")
    with pytest.raises(OperatorError, match="not those that the pipeline was planned with"):
        life.run(ends_at_wait=True)
    life.close()


def test_a_bounded_source_ends_with_what_was_there_at_first(database: PostgresServer):
    add(database, *"abcde")
    life = harness(database, until="latest", batch_rows=2)
    first = life.run(rows=2)
    assert words(first.table) == ["a", "b"]
    add(database, "f")
    assert words(life.run_all(rows=2)) == ["c", "d", "e"]
    assert words(life.run_all()) == []
    life.close()


def test_numbers_are_in_the_order_of_numbers(database: PostgresServer):
    add(database, *map(str, range(1, 13)))
    life = harness(database, until="latest", batch_rows=5, columns=["word"])
    assert words(life.run_all(rows=5)) == [str(number) for number in range(1, 13)]
    life.close()


def test_an_empty_table_ends_at_once(database: PostgresServer):
    life = harness(database, until="latest")
    assert life.run_all(parallelism=2).num_rows == 0
    life.close()


def test_rows_of_an_epoch_that_is_lost_come_again(database: PostgresServer):
    add(database, *"abcd")
    life = harness(database, batch_rows=2)
    assert words(life.run(rows=2).table) == ["a", "b"]
    assert words(life.run(rows=2, is_lost=True).table) == ["c", "d"]
    assert words(life.run(rows=2).table) == ["c", "d"]
    life.close()


def test_one_subtask_reads_whatever_the_parallelism(database: PostgresServer):
    life, found = harness(database), []
    for word, parallelism in (("a", 3), ("b", 1), ("c", 2)):
        add(database, word)
        found += words(life.run(ends_at_wait=True, parallelism=parallelism).table)
    assert found == ["a", "b", "c"]
    life.close()


def test_rows_of_one_value_are_not_torn_apart(database: PostgresServer):
    add(database, *"abc", at="2024-01-01")
    add(database, *"de", at="2024-01-02")
    life = harness(database, growing_column="at", batch_rows=1)
    assert words(life.run(rows=1).table) == ["a", "b", "c"]
    assert words(life.run(rows=1).table) == ["d", "e"]
    life.close()


def test_rows_without_a_value_are_not_read(database: PostgresServer):
    add(database, "a")
    database.execute("insert into events (word) values ('b')")
    life = harness(database, growing_column="at", until="latest")
    assert words(life.run_all()) == ["a"]
    life.close()


def test_the_beginning_can_be_given(database: PostgresServer):
    add(database, *"abc")
    life = harness(database, after="1", until="latest", columns=["word"])
    assert life.run_all().to_pylist() == [{"word": "b"}, {"word": "c"}]
    life.close()


def test_rows_stay_away_until_they_are_old_enough(database: PostgresServer):
    add(database, "old")
    database.execute("insert into events (word, at) values ('young', now() - interval '1 minute')")
    life = harness(database, growing_column="at", delay=str(3600 * 1_000_000))
    assert words(life.run(ends_at_wait=True).table) == ["old"]
    database.execute("update events set at = now() - interval '2 hours' where word = 'young'")
    assert words(life.run(ends_at_wait=True).table) == ["young"]
    life.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", ["1.5", "2", "10"]),
        ("text", ["A'\\", "b", "É"]),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{number}" for number in range(3)]),
        ("timestamp", ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002", "2024-01-02"]),
        ("date", ["2024-01-01", "2024-01-02", "2024-02-01"]),
    ],
)
def test_any_type_with_an_order_can_grow(database: PostgresServer, kind, values):
    database.execute(
        f'create table things (k {kind} collate "C", word text)'
        if kind == "text"
        else f"create table things (k {kind}, word text)"
    )
    for place, value in enumerate(values):
        quoted = value.replace("'", "''")
        database.execute(f"insert into things values ('{quoted}', '{place}')")
    life = harness(database, table="things", growing_column="k", batch_rows=1, until="latest")
    assert words(life.run_all(rows=1)) == ["0", "1", "2"]
    life.close()


def test_a_query_can_be_read(database: PostgresServer):
    add(database, *"abc")
    query = "select id * 10 as number, word from events where word <> 'b'"
    life = harness(database, table="", query=query, growing_column="number", until="latest", batch_rows=1)
    assert life.run_all().to_pylist() == [{"number": 10, "word": "a"}, {"number": 30, "word": "c"}]
    life.close()


def test_an_outage_is_waited_for(own_server: PostgresServer):
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


def test_a_column_that_is_gone_is_told(database: PostgresServer):
    add(database, "a")
    life = harness(database)
    life.run(ends_at_wait=True)
    database.execute("alter table events drop column word")
    with pytest.raises(OperatorError, match="not those that the pipeline was planned with"):
        life.run(ends_at_wait=True)
    life.close()


@pytest.mark.parametrize(
    ("fields", "message", "field"),
    [
        ({"growing_column": ""}, "growing_column is needed", "growing_column"),
        ({"growing_column": "idd"}, "no column 'idd'", "growing_column"),
        ({"table": "nobody"}, "does not exist", "table"),
        ({"query": "select 1"}, "one of table and query", "query"),
        ({"columns": ["idd"]}, "no column 'idd'", "columns[0]"),
        ({"delay": "1000000"}, "is bigint, not a time", "delay"),
        ({"event_time_field": "word"}, "'word' is string, not a timestamp", "event_time_field"),
        ({"until": "noon"}, "unknown end", "until"),
    ],
)
def test_mistakes_name_their_field(database: PostgresServer, fields, message, field):
    with pytest.raises(ConfigError, match=message) as refused:
        make(database, **fields).source.output_schema([])
    assert refused.value.field == field


def test_a_beginning_that_is_no_value_stops_the_job(database: PostgresServer):
    life = harness(database, after="noon")
    with pytest.raises(OperatorError, match="invalid input syntax for type bigint"):
        life.run(ends_at_wait=True)
    life.close()
