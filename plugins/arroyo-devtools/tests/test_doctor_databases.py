"""`arroyo doctor` of pipelines that read the changes of a table: it asks the server for what they need of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arroyo_core.cli.main import main
from tests import mysql_server, postgres_server

pytestmark = pytest.mark.server

PIPELINE = """
name: orders
checkpoint: {{url: {folder}/state}}
nodes:
  - id: orders
    operator: {operator}
    config: {config}
  - {{id: out, operator: std.blackhole, inputs: [orders]}}
"""


def findings(folder: Path, capsys: pytest.CaptureFixture[str], operator: str, **config: Any) -> dict[str, Any]:
    """What it says of the pipeline, and whether all is well."""
    file = folder / "orders.yaml"
    file.write_text(PIPELINE.format(folder=folder, operator=operator, config=json.dumps(config)))
    code = main(["doctor", str(file), "--no-spark", "--format", "json"])
    printed = capsys.readouterr().out
    assert "only for tests" not in printed
    (found,) = [each for each in json.loads(printed)["findings"] if each["check"] == "pipeline"]
    assert (code == 0) == (found["level"] == "ok"), printed
    return found


def test_settings_of_the_binlog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = mysql_server.shared_server()
    server.empty()
    server.execute("create table orders (id int primary key)", "set global binlog_row_metadata = NO_LOG")
    config: dict[str, Any] = {"connection": server.config, "table": "orders"}
    try:
        found = findings(tmp_path, capsys, "mysql.cdc", **config)
    finally:
        server.execute("set global binlog_row_metadata = FULL")
    assert "SET GLOBAL binlog_row_metadata = FULL" in found["message"]
    assert findings(tmp_path, capsys, "mysql.cdc", **config)["level"] == "ok"


def test_privileges_on_the_binlog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = mysql_server.shared_server()
    server.empty()
    server.execute(
        "create table orders (id int primary key)",
        "create or replace user reader@'127.0.0.1' identified by 'secret'",
        "grant select on shop.orders to reader@'127.0.0.1'",
    )
    config = {"connection": {**server.config, "user": "reader", "password": "secret"}, "table": "orders"}
    assert "BINLOG MONITOR" in findings(tmp_path, capsys, "mysql.cdc", **config)["message"]
    server.execute("grant binlog monitor on *.* to reader@'127.0.0.1'")
    assert findings(tmp_path, capsys, "mysql.cdc", **config)["level"] == "ok"


def test_the_identity_of_a_table_of_postgresql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = postgres_server.shared_server()
    server.execute("create table doctored (id int primary key)")
    config: dict[str, Any] = {"connection": server.config, "table": "doctored", "slot": "doctored"}
    assert "REPLICA IDENTITY FULL" in findings(tmp_path, capsys, "postgres.cdc", **config)["message"]
    server.execute("alter table doctored replica identity full")
    assert findings(tmp_path, capsys, "postgres.cdc", **config)["level"] == "ok"
