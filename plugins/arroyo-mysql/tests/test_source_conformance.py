"""`mysql.source` keeps the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SourceCase

from tests.mysql_server import shared_server

pytestmark = pytest.mark.server


def in_table(folder: Path) -> dict[str, Any]:
    """A table of its own for each folder."""
    table = "s_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name.lower())
    server = shared_server()
    server.execute(
        f"drop table if exists {table}",
        f"create table {table} (id bigint primary key, word text, at timestamp)",
        f"insert into {table} select seq, concat('w', seq), timestamp '2024-01-01 00:00:00' + interval seq second "
        "from seq_1_to_23",
    )
    return {
        "connection": server.config,
        "table": table,
        "growing_column": "id",
        "event_time_field": "at",
        "until": "latest",
        "batch_rows": 3,
    }


def checks() -> list[Check]:
    suite = Conformance("arroyo_mysql.plugin", [SourceCase("mysql.source", in_table)])
    # The others have their cases in files of their own.
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
