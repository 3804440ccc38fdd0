"""Which results change, as the reference says: what comes out has the marks of changes, or only adds rows."""

from __future__ import annotations

import pytest

from arroyo_core.api.updating import UPDATING_META
from arroyo_core.pipeline.planner import PlannedPipeline
from tests.sql_queries.engine import Engine

pytestmark = pytest.mark.once

IN_TIME = "p.order_id = o.id AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '5 seconds'"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments)",
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id)",
        f"SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE {IN_TIME})",
        "SELECT o.id FROM orders o JOIN payments p ON o.id = p.order_id",
        f"SELECT o.id FROM orders o LEFT JOIN payments p ON {IN_TIME}",
        "SELECT id FROM orders INTERSECT SELECT order_id FROM payments",
        "SELECT DISTINCT customer FROM orders",
        "SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '5 seconds')",
    ],
)
def test_rows_are_only_added(query: str, engine: Engine) -> None:
    assert UPDATING_META not in _columns(engine, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id)",
        "SELECT id FROM orders WHERE id IN (SELECT count(*) FROM payments GROUP BY customer)",
        "SELECT o.id FROM orders o LEFT JOIN payments p ON o.id = p.order_id",
        "SELECT id FROM orders EXCEPT SELECT order_id FROM payments",
        "SELECT count(*) AS n FROM orders",
        "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY placed DESC) AS n FROM orders) "
        "AS t WHERE n = 1",
    ],
)
def test_rows_change(query: str, engine: Engine) -> None:
    assert UPDATING_META in _columns(engine, query)


def _columns(engine: Engine, query: str) -> list[str]:
    planned = engine.plan(query)
    assert isinstance(planned, PlannedPipeline), planned
    (sink,) = planned.sinks
    return list(planned.plan.nodes[sink].input_schemas[0].names)
