"""What docs/mysql-cdc.md asks for is enough, and what is missing is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from arroyo_testing.databases import MakeTable, Materialized, catch_up, refused, run_until_it_fails

from arroyo_core.errors import ConfigError
from tests.mysql_server import MysqlServer

pytestmark = pytest.mark.server

READER = {"user": "reader", "password": "secret"}


@pytest.fixture
def reader(server: MysqlServer) -> Iterator[MysqlServer]:
    """The server, with a user who may do nothing yet."""
    server.execute("create user reader@'127.0.0.1' identified by 'secret'")
    yield server
    server.execute("drop user reader@'127.0.0.1'")


def test_what_the_page_asks_for_is_enough(table: MakeTable, reader: MysqlServer) -> None:
    made, result = table(), Materialized()
    made.fill(20)
    reader.execute(
        f"grant select on shop.{made.name} to reader@'127.0.0.1'",
        "grant replication slave, binlog monitor on *.* to reader@'127.0.0.1'",
    )
    # The warning of what is not read asks the server, too.
    source = made.source(connection={**reader.config, **READER}, chunk_rows=6, warn_lag=1)
    result.add(source.run(rows=6).table)
    made.run("update $t set name = 'a' where id in (2, 19)", "delete from $t where id = 7")
    catch_up(source, result, made)
    made.end_streams()
    made.run("update $t set name = 'b'")
    for _ in range(3):
        result.add(source.run(rows=7).table)
    catch_up(source, result, made)


def test_a_snapshot_alone_asks_for_select_only(table: MakeTable, reader: MysqlServer) -> None:
    made = table()
    made.fill(5)
    reader.execute(f"grant select on shop.{made.name} to reader@'127.0.0.1'")
    source = made.source(connection={**reader.config, **READER}, snapshot="only", chunk_rows=2)
    assert source.run_all()["id"].to_pylist() == [1, 2, 3, 4, 5]


def test_a_privilege_that_is_missing_is_named(table: MakeTable, reader: MysqlServer) -> None:
    made = table()
    reader.execute(f"grant select on shop.{made.name} to reader@'127.0.0.1'")
    config = {"connection": {**reader.config, **READER}}
    with pytest.raises(ConfigError, match="BINLOG MONITOR") as caught:
        made.source(**config)
    assert caught.value.field == "connection.user"
    reader.execute("grant binlog monitor on *.* to reader@'127.0.0.1'")
    with refused(ConfigError, "REPLICATION SLAVE"):
        run_until_it_fails(made.source(**config))
