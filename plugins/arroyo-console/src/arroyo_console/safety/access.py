"""Decides about a request: who asks, as what, and whether another site has made a browser ask."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from arroyo_console.safety.peers import Address
from arroyo_console.safety.sessions import COOKIE, CSRF_HEADER, Session, Sessions
from arroyo_console.safety.tokens import Tokens
from arroyo_console.values import Role

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class DeniedError(Exception):
    """A request is refused: with a status, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is looked at of a request; headers have names in small letters."""

    method: str
    headers: Mapping[str, str] = field(repr=False)
    #: The address that it comes from; empty for none that is known.
    client: str = ""
    is_websocket: bool = False
    #: The client's end and the server's, where it is a connection over TCP.
    connection: tuple[Address, Address] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who asks."""

    role: Role
    session: Session | None = None
    #: As the reverse proxy says; empty where there is none.
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """How a server that listens at `host` lets others in."""

    host: str = "127.0.0.1"
    tokens: Tokens = field(default_factory=Tokens)
    #: Names under which it is reached beside its own.
    names: frozenset[str] = frozenset()
    #: The header in which a reverse proxy says who asks, the addresses that such a proxy may have, and who may write.
    proxy_header: str | None = None
    proxies: tuple[str, ...] = _LOOPBACK_NAMES
    writers: frozenset[str] = frozenset()
    sessions: Sessions = field(default_factory=Sessions, compare=False, repr=False)
    #: Whether a connection without a login may write; None where that cannot be told, and all may.
    may_enter: Callable[[Address, Address], bool] | None = None

    @property
    def needs_login(self) -> bool:
        return bool(self.tokens) or self.proxy_header is not None

    def admit(self, request: Request) -> Visitor | None:
        """Who asks; None for somebody unknown. Raises `DeniedError` for what no browser of ours would send."""
        self._check_host(request)
        _check_origin(request)
        bearer = _bearer(request.headers.get("authorization", ""))
        if bearer is not None:
            role = self.tokens.role_of(bearer)
            if role is None and self.tokens:
                raise DeniedError(401, "the token is not one of this server's")
            if role is not None:
                return Visitor(role=role)
        if self.proxy_header is not None and request.client in self.proxies:
            user = request.headers.get(self.proxy_header.lower(), "").strip()
            if user:
                role = Role.WRITE if user in self.writers or "*" in self.writers else Role.READ
                return Visitor(role=role, user=user)
        session = self.sessions.find(_cookie(request.headers.get("cookie", "")))
        if session is not None:
            _check_csrf(request, session)
            return Visitor(role=session.role, session=session)
        if self.needs_login:
            return None
        if self.may_enter is not None and not (request.connection and self.may_enter(*request.connection)):
            raise DeniedError(403, "this server is for the user who started it: others need --token-file and a token")
        return Visitor(role=Role.WRITE)

    def _check_host(self, request: Request) -> None:
        """A page of another site may be at a name that means this machine; a token or a cookie it does not have."""
        name = host_name(request.headers.get("host", ""))
        if self.needs_login and not self.names:
            return
        if name not in (*_LOOPBACK_NAMES, self.host, *self.names):
            raise DeniedError(421, f"this server is not called {name!r:.100}; --allow-host NAME lets it be")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """Of a `Host` header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _check_origin(request: Request) -> None:
    """Refuse what a page of another site makes a browser send, where it might change something."""
    if request.method in SAFE_METHODS and not request.is_websocket:
        return
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise DeniedError(403, "the request comes from a page of another site")
    origin = request.headers.get("origin")
    if origin is None:
        return
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        place = ""
    if not place or place.lower() != request.headers.get("host", "").lower():
        raise DeniedError(403, f"the request comes from a page of {origin!r:.100}, which is another site")


def _check_csrf(request: Request, session: Session) -> None:
    # Of a websocket the origin is enough, which browsers always send: it has no headers of its own.
    if request.method in SAFE_METHODS or request.is_websocket:
        if request.is_websocket and "origin" not in request.headers:
            raise DeniedError(403, "a websocket with a cookie needs an Origin")
        return
    if "origin" not in request.headers and not session.has_csrf(request.headers.get(CSRF_HEADER, "")):
        raise DeniedError(403, f"a request with a cookie needs the header {CSRF_HEADER}: GET /v1/session has it")


def _bearer(header: str) -> str | None:
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
