"""Connections that stay open between questions: an operator lives for one epoch, the process for many."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

#: How many are kept for a database; more are opened where more ask at once.
MAX_IDLE = 4


class Closable(Protocol):
    """A connection."""

    def close(self) -> None: ...


K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class IdleConnections(Generic[K, C]):
    """Those that nobody uses, by database."""

    def __init__(self, connect: Callable[[K], C]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: dict[K, list[C]] = {}

    def keep_for_process(self) -> IdleConnections[K, C]:
        """Close them when the process ends; a forked one must not use its parent's. Returns itself."""
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)
        return self

    def ask(self, database: K, question: Callable[[C], T], *, is_broken: Callable[[Exception], bool]) -> T:
        """Ask on an idle connection; where that is broken, once more on a new one.

        It may have been closed while nobody used it: by the server, or by what is between.
        """
        if self.has_idle(database):
            try:
                with self.taken(database) as connection:
                    return question(connection)
            except Exception as error:
                if not is_broken(error):
                    raise
        with self.taken(database, is_new=True) as connection:
            return question(connection)

    @contextmanager
    def taken(self, database: K, *, is_new: bool = False) -> Iterator[C]:
        """A connection for one question, kept where that went well; `is_new` leaves those that are idle alone."""
        with self._lock:
            idle = self._idle.setdefault(database, [])
            connection = idle.pop() if idle and not is_new else None
        if connection is None:
            connection = self._connect(database)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            idle = self._idle.setdefault(database, [])
            if len(idle) < MAX_IDLE:
                idle.append(connection)
                return
        connection.close()

    def has_idle(self, database: K) -> bool:
        with self._lock:
            return bool(self._idle.get(database))

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        _untouchable.append(self._idle)
        self._idle = {}


#: Keeps connections of a parent process from being ended by the garbage collector.
_untouchable: list[object] = []
