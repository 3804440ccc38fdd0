"""Joins with tables that are looked up give what DuckDB gives for the same join."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from arroyo_testing.cases.operators import case_plugins
from google.protobuf.struct_pb2 import Struct

from arroyo_core.api import KeyedLookupTable, LookupConstructor, LookupSource, LookupTable, Registry
from arroyo_core.plugin import PluginSet
from tests.sql_queries.answers import Duck, Rows, difference
from tests.sql_queries.checking import EPOCH_ROWS
from tests.sql_queries.engine import Engine
from tests.sql_queries.tables import CUSTOMERS, make_tables

pytestmark = pytest.mark.once

#: Of what a distribution brings: read as a whole, and asked by keys.
SHELVES = ("whole", "keyed")
SHELF = "CREATE TABLE known (customer TEXT, level INT, region TEXT) WITH (connector = '{name}', type = 'lookup');\n"
LOOKUP = (
    "CREATE TABLE known (customer TEXT, level INT, region TEXT) WITH "
    "(connector = 'filesystem', type = 'lookup', path = '{path}', format = 'parquet');\n"
)


QUERIES = [
    "SELECT o.id, c.level FROM orders o JOIN known c ON o.customer = c.customer",
    "SELECT o.id, c.level FROM orders o LEFT JOIN known c ON o.customer = c.customer",
    "SELECT o.id, c.region FROM orders o LEFT JOIN known c ON o.customer = c.customer AND c.level > 1",
    "SELECT o.id, c.region FROM orders o LEFT JOIN known c ON o.customer = c.customer AND c.level * 5 > o.amount",
    "SELECT o.id, c.region FROM orders o LEFT JOIN known c ON o.customer = c.customer AND o.amount > 5",
    "SELECT o.id, c.level FROM orders o LEFT JOIN known c ON o.customer = c.customer WHERE c.region IS NULL",
    "SELECT o.id, c.level FROM orders o JOIN known c ON o.customer = c.customer AND c.region <> o.note",
    "SELECT o.id, c.region FROM orders o JOIN known c ON o.customer = c.customer AND c.level > 1",
    "SELECT o.id, known.region FROM orders o JOIN known ON o.customer = known.customer WHERE level > 1",
    "SELECT o.id FROM orders o LEFT JOIN known c ON o.customer = c.customer WHERE c.level > 1 AND c.region <> ''",
]


class _Rows:
    """The customers."""

    def name(self) -> str:
        return "shelf"

    def cache_key(self) -> str:
        return type(self).__name__

    def schema(self) -> pa.Schema:
        return CUSTOMERS


class _Whole(_Rows, LookupTable):
    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        return make_tables()["customers"]


class _Keyed(_Rows, KeyedLookupTable):
    def find(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        assert keys.schema.names == ["customer"], "a condition is not a key"
        wanted = set(keys.column("customer").to_pylist())
        rows = make_tables()["customers"].to_pylist()
        return pa.Table.from_pylist([row for row in rows if row["customer"] in wanted], CUSTOMERS)


class _Constructor(LookupConstructor[Struct]):
    config_type = Struct

    def __init__(self, source: LookupSource) -> None:
        self._source = source

    def with_config(self, config: Struct, registry: Registry) -> LookupSource:
        return self._source


def _with_shelves() -> PluginSet:
    plugins = case_plugins()
    registry = plugins.registry.with_udfs(())
    for name, source in zip(SHELVES, (_Whole(), _Keyed()), strict=True):
        registry.add_lookup(f"{name}.lookup", _Constructor(source))
    return replace(plugins, registry=registry)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(query: str, tmp_path: Path) -> None:
    _check(
        Engine(tmp_path, parallelism=2, epoch_rows=EPOCH_ROWS),
        LOOKUP.format(path=tmp_path / "customers.parquet"),
        query,
    )


@pytest.mark.parametrize("name", SHELVES)
@pytest.mark.parametrize("query", QUERIES)
def test_rows_of_a_table_of_another_distribution_are_those_of_duckdb(name: str, query: str, tmp_path: Path) -> None:
    engine = Engine(tmp_path, parallelism=2, epoch_rows=EPOCH_ROWS, plugins=_with_shelves())
    _check(engine, SHELF.format(name=name), query)


def _check(engine: Engine, declared: str, query: str) -> None:
    duck = Duck({**make_tables(), "known": make_tables()["customers"]})
    expected = duck.answer(query)
    duck.close()
    found = engine.run(declared + query)
    assert isinstance(found, Rows), str(found)
    assert expected.count
    assert difference(expected, found) is None
