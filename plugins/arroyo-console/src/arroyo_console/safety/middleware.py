"""Stands before everything that the server serves: pages, their sockets, files and the API."""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arroyo_console.safety.access import AccessRules, DeniedError, Request
from arroyo_core.api.limits import FILE_BYTES

#: What anybody may ask for: whether the server is there, and to log in.
OPEN_PATHS = frozenset({"/v1/ping", "/v1/session", "/login"})
#: JSON writes a text longer than it is.
BODY_ROOM = 64 * 1024
VISITOR = "arroyo_visitor"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """The outermost application: what it does not let through, no other code sees."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            request = _request(scope)
            visitor = self._rules.admit(request)
            if visitor is None and scope["path"] not in OPEN_PATHS:
                raise DeniedError(401, "log in, or send a token: Authorization: Bearer TOKEN")
        except DeniedError as denied:
            await _refuse(scope, receive, send, denied)
            return
        scope[VISITOR] = visitor
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        limit = 2 * FILE_BYTES.value + BODY_ROOM
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > limit:
            await _refuse(scope, receive, send, DeniedError(413, f"a request has at most {limit} bytes"))
            return
        await self._app(scope, _limited(receive, limit), _with_headers(send, scope["path"]))


def _request(scope: Scope) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        # Which of two counts, two readers may see differently.
        if key in headers and key in ("host", "origin", "authorization"):
            raise DeniedError(400, f"the header {key} is there twice")
        headers[key] = f"{headers[key]}; {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
    client, server = scope.get("client"), scope.get("server")
    connection = None
    # The port is missing where it is a Unix socket.
    if client and server and server[1]:
        connection = (client[0], client[1]), (server[0], server[1])
    return Request(
        method=scope.get("method", "GET"),
        headers=headers,
        client=client[0] if client else "",
        is_websocket=scope["type"] == "websocket",
        connection=connection,
    )


def _limited(receive: Receive, limit: int) -> Receive:
    """Also where the length was not declared; what is beyond it is as if the other side had gone."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        if message["type"] == "http.request":
            read += len(message.get("body", b""))
            if read > limit:
                return {"type": "http.disconnect"}
        return message

    return limited


def _with_headers(send: Send, path: str) -> Send:
    extra: Iterable[tuple[bytes, bytes]] = _HEADERS
    if path.startswith("/v1/"):
        extra = (*_HEADERS, (b"cache-control", b"no-store"))

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *extra]
        await send(message)

    return sent


async def _refuse(scope: Scope, receive: Receive, send: Send, denied: DeniedError) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": denied.message[:100]})
        return
    headers = [*_HEADERS, (b"cache-control", b"no-store")]
    wants_page = any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
    if denied.status == 401 and wants_page and scope["method"] in ("GET", "HEAD"):
        await send({"type": "http.response.start", "status": 303, "headers": [*headers, (b"location", b"/login")]})
        await send({"type": "http.response.body", "body": b""})
        return
    if denied.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    body = json.dumps({"title": "refused", "status": denied.status, "detail": denied.message}).encode()
    headers += [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": denied.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
