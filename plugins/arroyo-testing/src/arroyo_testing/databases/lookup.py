"""Rows by key: few questions for a batch, connections that stay and that break, whatever the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from google.protobuf import json_format

from arroyo_core.api import KeyedLookupTable, LookupConstructor, Registry, with_defaults
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_testing.databases.server import DatabaseServer


class LookupDatabase(ABC):
    """An empty database with the table `customers`, and lookups in it."""

    #: What makes the lookup.
    constructor: ClassVar[LookupConstructor[Any]]
    #: A type of decimals with two digits behind the point.
    decimal: ClassVar[str]

    def __init__(self, server: DatabaseServer) -> None:
        """Empties the database, and closes connections that a test before has left."""
        self.server = server
        self.close_idle()
        self.empty()
        server.execute(
            "create table customers (id bigint primary key, name text, city varchar(20), "
            f"limit_eur {self.decimal}(10,2))",
            "insert into customers values (1, 'Ada', 'Oslo', 10.50), (2, 'Bob', null, null), (3, '', 'Rome', 0)",
        )

    @abstractmethod
    def empty(self) -> None:
        """Leave nothing in the database."""

    @abstractmethod
    def sessions(self) -> set[int]:
        """The sessions of lookups, by their numbers on the server; may have others that stay as they are."""

    @abstractmethod
    def end_session(self, number: int) -> None:
        """Return when it is gone."""

    @abstractmethod
    def close_idle(self) -> None:
        """Close the connections that lookups of this process keep."""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.execute(*statements)

    def lookup(self, **fields: Any) -> KeyedLookupTable:
        given = {"connection": self.server.config, **fields}
        config = with_defaults(json_format.ParseDict(given, self.constructor.config_type()))
        found = self.constructor.with_config(config, Registry())
        assert isinstance(found, KeyedLookupTable)
        return found


def find(table: KeyedLookupTable, **keys: Any) -> list[dict[str, Any]]:
    """The rows of these keys, in an order of their own."""
    schema = table.schema()
    asked = pa.table(keys, schema=pa.schema([schema.field(name) for name in keys]))
    found = table.find(asked, schema)
    assert found.schema == schema
    return sorted(found.to_pylist(), key=str)


class LookupSuite:
    """For a class of tests that has the fixtures `customers`, a `LookupDatabase`, and `own_server`."""

    #: A statement that makes the function `spoil()`, which deletes customers.
    spoil: ClassVar[str]
    #: A type of floats.
    float_type: ClassVar[str]
    #: Types of a column, the literal of a value, and the value.
    values: ClassVar[Sequence[tuple[str, str, Any]]]
    #: Fields of a config, words of the message, and the field that is wrong: what is the database's own.
    mistakes: ClassVar[Sequence[tuple[dict[str, Any], str, str]]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "literal" in metafunc.fixturenames:
            metafunc.parametrize(("kind", "literal", "value"), self.values)
        if "mistake" in metafunc.fixturenames:
            shared: list[tuple[dict[str, Any], str, str]] = [
                ({}, "one of table and query is needed", "table"),
                ({"table": "a", "query": "select 1"}, "one of table and query", "query"),
                ({"table": "no such"}, "not the name of a table", "table"),
                ({"table": "customers", "columns": ["id", "id"]}, "named twice", "columns[1]"),
                ({"table": "customers", "columns": ["id", "nam"]}, "no column 'nam'", "columns[1]"),
            ]
            metafunc.parametrize("mistake", [*shared, *self.mistakes], ids=lambda each: each[1])

    def test_rows_of_the_keys_come_and_no_others(self, customers: LookupDatabase) -> None:
        table = customers.lookup(table="customers")
        assert find(table, id=[1, 2, 99]) == [
            {"id": 1, "name": "Ada", "city": "Oslo", "limit_eur": Decimal("10.50")},
            {"id": 2, "name": "Bob", "city": None, "limit_eur": None},
        ]
        assert find(table, id=[98, 99]) == []

    def test_columns_are_read_in_their_order(self, customers: LookupDatabase) -> None:
        table = customers.lookup(table="customers", columns=["city", "id"])
        assert table.schema().names == ["city", "id"]
        assert find(table, id=[3]) == [{"city": "Rome", "id": 3}]

    def test_an_empty_text_is_not_null(self, customers: LookupDatabase) -> None:
        table = customers.lookup(table="customers", columns=["name"])
        assert find(table, name=["", "nobody"]) == [{"name": ""}]

    def test_several_columns_may_be_the_key(self, customers: LookupDatabase) -> None:
        table = customers.lookup(table="customers", columns=["id", "name"])
        found = find(table, id=[1, 1, 2], name=["Ada", "Bob", "Bob"])
        assert found == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]

    def test_a_query_may_be_asked(self, customers: LookupDatabase) -> None:
        query = "select city, count(*) as n from customers group by city -- by city;"
        assert find(customers.lookup(query=query), city=["Oslo", "Bonn"]) == [{"city": "Oslo", "n": 1}]

    def test_a_question_cannot_change_anything(self, customers: LookupDatabase) -> None:
        customers.execute(self.spoil)
        table = customers.lookup(query="select id, spoil() as s from customers")
        with pytest.raises(ConfigError, match="a lookup only reads"):
            find(table, id=[1])
        assert customers.execute("select count(*) from customers") == [(3,)]

    def test_many_keys_are_asked_in_parts(self, customers: LookupDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = ", ".join(f"({key}, 'n')" for key in range(100, 401))
        customers.execute(f"insert into customers (id, name) values {rows}")
        table = customers.lookup(table="customers", columns=["id"])
        monkeypatch.setattr(type(table), "keys_at_once", 100)
        assert sorted(row["id"] for row in find(table, id=range(100, 500))) == list(range(100, 401))

    def test_values_of_every_type_can_be_keys(
        self, customers: LookupDatabase, kind: str, literal: str, value: Any
    ) -> None:
        customers.execute(
            f"create table things (k {kind}, n int)", f"insert into things values ({literal}, 1), (null, 2)"
        )
        assert find(customers.lookup(table="things"), k=[value]) == [{"k": value, "n": 1}]

    def test_a_connection_stays_for_the_next_question(self, customers: LookupDatabase) -> None:
        before = customers.sessions()
        find(customers.lookup(table="customers"), id=[1])
        first = customers.sessions() - before
        find(customers.lookup(table="customers"), id=[1])
        assert len(first) == 1
        assert customers.sessions() - before == first

    def test_an_idle_connection_that_was_closed_is_replaced(self, customers: LookupDatabase) -> None:
        before = customers.sessions()
        table = customers.lookup(table="customers")
        expected = find(table, id=[1])
        for session in customers.sessions() - before:
            customers.end_session(session)
        assert find(table, id=[1]) == expected

    def test_an_outage_is_tried_again_by_the_job(self, customers: LookupDatabase, own_server: DatabaseServer) -> None:
        table = type(customers)(own_server).lookup(table="customers")
        schema = table.schema()
        own_server.kill()
        with pytest.raises(ExternalError, match="cannot"):
            table.find(pa.table({"id": [9]}), schema)
        own_server.start()
        assert table.find(pa.table({"id": [9]}), schema).num_rows == 0

    def test_a_column_that_is_gone_is_told(self, customers: LookupDatabase) -> None:
        schema = customers.lookup(table="customers").schema()
        customers.execute("alter table customers drop column city")
        with pytest.raises(DataError, match="had a column 'city'"):
            customers.lookup(table="customers").find(pa.table({"id": [1]}), schema)

    def test_mistakes_name_their_field(
        self, customers: LookupDatabase, mistake: tuple[dict[str, Any], str, str]
    ) -> None:
        fields, words, field = mistake
        with pytest.raises(ConfigError, match=words) as refused:
            customers.lookup(**fields).schema()
        assert refused.value.field == field

    def test_floats_are_no_keys(self, customers: LookupDatabase) -> None:
        customers.execute(f"create table things (k {self.float_type}, n int)")
        with pytest.raises(ConfigError, match="not looked up by such values"):
            customers.lookup(table="things").check_keys(["k"])
        customers.lookup(table="things").check_keys(["n"])
