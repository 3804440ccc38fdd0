"""A real S3-protocol server over HTTP that answers some requests wrongly, late, half or not at all."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from arroyo_testing.s3_server import S3Server, s3_server
from werkzeug.serving import WSGIRequestHandler, make_server

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Fault(StrEnum):
    """What goes wrong with one request; after `done` the store has done what was asked, and nobody is told."""

    ERROR = "500"
    BUSY = "503"
    ERROR_WHEN_DONE = "500 when done"
    RESET = "reset"
    RESET_WHEN_DONE = "reset when done"
    SILENCE = "silence"
    SILENCE_WHEN_DONE = "silence when done"
    HALF_AN_ANSWER = "half an answer"


_ERROR_BODY = b'<?xml version="1.0"?><Error><Code>%s</Code><Message>a test</Message></Error>'
_ERRORS = {
    Fault.ERROR: ("500 Internal Server Error", b"InternalError"),
    Fault.ERROR_WHEN_DONE: ("500 Internal Server Error", b"InternalError"),
    Fault.BUSY: ("503 Slow Down", b"ServiceUnavailable"),
}
_WHEN_DONE = {Fault.ERROR_WHEN_DONE, Fault.RESET_WHEN_DONE, Fault.SILENCE_WHEN_DONE, Fault.HALF_AN_ANSWER}


#: Of one connection, not of the answer.
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


def forward_to(url: str) -> Application:
    """Gives requests to the server as they came: its clients have signed them, the name of the host too."""
    address = urlsplit(url).netloc

    def forward(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or (name in ("CONTENT_TYPE", "CONTENT_LENGTH") and value)
        }
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        connection = http.client.HTTPConnection(address)
        try:
            connection.request(environ["REQUEST_METHOD"], environ["REQUEST_URI"], body=body, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        told = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
        length = answer.getheader("Content-Length") or str(len(content))
        start_response(f"{answer.status} {answer.reason}", [*told, ("Content-Length", length)])
        return [content]

    return forward


class FaultyStore:
    """Stands before the server."""

    def __init__(self, application: Application, *, silence_s: float) -> None:
        self._application = application
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._share = 0.0
        self._random = random.Random(0)
        self.requests = 0
        self.faults: Counter[Fault] = Counter()

    def fail(self, share: float, *, seed: int) -> None:
        """From now on `share` of all requests fail."""
        with self._lock:
            self._share, self._random = share, random.Random(seed)
            self.requests = 0
            self.faults.clear()

    def end(self) -> None:
        """Nobody waits for anything any more."""
        self._over.set()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fault = self._choose()
        if fault is None:
            return self._application(environ, start_response)
        if fault not in _WHEN_DONE:
            # The body must be read, or the client would fail to send it before it hears of the failure.
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return self._spoil(fault, environ, start_response, [])
        head: list[Any] = []
        body = self._application(environ, lambda *told: head.extend(told[:2]))
        return self._spoil(fault, environ, start_response, [head, b"".join(body)])

    def _choose(self) -> Fault | None:
        with self._lock:
            self.requests += 1
            if self._random.random() >= self._share:
                return None
            fault = self._random.choice(list(Fault))
            self.faults[fault] += 1
            return fault

    def _spoil(
        self, fault: Fault, environ: dict[str, Any], start_response: Callable[..., Any], answer: list[Any]
    ) -> Iterable[bytes]:
        if fault in _ERRORS:
            status, code = _ERRORS[fault]
            body = b"" if environ["REQUEST_METHOD"] == "HEAD" else _ERROR_BODY % code
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        if fault is Fault.HALF_AN_ANSWER and len(answer[1]) > 1:
            (status, headers), body = answer
            start_response(status, headers)
            return _cut(environ, body)
        if fault in (Fault.SILENCE, Fault.SILENCE_WHEN_DONE):
            self._over.wait(self._silence_s)
        _reset(environ)
        raise ConnectionAbortedError("the connection was reset on purpose")


def _cut(environ: dict[str, Any], body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    _reset(environ)
    raise ConnectionAbortedError("the connection was reset on purpose")


def _reset(environ: dict[str, Any]) -> None:
    connection: socket.socket = environ["werkzeug.socket"]
    # Lingering for no time makes the end of the connection a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_RDWR)


class _QuietHandler(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        return


@contextmanager
def faulty_s3(*, silence_s: float) -> Iterator[tuple[FaultyStore, S3Server]]:
    """The store, and how it is reached.

    It keeps silent for `silence_s` where it does, which must be longer than clients wait.
    """
    with s3_server() as behind:
        store = FaultyStore(forward_to(behind.url), silence_s=silence_s)
        server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=_QuietHandler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield store, replace(behind, url=f"http://127.0.0.1:{server.server_port}")
        finally:
            store.end()
            server.shutdown()
            thread.join()
            server.server_close()
