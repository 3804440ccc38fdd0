from __future__ import annotations

import pytest

from tests.postgres_server import PostgresServer

from .support import Database


@pytest.fixture
def database(server: PostgresServer) -> Database:
    """An empty schema `public` on the shared server."""
    return Database(server)
