"""A table that grows: each row once, over epochs, restarts and outages, whatever the database."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, OperatorConstructor, Registry, SourceOperator, with_defaults
from arroyo_core.errors import ConfigError, OperatorError
from arroyo_testing.databases.server import DatabaseServer
from arroyo_testing.source_harness import SourceHarness


class GrowingTable(ABC):
    """The table `events` of a database: `id` grows by itself, `word` is a text, `at` a time that is UTC or NULL."""

    #: What makes the source.
    constructor: ClassVar[OperatorConstructor[Any]]

    def __init__(self, server: DatabaseServer) -> None:
        """Makes the table in an empty database, where it is not there."""
        self.server = server

    @abstractmethod
    def time(self, text: str) -> str:
        """The literal of a time, given as in ISO 8601 without a zone."""

    @abstractmethod
    def ago(self, minutes: int) -> str:
        """An expression that is so long before now."""

    @abstractmethod
    def sessions(self) -> set[int]:
        """The sessions of sources, by their numbers on the server."""

    @abstractmethod
    def end_session(self, number: int) -> None:
        """Return when it is gone."""

    def add(self, *words: str, at: str = "2024-01-01 00:00:00") -> None:
        """Rows, each in a transaction of its own."""
        for word in words:
            self.server.execute(f"insert into events (word, at) values ('{word}', {self.time(at)})")

    def make(self, **fields: Any) -> SourceOperator:
        given = {"connection": self.server.config, "table": "events", "growing_column": "id", **fields}
        config = with_defaults(json_format.ParseDict(given, self.constructor.config_type()))
        source = self.constructor.with_config(config, Registry()).source
        assert source is not None
        return source

    def harness(self, *, lives_on: bool = False, **fields: Any) -> SourceHarness:
        """Planned once, as a pipeline is; the kit asks for the columns at each epoch."""
        planned = self.make(**fields).output_schema([])

        def make() -> SourceOperator:
            source = self.make(**fields)
            source.output_schema = _always(planned)  # type: ignore[method-assign, assignment]
            return source

        return SourceHarness(make, lives_on=lives_on)


def _always(schema: ArroyoSchema) -> Callable[[Sequence[ArroyoSchema]], ArroyoSchema]:
    return lambda inputs: schema


def words(table: pa.Table) -> list[str]:
    return list(table.column("word").to_pylist())


class GrowingSuite:
    """For a class of tests that has the fixtures `events`, a `GrowingTable`, and `own_server`."""

    #: Types that can grow, with values in their order, each as the literal of a text.
    kinds: ClassVar[Sequence[tuple[str, list[str]]]]
    #: Fields of a config, words of the message, and the field that is wrong: what is the database's own.
    mistakes: ClassVar[Sequence[tuple[dict[str, Any], str, str]]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "kind" in metafunc.fixturenames:
            metafunc.parametrize(("kind", "values"), self.kinds)
        if "mistake" in metafunc.fixturenames:
            shared: list[tuple[dict[str, Any], str, str]] = [
                ({"growing_column": ""}, "growing_column is needed", "growing_column"),
                ({"growing_column": "idd"}, "no column 'idd'", "growing_column"),
                ({"query": "select 1"}, "one of table and query", "query"),
                ({"columns": ["idd"]}, "no column 'idd'", "columns[0]"),
                ({"columns": ["id", "id"]}, "named twice", "columns[1]"),
                ({"event_time_field": "word"}, "'word' is string, not a timestamp", "event_time_field"),
                ({"until": "noon"}, "unknown end", "until"),
            ]
            metafunc.parametrize("mistake", [*shared, *self.mistakes], ids=lambda each: each[1])

    def test_rows_that_are_added_come_in_a_later_epoch(self, events: GrowingTable) -> None:
        life = events.harness(columns=["id", "word", "at"])
        events.add("a", "b")
        first = life.run(ends_at_wait=True).table
        assert first.to_pylist()[0] == {
            "id": 1,
            "word": "a",
            "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        }
        assert words(first) == ["a", "b"]
        assert words(life.run(ends_at_wait=True).table) == []
        events.add("c")
        assert words(life.run(ends_at_wait=True).table) == ["c"]
        life.close()

    def test_one_connection_serves_many_epochs_of_a_source_that_lives_on(self, events: GrowingTable) -> None:
        life = events.harness(lives_on=True)
        events.add("a")
        assert words(life.run(ends_at_wait=True).table) == ["a"]
        before = events.sessions()
        assert len(before) == 1
        for word in "bcd":
            events.add(word)
            assert words(life.run(ends_at_wait=True).table) == [word]
            assert events.sessions() == before
        life.close()

    def test_a_connection_that_is_lost_between_two_epochs_is_made_again(self, events: GrowingTable) -> None:
        life = events.harness(lives_on=True)
        events.add("a")
        assert words(life.run(ends_at_wait=True).table) == ["a"]
        (session,) = events.sessions()
        events.end_session(session)
        events.add("b")
        assert life.run(ends_at_wait=True).counters == {"retries": 1}
        life.clock.advance(2)
        assert words(life.run(ends_at_wait=True).table) == ["b"]
        assert events.sessions() not in (set(), {session})
        life.close()

    def test_a_source_that_lives_on_notices_that_the_table_has_changed(self, events: GrowingTable) -> None:
        life = events.harness(lives_on=True, columns=["id", "word"])
        events.add("1")
        assert words(life.run(ends_at_wait=True).table) == ["1"]
        events.server.execute("alter table events drop column word", "alter table events add column word int")
        with pytest.raises(OperatorError, match="not those that the pipeline was planned with"):
            life.run(ends_at_wait=True)
        life.close()

    def test_a_bounded_source_ends_with_what_was_there_at_first(self, events: GrowingTable) -> None:
        events.add(*"abcde")
        life = events.harness(until="latest", batch_rows=2)
        first = life.run(rows=2)
        assert words(first.table) == ["a", "b"]
        events.add("f")
        assert words(life.run_all(rows=2)) == ["c", "d", "e"]
        assert words(life.run_all()) == []
        life.close()

    def test_numbers_are_in_the_order_of_numbers(self, events: GrowingTable) -> None:
        events.add(*map(str, range(1, 13)))
        life = events.harness(until="latest", batch_rows=5, columns=["word"])
        assert words(life.run_all(rows=5)) == [str(number) for number in range(1, 13)]
        life.close()

    def test_an_empty_table_ends_at_once(self, events: GrowingTable) -> None:
        life = events.harness(until="latest")
        assert life.run_all(parallelism=2).num_rows == 0
        life.close()

    def test_rows_of_an_epoch_that_is_lost_come_again(self, events: GrowingTable) -> None:
        events.add(*"abcd")
        life = events.harness(batch_rows=2)
        assert words(life.run(rows=2).table) == ["a", "b"]
        assert words(life.run(rows=2, is_lost=True).table) == ["c", "d"]
        assert words(life.run(rows=2).table) == ["c", "d"]
        life.close()

    def test_one_subtask_reads_whatever_the_parallelism(self, events: GrowingTable) -> None:
        life, found = events.harness(), []
        for word, parallelism in (("a", 3), ("b", 1), ("c", 2)):
            events.add(word)
            found += words(life.run(ends_at_wait=True, parallelism=parallelism).table)
        assert found == ["a", "b", "c"]
        life.close()

    def test_rows_of_one_value_are_not_torn_apart(self, events: GrowingTable) -> None:
        events.add(*"abc", at="2024-01-01 00:00:00")
        events.add(*"de", at="2024-01-02 00:00:00")
        life = events.harness(growing_column="at", batch_rows=1)
        assert words(life.run(rows=1).table) == ["a", "b", "c"]
        assert words(life.run(rows=1).table) == ["d", "e"]
        life.close()

    def test_rows_without_a_value_are_not_read(self, events: GrowingTable) -> None:
        events.add("a")
        events.server.execute("insert into events (word) values ('b')")
        life = events.harness(growing_column="at", until="latest")
        assert words(life.run_all()) == ["a"]
        life.close()

    def test_the_beginning_can_be_given(self, events: GrowingTable) -> None:
        events.add(*"abc")
        life = events.harness(after="1", until="latest", columns=["word"])
        assert life.run_all().to_pylist() == [{"word": "b"}, {"word": "c"}]
        life.close()

    def test_rows_stay_away_until_they_are_old_enough(self, events: GrowingTable) -> None:
        events.add("old")
        events.server.execute(f"insert into events (word, at) values ('young', {events.ago(1)})")
        life = events.harness(growing_column="at", delay=str(3600 * 1_000_000))
        assert words(life.run(ends_at_wait=True).table) == ["old"]
        events.server.execute(f"update events set at = {events.ago(120)} where word = 'young'")
        assert words(life.run(ends_at_wait=True).table) == ["young"]
        life.close()

    def test_any_type_with_an_order_can_grow(self, events: GrowingTable, kind: str, values: list[str]) -> None:
        events.server.execute(f"create table things (k {kind}, word text)")
        for place, value in enumerate(values):
            written = value.replace("'", "''")
            events.server.execute(f"insert into things values ('{written}', '{place}')")
        life = events.harness(table="things", growing_column="k", batch_rows=1, until="latest")
        assert words(life.run_all(rows=1)) == [str(place) for place in range(len(values))]
        life.close()

    def test_a_query_can_be_read(self, events: GrowingTable) -> None:
        events.add(*"abc")
        query = "select id * 10 as number, word from events where word <> 'b'"
        life = events.harness(table="", query=query, growing_column="number", until="latest", batch_rows=1)
        assert life.run_all().to_pylist() == [{"number": 10, "word": "a"}, {"number": 30, "word": "c"}]
        life.close()

    def test_an_outage_is_waited_for(self, events: GrowingTable, own_server: DatabaseServer) -> None:
        own = type(events)(own_server)
        own.add("a")
        life = own.harness()
        assert words(life.run(ends_at_wait=True).table) == ["a"]
        own_server.kill()
        down = life.run(ends_at_wait=True)
        assert down.counters == {"retries": 1}
        own_server.start()
        own.add("b")
        life.clock.advance(2)
        assert words(life.run(ends_at_wait=True).table) == ["b"]
        life.close()

    def test_a_column_that_is_gone_is_told(self, events: GrowingTable) -> None:
        events.add("a")
        life = events.harness()
        life.run(ends_at_wait=True)
        events.server.execute("alter table events drop column word")
        with pytest.raises(OperatorError, match="not those that the pipeline was planned with"):
            life.run(ends_at_wait=True)
        life.close()

    def test_mistakes_name_their_field(self, events: GrowingTable, mistake: tuple[dict[str, Any], str, str]) -> None:
        fields, message, field = mistake
        with pytest.raises(ConfigError, match=message) as refused:
            events.make(**fields).output_schema([])
        assert refused.value.field == field
