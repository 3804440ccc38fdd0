"""What a declaration adds to rows, and rows that change before they are read, give what DuckDB gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.sql_queries.answers import Duck, Rows, difference
from tests.sql_queries.checking import EPOCH_ROWS
from tests.sql_queries.engine import Engine
from tests.sql_queries.tables import make_tables

pytestmark = pytest.mark.once

COLUMNS = "id BIGINT, customer TEXT, amount BIGINT, placed TIMESTAMP"
GENERATED = (
    "CREATE TABLE sold (" + COLUMNS + ", doubled BIGINT GENERATED ALWAYS AS (amount * 2), "
    "who TEXT GENERATED ALWAYS AS (coalesce(upper(customer), 'NOBODY')) STORED, "
    "later TIMESTAMP GENERATED ALWAYS AS (placed + INTERVAL '1 minute'), "
    "WATERMARK FOR later AS later - INTERVAL '3 seconds') "
    "WITH (connector = 'filesystem', type = 'source', path = '{folder}/orders.parquet', format = 'parquet');\n"
)
CHANGING = (
    "CREATE TABLE changing (id BIGINT PRIMARY KEY, customer TEXT, amount BIGINT) "
    "WITH (connector = 'filesystem', type = 'source', path = '{folder}/changing.json', format = 'debezium_json', "
    "batch_rows = 5);\n"
)
SCHEMA = pa.schema({"id": pa.int64(), "customer": pa.string(), "amount": pa.int64()})


def _changes() -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Rows that are there, changed and taken away: each as what was before, and what is since."""
    rows = make_tables()["orders"].select(SCHEMA.names).slice(0, 40).to_pylist()
    for row in rows:
        yield None, row
    for number, row in enumerate(rows):
        amount = None if number % 9 == 0 else (row["amount"] or 0) + 7
        changed = {**row, "amount": amount, "customer": "moved" if number % 5 == 0 else row["customer"]}
        if number % 3 == 0:
            yield row, changed
        if number % 6 == 0:
            yield changed, None
        elif number % 4 == 1:
            yield (changed if number % 3 == 0 else row), None
            yield None, {**row, "customer": "back"}


def _final() -> pa.Table:
    left: dict[int, dict[str, Any]] = {}
    for before, after in _changes():
        if after is None:
            assert before is not None
            del left[before["id"]]
        else:
            left[after["id"]] = after
    return pa.Table.from_pylist(list(left.values()), SCHEMA)


def _envelope(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    operation = "c" if before is None else "d" if after is None else "u"
    return json.dumps({"before": before, "after": after, "op": operation})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    path.joinpath("changing.json").write_text("".join(f"{_envelope(*change)}\n" for change in _changes()))
    return path


@pytest.fixture(scope="module", params=[None, EPOCH_ROWS], ids=["one epoch", "epochs of few rows"])
def engine(request: pytest.FixtureRequest, folder: Path) -> Engine:
    return Engine(folder, parallelism=2, epoch_rows=request.param)


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    duck = Duck({**make_tables(), "changing": _final()})
    yield duck
    duck.close()


@pytest.mark.parametrize(
    ("query", "same"),
    [
        (
            "SELECT id, doubled, who, later FROM sold",
            "SELECT id, amount * 2 AS doubled, coalesce(upper(customer), 'NOBODY') AS who, "
            "placed + INTERVAL '1 minute' AS later FROM orders",
        ),
        ("SELECT id FROM sold WHERE doubled > 20", "SELECT id FROM orders WHERE amount > 10"),
        (
            "SELECT who, sum(doubled) AS s FROM sold GROUP BY who",
            "SELECT coalesce(upper(customer), 'NOBODY') AS who, sum(amount * 2) AS s FROM orders GROUP BY 1",
        ),
        (
            "SELECT t.w.start AS ws, n FROM (SELECT count(*) AS n, tumble(INTERVAL '7 seconds') AS w FROM sold "
            "GROUP BY w) AS t",
            "SELECT time_bucket(INTERVAL '7 seconds', placed + INTERVAL '1 minute', TIMESTAMP '1970-01-01') AS ws, "
            "count(*) AS n FROM orders GROUP BY 1",
        ),
    ],
    ids=["columns", "a filter", "groups", "event time"],
)
def test_columns_are_generated(query: str, same: str, engine: Engine, duck: Duck) -> None:
    _check(GENERATED + query, same, engine, duck)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, customer, amount FROM changing",
        "SELECT id, amount * 2 AS x FROM changing WHERE amount > 5 OR customer = 'back'",
        "SELECT customer, count(*) AS n, sum(amount) AS s, max(amount) AS m FROM changing GROUP BY customer",
        "SELECT count(*) AS n, avg(amount) AS m FROM changing",
        "SELECT DISTINCT customer FROM changing",
        "SELECT c.id, k.level FROM changing c JOIN customers k ON c.customer = k.customer",
        "SELECT c.id, p.payment FROM changing c LEFT JOIN payments p ON c.id = p.order_id AND p.paid > c.amount",
        "SELECT c.id FROM changing c WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = c.id)",
        "SELECT k.region, sum(c.amount) AS s FROM changing c JOIN customers k ON c.customer = k.customer GROUP BY 1",
        "SELECT id, amount FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS n "
        "FROM changing) AS t WHERE n <= 2",
        "SELECT customer FROM changing WHERE amount > 5 UNION ALL SELECT customer FROM changing",
    ],
)
def test_changes_of_debezium_are_read_as_the_rows_that_are_left(query: str, engine: Engine, duck: Duck) -> None:
    _check(CHANGING + query, query, engine, duck)


def _check(script: str, same: str, engine: Engine, duck: Duck) -> None:
    expected = duck.answer(same)
    found = engine.run(script.format(folder=engine.folder))
    assert isinstance(found, Rows), str(found)
    assert expected.count
    assert difference(expected, found) is None, difference(expected, found)
