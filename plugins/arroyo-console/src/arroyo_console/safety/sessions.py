"""Sessions of browsers: a cookie that a script cannot read, and a second secret that another site does not have."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from dataclasses import dataclass

from arroyo_console.values import Role

COOKIE = "arroyo_session"
CSRF_HEADER = "x-csrf-token"
LIFE_S = 12 * 3600
#: The oldest go when there are more.
MAX_SESSIONS = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser has logged in as."""

    id: str
    csrf: str
    role: Role
    ends_s: float

    def has_csrf(self, given: str) -> bool:
        return hmac.compare_digest(self.csrf.encode(), given.encode("utf-8", "surrogateescape"))


class Sessions:
    """Those of this server; a server that is started again has none, and browsers log in again."""

    def __init__(self) -> None:
        self._known: dict[str, Session] = {}
        self._lock = threading.Lock()

    def begin(self, role: Role) -> Session:
        ends_s = time.monotonic() + LIFE_S
        made = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), role, ends_s)
        with self._lock:
            self._known[made.id] = made
            while len(self._known) > MAX_SESSIONS:
                del self._known[next(iter(self._known))]
        return made

    def find(self, session_id: str) -> Session | None:
        with self._lock:
            found = self._known.get(session_id)
            if found is not None and found.ends_s < time.monotonic():
                del self._known[session_id]
                return None
            return found

    def end(self, session_id: str) -> None:
        with self._lock:
            self._known.pop(session_id, None)
