"""Connections: what a config gives, and what errors of the server mean."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pymysql
import pytest
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.connection_pb2 import Connection
from arroyo_testing.databases import ConnectionSuite, DatabaseServer

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError
from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server


def read(**config: Any) -> Server:
    return read_connection(with_defaults(Connection(**config)))


def test_connects_with_fields_and_with_a_url(server: MysqlServer) -> None:
    with closing(read(**server.config).connect()) as session:
        assert session.execute("select database()") == [("shop",)]
    with closing(read(url=server.url.replace("/shop", "/mysql"), database="shop").connect()) as session:
        assert session.execute("select database()") == [("shop",)]


def test_sessions_do_not_depend_on_the_settings_of_the_server(server: MysqlServer) -> None:
    """The server of the tests has another time zone and another way to read literals."""
    with closing(read(**server.config).connect()) as session:
        ((modes, zone, charset),) = session.execute("select @@sql_mode, @@time_zone, @@character_set_client")
    assert set(modes.split(",")) == {"STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO", "NO_ENGINE_SUBSTITUTION"}
    assert (zone, charset) == ("+00:00", "utf8mb4")


class TestConnection(ConnectionSuite):
    mistakes = (({"sslmode": "verify_ca", "sslrootcert": "/no/such/file"}, "connection.sslrootcert"),)
    unknown_table = r"cannot read: .* doesn't exist \(error 1146\)"
    misfit = ("create or replace temporary table t (n tinyint)", "insert into t values (1000)")

    def read(self, **config: Any) -> Server:
        return read(**config)

    def number(self, connection: Any) -> int:
        return int(connection.execute("select connection_id()")[0][0])

    def end_session(self, server: DatabaseServer, number: int) -> None:
        server.execute(f"kill {number}")


def test_secrets_are_in_no_text() -> None:
    found = read(url="mysql://me:hid%20den@db:3307/shop?sslmode=require")
    assert found.display() == "db:3307/shop"
    assert "hid" not in repr(found)
    error = found.translate(pymysql.OperationalError(2003, "mysql://me:hid%20den@db:3307/shop?sslmode=require"), "x")
    assert str(error) == "x: *** (error 2003)"
    assert "hid den" not in str(found.translate(pymysql.OperationalError(2003, "with hid den"), "x"))


@pytest.mark.parametrize("url", ["postgresql://a/b", "mysql://a:b:c@d:x/", "host=a dbname=b", "mysql://a@b/c?d=e"])
def test_urls_that_are_none_are_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(url=url)
    assert caught.value.field == "connection.url"
    assert url not in str(caught.value)


@pytest.mark.parametrize("missing", ["database", "user"])
def test_what_is_needed_is_asked_for(missing: str) -> None:
    with pytest.raises(ConfigError, match="is needed") as caught:
        read(**{"host": "db", "database": "shop", "user": "me", missing: ""})
    assert caught.value.field == f"connection.{missing}"
