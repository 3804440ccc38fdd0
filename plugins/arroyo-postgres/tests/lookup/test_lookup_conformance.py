"""`postgres.lookup` keeps the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, LookupCase, NotApplicable

from tests.postgres_server import shared_server

pytestmark = pytest.mark.server

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None], pa.int64()),
        "city": pa.array(["Oslo", None, "", "Oslo", "Rome"], pa.string()),
        "vip": pa.array([True, False, None, True, False], pa.bool_()),
    }
)


def in_table(folder: Path) -> dict[str, Any]:
    """A table of its own for each folder."""
    table = "l_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name.lower())
    server = shared_server()
    server.execute(
        f"drop table if exists {table}",
        f"create table {table} (id bigint, city text, vip boolean)",
        f"insert into {table} values (1, 'Oslo', true), (2, null, false), (3, '', null), (4, 'Oslo', true), "
        "(null, 'Rome', false)",
    )
    return {"connection": server.config, "table": table}


def checks() -> list[Check]:
    cases = [
        LookupCase("postgres.lookup", in_table, rows=ROWS, keys=["id"]),
        LookupCase("postgres.lookup", in_table, rows=ROWS, keys=["city"], id="postgres.lookup of several rows"),
        LookupCase("postgres.lookup", in_table, rows=ROWS, keys=["city", "id"], id="postgres.lookup by two columns"),
    ]
    # Of the plugin as a whole others say it.
    return [check for check in Conformance("arroyo_postgres.plugin", cases).checks() if check.case != "plugin"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check) -> None:
    shared_server()
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
