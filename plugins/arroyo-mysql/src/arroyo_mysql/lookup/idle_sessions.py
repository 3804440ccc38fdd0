"""Sessions that stay open between questions: an operator lives for one epoch, the process for many."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from arroyo_mysql.connection import Server, Session

#: How many are kept for a database; more are opened where more ask at once.
MAX_IDLE = 4
#: How long a question may take, in seconds.
ANSWER_S = 60


class IdleSessions:
    """The sessions of a process that nobody uses, by database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[Server, list[Session]] = {}

    @contextmanager
    def taken(self, server: Server, *, is_new: bool = False) -> Iterator[Session]:
        """A session for one question, kept where that went well; `is_new` leaves those that are idle alone."""
        with self._lock:
            idle = self._idle.setdefault(server, [])
            session = idle.pop() if idle and not is_new else None
        if session is None:
            session = server.connect(answer_s=ANSWER_S, raw=True)
            # Questions change nothing.
            session.execute("set session transaction read only")
        try:
            yield session
        except BaseException:
            session.close()
            raise
        with self._lock:
            if len(self._idle[server]) < MAX_IDLE:
                self._idle[server].append(session)
                return
        session.close()

    def has_idle(self, server: Server) -> bool:
        with self._lock:
            return bool(self._idle.get(server))

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            for sessions in self._idle.values():
                while sessions:
                    sessions.pop().close()


@lru_cache(maxsize=1)
def process_sessions(_pid: int) -> IdleSessions:
    # A forked process must not use its parent's, hence the process id.
    made = IdleSessions()
    atexit.register(made.close)
    return made


def idle_sessions() -> IdleSessions:
    """Those of this process."""
    return process_sessions(os.getpid())
