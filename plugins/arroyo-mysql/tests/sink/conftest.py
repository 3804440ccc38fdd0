from __future__ import annotations

import pytest

from tests.mysql_server import MysqlServer

from .support import Database


@pytest.fixture
def database(server: MysqlServer) -> Database:
    """An empty database on the shared server."""
    return Database(server)
