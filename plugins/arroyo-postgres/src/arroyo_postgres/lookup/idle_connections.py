"""Connections that stay open between questions: an operator lives for one epoch, the process for many."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from arroyo_postgres.connection import Server

if TYPE_CHECKING:
    import psycopg

#: How many are kept for a database; more are opened where more ask at once.
MAX_IDLE = 4
#: Questions change nothing, and end.
_SESSION = {"default_transaction_read_only": "on", "statement_timeout": "60s"}


class IdleConnections:
    """The connections of a process that nobody uses, by database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[Server, list[psycopg.Connection[Any]]] = {}

    @contextmanager
    def taken(self, server: Server, *, is_new: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """A connection for one question, kept where that went well; `is_new` leaves those that are idle alone."""
        with self._lock:
            idle = self._idle.setdefault(server, [])
            connection = idle.pop() if idle and not is_new else None
        connection = connection or server.connect(name="arroyo lookup", settings=_SESSION)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle[server]) < MAX_IDLE and not connection.closed:
                self._idle[server].append(connection)
                return
        connection.close()

    def has_idle(self, server: Server) -> bool:
        with self._lock:
            return bool(self._idle.get(server))

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()


@lru_cache(maxsize=1)
def process_connections(_pid: int) -> IdleConnections:
    # A forked process must not use its parent's, hence the process id.
    made = IdleConnections()
    atexit.register(made.close)
    return made


def idle_connections() -> IdleConnections:
    """Those of this process."""
    return process_connections(os.getpid())
