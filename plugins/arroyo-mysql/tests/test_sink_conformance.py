"""The sink keeps the rules of `arroyo_testing.conformance`; visible is what a query finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SinkCase

from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("price", pa.float64())])
ROWS = pa.table({"id": [1, 2, 3, 4] * 3, "name": ["a", "b", None, "d"] * 3, "price": [1.5, None, -4.25] * 4}, SCHEMA)
#: The server of the session, for cases that are made before there is one.
_SERVERS: list[MysqlServer] = []


def in_table(**config: Any) -> Any:
    """A config with tables of its own for each folder: the kit's jobs all have one incarnation."""

    def make(folder: Path) -> dict[str, Any]:
        return {
            "connection": _SERVERS[0].config,
            "table": name(folder),
            "token_table": f"{name(folder)}_tokens",
            "create_table": True,
            **config,
        }

    return make


def name(folder: Path) -> str:
    return "c_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name.lower())[-50:]


def visible(folder: Path) -> pa.Table:
    if not _SERVERS[0].execute(f"show tables like '{name(folder)}'"):
        return ROWS.slice(0, 0)
    rows = _SERVERS[0].execute(f"select id, name, price from {name(folder)}")
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def checks() -> list[Check]:
    upsert = in_table(mode="upsert", keys=["id"])
    cases = [
        SinkCase("mysql.sink", in_table(), [ROWS], visible=visible),
        SinkCase("mysql.sink", upsert, [ROWS], visible=visible, latest_by=["id"], id="mysql.sink that upserts"),
    ]
    suite = Conformance("arroyo_mysql.plugin", cases)
    # Sources have modules of their own.
    return [check for check in suite.checks() if check.name != "every_operator_has_a_case"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, server: MysqlServer) -> None:
    _SERVERS[:] = [server]
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
