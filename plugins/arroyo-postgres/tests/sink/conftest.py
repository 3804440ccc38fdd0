from __future__ import annotations

import pytest

from tests.postgres_server import PostgresServer


@pytest.fixture
def database(server: PostgresServer) -> PostgresServer:
    """The shared server, with an empty schema `public`."""
    server.execute("drop schema public cascade", "create schema public")
    return server
