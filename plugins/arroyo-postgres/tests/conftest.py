"""A server for all tests, and databases of their own on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.postgres_server import PostgresServer, running_server, shared_server

from .support.tables import Table

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=40)
settings.load_profile("shared")


@pytest.fixture(scope="session")
def server() -> PostgresServer:
    """A real server, for all tests that leave it running."""
    return shared_server()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop and kill."""
    shared_server()  # skips, or fails, where there is none
    with running_server() as server:
        yield server


@pytest.fixture
def table(server: PostgresServer) -> Iterator[Callable[..., Table]]:
    """Makes tables with names of their own: `table("id int primary key")`; they and their slots are gone afterwards."""
    made: list[Table] = []

    def make(*args: Any, on: PostgresServer | None = None, **options: Any) -> Table:
        made.append(Table(on or server, *args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
        if each.server is server:
            each.drop()
