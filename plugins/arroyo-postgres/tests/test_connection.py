"""Connections: what a config gives, and what errors of the server mean."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.connection_pb2 import Connection
from arroyo_testing.databases import ConnectionSuite, DatabaseServer

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.server


def read(**config: Any) -> Server:
    return read_connection(with_defaults(Connection(**config)))


def test_connects_with_fields_and_with_a_url(server: PostgresServer) -> None:
    config = server.config
    with read(**config).connect() as connection:
        assert connection.execute("select current_database()").fetchone() == ("shop",)
    url = f"postgresql://tests:only%20for%20tests@127.0.0.1:{server.port}/postgres?application_name=x"
    with read(url=url, database="shop").connect(name="arroyo orders") as connection:
        assert connection.execute("select current_database(), current_setting('application_name')").fetchone() == (
            "shop",
            "arroyo orders",
        )


def test_sessions_write_values_in_one_way(server: PostgresServer) -> None:
    with read(**server.config).connect() as connection:
        connection.execute("set timezone to default")
        row = connection.execute("show timezone").fetchone()
    assert row == ("UTC",)


class TestConnection(ConnectionSuite):
    mistakes = ()
    unknown_table = r"cannot read: relation .* \(SQLSTATE 42P01\)"
    misfit = ("select 'a'::int",)

    def read(self, **config: Any) -> Server:
        return read(**config)

    def number(self, connection: Any) -> int:
        return int(connection.info.backend_pid)

    def end_session(self, server: DatabaseServer, number: int) -> None:
        server.execute(f"select pg_terminate_backend({number})")


def test_secrets_are_in_no_text() -> None:
    found = read(url="postgresql://me:hidden@db:5433/shop?password=other")
    assert found.display() == "db:5433/shop"
    assert "hidden" not in repr(found)
    error = found.translate(psycopg.OperationalError("postgresql://me:hidden@db:5433/shop?password=other"), "x")
    assert str(error) == "x: ***"


@pytest.mark.parametrize("url", ["mysql://a/b", "postgresql://a:b:c@d:x/", "host=a dbname=b"])
def test_urls_that_are_none_are_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(url=url)
    assert caught.value.field == "connection.url"
    assert url not in str(caught.value)
