"""Connections: what a config gives, and what errors of the server mean."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.connection_pb2 import Connection

from arroyo_core.api import with_defaults
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError, RefusedError
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.server


def read(**config: Any) -> Server:
    return read_connection(with_defaults(Connection(**config)))


def refusal(config: dict[str, Any], **changes: Any) -> ArroyoError:
    with pytest.raises(ArroyoError) as caught:
        read(**{**config, **changes}).connect()
    return caught.value


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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"password": "wrong one"}, "connection.password"),
        ({"user": "nobody"}, "connection.password"),  # the server does not say that there is none
        ({"database": "none"}, "connection.database"),
        ({"sslmode": "require"}, "connection.sslmode"),
    ],
)
def test_what_no_retry_helps_is_a_mistake_with_its_field(
    server: PostgresServer, changes: dict[str, Any], field: str
) -> None:
    error = refusal(server.config, **changes)
    assert isinstance(error, ConfigError), error
    assert error.field == field
    assert "wrong one" not in str(error)


def test_a_server_that_is_away_is_an_outage(own_server: PostgresServer) -> None:
    config = own_server.config
    own_server.stop()
    assert isinstance(refusal(config), ExternalError)


def test_a_session_that_the_server_ends_is_an_outage(server: PostgresServer) -> None:
    database = read(**server.config)
    connection = database.connect()
    pid = connection.info.backend_pid
    server.execute(f"select pg_terminate_backend({pid})")
    with pytest.raises(ExternalError, match="terminat"), database.translating("cannot ask"):
        connection.execute("select 1")
    connection.close()


def test_statements_that_are_wrong_and_rows_that_do_not_fit_are_no_outages(server: PostgresServer) -> None:
    database = read(**server.config)
    with database.connect() as connection:
        unknown = pytest.raises(ConfigError, match=r"cannot read: relation .* \(SQLSTATE 42P01\)")
        with unknown as caught, database.translating("cannot read"):
            connection.execute("select * from no_such_table")
        assert caught.value.field == "table"
        with pytest.raises(DataError), database.translating("cannot write"):
            connection.execute("select 'a'::int")


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


def test_checked_certificates_need_authorities() -> None:
    with pytest.raises(ConfigError) as caught:
        read(host="db", sslmode="verify_full")
    assert caught.value.field == "connection.sslrootcert"


def test_planning_for_those_who_are_not_trusted_reaches_no_server(server: PostgresServer) -> None:
    with in_force(PlanningPolicy(is_untrusted=True)), pytest.raises(RefusedError):
        read(**server.config).connect()


def test_a_server_that_was_killed_comes_back_with_what_was_committed(own_server: PostgresServer) -> None:
    own_server.execute("create table kept (id int)", "insert into kept values (1)")
    own_server.restart()
    assert own_server.execute("select id from kept") == [(1,)]
