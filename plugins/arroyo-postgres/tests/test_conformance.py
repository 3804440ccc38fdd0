"""The sources keep the rules of `arroyo_testing.conformance`, with a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SourceCase

from tests.postgres_server import shared_server

from .support.tables import Table

pytestmark = pytest.mark.server


def table_with_changes(folder: Path) -> dict[str, Any]:
    """Some rows, and a slot that has the changes by which they came to be."""
    made = Table(shared_server(), "id int primary key, at timestamptz, name text")
    made.run(
        f"create publication {made.slot} for table $t",
        f"select pg_create_logical_replication_slot('{made.slot}', 'pgoutput')",
        "insert into $t select i, '2026-01-01'::timestamptz + i * interval '1 s', 'row' from generate_series(1, 40) i",
        "update $t set name = null where id % 3 = 0",
        "delete from $t where id % 5 = 0",
    )
    return {
        "connection": made.server.config,
        "table": made.name,
        "slot": made.slot,
        "until": "latest",
        "chunk_rows": 9,
        "event_time_field": "at",
        "max_lateness": "1s",
    }


def only_rows(folder: Path) -> dict[str, Any]:
    made = Table(shared_server())
    made.fill(30)
    return {"connection": made.server.config, "table": made.name, "snapshot": "only", "chunk_rows": 7}


def checks() -> list[Check]:
    cases = [
        SourceCase("postgres.cdc", table_with_changes),
        SourceCase("postgres.cdc", only_rows, id="postgres.cdc of rows alone"),
    ]
    suite = Conformance("arroyo_postgres.plugin", cases)
    # Sinks have a module of their own.
    return [check for check in suite.checks() if check.name != "every_operator_has_a_case"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check) -> None:
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
