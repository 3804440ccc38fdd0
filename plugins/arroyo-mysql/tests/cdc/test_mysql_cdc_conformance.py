"""`mysql.cdc` keeps the rules of `arroyo_testing.conformance`, with a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from arroyo_mysql import plugin
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SourceCase

from arroyo_core.api import Registry
from tests.mysql_server import shared_server

from .support import Table

pytestmark = pytest.mark.server


def with_rows(folder: Path) -> dict[str, Any]:
    """Rows that end with the last chunk, and what was changed until then."""
    made = Table(shared_server(), "id int primary key, at timestamp null, name text")
    made.run("insert into $t select seq, timestamp '2026-01-01 00:00:00' + interval seq second, 'row' from seq_1_to_40")
    return {
        "connection": made.server.config,
        "table": made.name,
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
    cases = [SourceCase("mysql.cdc", with_rows), SourceCase("mysql.cdc", only_rows, id="mysql.cdc of rows alone")]
    suite = Conformance("arroyo_mysql.plugin", cases)
    # The others have modules of their own.
    return [check for check in suite.checks() if check.name != "every_operator_has_a_case"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check) -> None:
    shared_server()
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))


def test_every_operator_has_cases_here_or_in_another_file() -> None:
    registry = Registry()
    plugin.arroyo_register(registry)
    assert set(registry.constructors) == {"mysql.cdc", "mysql.sink", "mysql.source"}
