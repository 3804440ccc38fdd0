"""The benchmark runs, on few rows: its answers are checked while it does."""

import pytest

from benchmarks.cdc import on_mysql, on_postgres
from tests import mysql_server, postgres_server

pytestmark = [pytest.mark.server, pytest.mark.once]


def test_postgres_is_measured(capsys):
    on_postgres.measure_all(postgres_server.shared_server(), 2500)
    printed = capsys.readouterr().out
    assert "changes from a slot: 3,000" in printed
    assert printed.count("k changes/s") == 4
    assert printed.count("k rows/s") == 4


def test_mysql_is_measured(capsys):
    on_mysql.measure_all(mysql_server.shared_server(), 2500)
    printed = capsys.readouterr().out
    assert "changes from the binlog: 3,000" in printed
    assert printed.count("k changes/s") == 3 + on_mysql.has_program()
    assert printed.count("k rows/s") == 3
