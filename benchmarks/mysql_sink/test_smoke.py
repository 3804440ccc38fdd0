"""The benchmark runs, on few rows."""

import pytest

from benchmarks.mysql_sink.__main__ import measure_all
from benchmarks.postgres_sink.__main__ import orders
from tests.mysql_server import shared_server

pytestmark = [pytest.mark.server, pytest.mark.once]


def test_every_case_is_measured(capsys):
    measure_all(shared_server(), orders(3000), 1000)
    printed = capsys.readouterr().out
    assert printed.count("k rows/s") == 5
    assert printed.count("ms") == 2
