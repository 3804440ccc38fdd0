"""Tables of their own on the shared server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.mysql_server import MysqlServer

from .support import Table


@pytest.fixture
def table(server: MysqlServer) -> Iterator[Callable[..., Table]]:
    """Makes tables with names of their own: `table("id int primary key")`; they are gone afterwards."""
    made: list[Table] = []

    def make(*args: Any, on: MysqlServer | None = None, **options: Any) -> Table:
        made.append(Table(on or server, *args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
        if each.server is server:
            each.drop()
