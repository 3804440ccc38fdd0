"""A server for all tests, and an empty database on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.mysql_server import MysqlServer, running_server, shared_server

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=40)
settings.load_profile("shared")


@pytest.fixture(scope="session")
def server() -> MysqlServer:
    """A real server, for all tests that leave it running."""
    return shared_server()


@pytest.fixture
def own_server() -> Iterator[MysqlServer]:
    """One that a test may stop and kill."""
    shared_server()  # skips, or fails, where there is none
    with running_server() as server:
        yield server


@pytest.fixture
def database(server: MysqlServer) -> MysqlServer:
    """The shared server, with an empty database `shop`."""
    server.empty()
    return server
