"""A table that grows, on the server of all tests."""

from __future__ import annotations

import pytest

from tests.postgres_server import PostgresServer


@pytest.fixture
def database(server: PostgresServer) -> PostgresServer:
    server.execute(
        "drop schema public cascade",
        "create schema public",
        "create table events (id bigint generated always as identity primary key, word text, at timestamptz)",
    )
    return server
