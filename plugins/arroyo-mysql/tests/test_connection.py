"""Connections: what a config gives, and what errors of the server mean."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pymysql
import pytest
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.connection_pb2 import Connection

from arroyo_core.api import with_defaults
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError, RefusedError
from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server


def read(**config: Any) -> Server:
    return read_connection(with_defaults(Connection(**config)))


def refusal(config: dict[str, Any], **changes: Any) -> ArroyoError:
    with pytest.raises(ArroyoError) as caught:
        read(**{**config, **changes}).connect()
    return caught.value


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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"password": "wrong one"}, "connection.password"),
        ({"user": "nobody"}, "connection.password"),  # the server does not say that there is none
        ({"host": "127.0.0.1", "sslmode": "verify_ca", "sslrootcert": "/no/such/file"}, "connection.sslrootcert"),
        ({"database": "none"}, "connection.database"),
        ({"sslmode": "require"}, "connection.sslmode"),
    ],
)
def test_what_no_retry_helps_is_a_mistake_with_its_field(
    server: MysqlServer, changes: dict[str, Any], field: str
) -> None:
    error = refusal(server.config, **changes)
    assert isinstance(error, ConfigError), error
    assert error.field == field
    assert "wrong one" not in str(error)


def test_a_server_that_is_away_is_an_outage(own_server: MysqlServer) -> None:
    config = own_server.config
    own_server.stop()
    assert isinstance(refusal(config), ExternalError)


def test_a_session_that_the_server_ends_is_an_outage(server: MysqlServer) -> None:
    database = read(**server.config)
    session = database.connect()
    ((thread,),) = session.execute("select connection_id()")
    server.execute(f"kill {thread}")
    with pytest.raises(ExternalError, match="cannot ask"), database.translating("cannot ask"):
        session.execute("select 1")
    session.close()
    with pytest.raises(ExternalError), database.translating("cannot ask"):
        session.execute("select 1")
    session.close()


def test_statements_that_are_wrong_and_rows_that_do_not_fit_are_no_outages(server: MysqlServer) -> None:
    database = read(**server.config)
    with closing(database.connect()) as session:
        unknown = pytest.raises(ConfigError, match=r"cannot read: .* doesn't exist \(error 1146\)")
        with unknown as caught, database.translating("cannot read"):
            session.execute("select * from no_such_table")
        assert caught.value.field == "table"
        session.execute("create or replace temporary table t (n tinyint)")
        with pytest.raises(DataError), database.translating("cannot write"):
            session.execute("insert into t values (1000)")


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


def test_checked_certificates_need_authorities() -> None:
    with pytest.raises(ConfigError) as caught:
        read(host="db", database="shop", user="me", sslmode="verify_full")
    assert caught.value.field == "connection.sslrootcert"


def test_planning_for_those_who_are_not_trusted_reaches_no_server(server: MysqlServer) -> None:
    with in_force(PlanningPolicy(is_untrusted=True)), pytest.raises(RefusedError):
        read(**server.config).connect()


def test_a_server_that_was_killed_comes_back_with_what_was_committed(own_server: MysqlServer) -> None:
    own_server.execute("create table kept (id int)", "insert into kept values (1)")
    own_server.restart()
    assert own_server.execute("select id from kept") == [(1,)]
