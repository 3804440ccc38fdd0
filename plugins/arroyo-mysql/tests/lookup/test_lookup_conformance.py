"""`mysql.lookup` keeps the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, LookupCase, NotApplicable

from tests.mysql_server import MysqlServer, shared_server

pytestmark = pytest.mark.server

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None], pa.int64()),
        "city": pa.array(["Oslo", None, "", "Oslo", "Rome"], pa.string()),
    }
)


def in_table(folder: Path) -> dict[str, Any]:
    """A table of its own for each folder."""
    table = "l_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name.lower())
    server = shared_server()
    server.execute(
        f"drop table if exists {table}",
        f"create table {table} (id bigint, city varchar(20))",
        f"insert into {table} values (1, 'Oslo'), (2, null), (3, ''), (4, 'Oslo'), (null, 'Rome')",
    )
    return {"connection": server.config, "table": table}


def checks() -> list[Check]:
    cases = [
        LookupCase("mysql.lookup", in_table, rows=ROWS, keys=["id"]),
        LookupCase("mysql.lookup", in_table, rows=ROWS, keys=["city"], id="mysql.lookup of several rows"),
        LookupCase("mysql.lookup", in_table, rows=ROWS, keys=["city", "id"], id="mysql.lookup by two columns"),
    ]
    # Of the plugin as a whole others say it.
    return [check for check in Conformance("arroyo_mysql.plugin", cases).checks() if check.case != "plugin"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, database: MysqlServer) -> None:
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
