"""Functions of users, called in SQL, give what DuckDB's own give: also aggregates, asynchronous ones, bundles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from arroyo_devtools.bundles.building import build_bundle
from arroyo_testing.cases.operators import case_plugins

from arroyo_core.local_folders import UDF_CACHE
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.udf import async_udf, udaf, udf
from tests.sql_queries.answers import Duck, Rows, difference
from tests.sql_queries.checking import EPOCH_ROWS
from tests.sql_queries.engine import Engine
from tests.sql_queries.tables import make_tables

pytestmark = pytest.mark.once

MODULE = """
from arroyo_core.udf import udf

__version__ = "1.0"


@udf
def shouted(text: str) -> str:
    return text.upper() + "!"


@udf
def halved(number: int) -> float:
    return number / 2
"""


@udf
def twice(number: int) -> int:
    return number * 2


@udf
def or_none(text: str | None) -> str:
    return "none" if text is None else text.lower()


@udaf
class Spread:
    """How far the largest number is from the least."""

    def init(self) -> list[int]:
        return []

    def update(self, state: list[int], number: int) -> list[int]:
        return self.merge(state, [number])

    def merge(self, first: list[int], second: list[int]) -> list[int]:
        return [min(first + second), max(first + second)] if first or second else []

    def finish(self, state: list[int]) -> int:
        return state[1] - state[0]


@async_udf
async def fetched(number: int) -> str:
    await asyncio.sleep(0)
    return f"row {number}"


@pytest.fixture(scope="module", params=[None, EPOCH_ROWS], ids=["one epoch", "epochs of few rows"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    plugins = case_plugins()
    plugins = replace(plugins, registry=plugins.registry.with_udfs([twice, or_none, Spread, fetched]))
    return Engine(tmp_path_factory.mktemp("tables"), parallelism=2, epoch_rows=request.param, plugins=plugins)


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    duck = Duck(make_tables())
    yield duck
    duck.close()


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("SELECT id, twice(amount) AS x FROM orders", "SELECT id, amount * 2 AS x FROM orders"),
        ("SELECT id FROM orders WHERE twice(amount) > 10", "SELECT id FROM orders WHERE amount * 2 > 10"),
        (
            "SELECT or_none(note) AS x, count(*) AS n FROM orders GROUP BY 1",
            "SELECT coalesce(lower(note), 'none') AS x, count(*) AS n FROM orders GROUP BY 1",
        ),
        (
            "SELECT o.id, c.level FROM orders o JOIN customers c ON or_none(o.customer) = or_none(c.customer)",
            "SELECT o.id, c.level FROM orders o JOIN customers c ON coalesce(lower(o.customer), 'none') = "
            "coalesce(lower(c.customer), 'none')",
        ),
        (
            "SELECT customer, spread(id) AS x FROM orders GROUP BY customer, tumble(INTERVAL '20 seconds')",
            "SELECT customer, max(id) - min(id) AS x FROM orders "
            "GROUP BY customer, time_bucket(INTERVAL '20 seconds', placed)",
        ),
        (
            "SELECT customer, spread(id) AS x, sum(amount) AS s FROM orders GROUP BY customer",
            "SELECT customer, max(id) - min(id) AS x, sum(amount) AS s FROM orders GROUP BY customer",
        ),
        (
            "SELECT spread(id) AS x, count(*) AS n FROM orders "
            "GROUP BY hop(INTERVAL '5 seconds', INTERVAL '10 seconds')",
            "SELECT max(id) - min(id) AS x, count(*) AS n FROM (SELECT *, unnest([time_bucket(INTERVAL '5 seconds', "
            "placed), time_bucket(INTERVAL '5 seconds', placed) - INTERVAL '5 seconds']) AS w FROM orders) GROUP BY w",
        ),
        ("SELECT id, fetched(id) AS x FROM orders", "SELECT id, 'row ' || id AS x FROM orders"),
        (
            "SELECT x, n FROM (SELECT fetched(level) AS x, level + 1 AS n FROM customers WHERE level IS NOT NULL) AS t "
            "WHERE x <> 'row 2'",
            "SELECT 'row ' || level AS x, level + 1 AS n FROM customers WHERE level <> 2",
        ),
        (
            "SELECT x, count(*) AS n FROM (SELECT fetched(amount) AS x FROM orders WHERE amount IS NOT NULL) AS t "
            "GROUP BY x",
            "SELECT 'row ' || amount AS x, count(*) AS n FROM orders WHERE amount IS NOT NULL GROUP BY 1",
        ),
    ],
)
def test_rows_are_those_of_duckdb(query: str, same: str, engine: Engine, duck: Duck) -> None:
    _check(engine, query, same, duck)


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle in a file."""
    monkeypatch.setenv(UDF_CACHE.variable, str(tmp_path / "cache"))
    source = tmp_path / "of_texts.py"
    source.write_text(MODULE)
    built = build_bundle(source)
    path = tmp_path / built.file_name
    path.write_bytes(built.data)
    return path


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE FUNCTIONS FROM '{bundle}';",
        "CREATE FUNCTION shouted FROM '{bundle}'; CREATE FUNCTION halved FROM '{bundle}';",
        "SET udfs = '{bundle}';",
        "SET udfs = ['{bundle}'];",
    ],
)
def test_functions_of_a_bundle_are_called(declared: str, bundle: Path, tmp_path: Path, duck: Duck) -> None:
    engine = Engine(tmp_path, parallelism=2, bundles=BundleOpener())
    query = "SELECT id, shouted(customer) AS x, halved(amount) AS y FROM orders"
    same = "SELECT id, upper(customer) || '!' AS x, amount / 2.0 AS y FROM orders"
    _check(engine, declared.format(bundle=bundle) + query, same, duck)


def test_functions_of_a_bundle_get_a_prefix(bundle: Path, tmp_path: Path, duck: Duck) -> None:
    engine = Engine(tmp_path, bundles=BundleOpener())
    script = f"CREATE FUNCTIONS FROM '{bundle}' AS texts; SELECT texts.shouted(note) AS x FROM orders"
    _check(engine, script, "SELECT upper(note) || '!' AS x FROM orders", duck)


def test_a_bundle_with_another_digest_is_refused(bundle: Path, tmp_path: Path) -> None:
    engine = Engine(tmp_path, bundles=BundleOpener())
    script = f"CREATE FUNCTIONS FROM '{bundle}' WITH (sha256 = '{'0' * 64}'); SELECT shouted(note) AS x FROM orders"
    outcome = engine.plan(script)
    assert not isinstance(outcome, PlannedPipeline)
    assert "sha256" in str(outcome)


def _check(engine: Engine, script: str, same: str, duck: Duck) -> None:
    expected = duck.answer(same)
    found = engine.run(script)
    assert isinstance(found, Rows), str(found)
    assert expected.count
    assert difference(expected, found) is None, difference(expected, found)
