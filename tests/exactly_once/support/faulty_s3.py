"""A real S3-protocol server over HTTP that answers some requests wrongly, late, half or not at all."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from moto.moto_server import werkzeug_app
from werkzeug.serving import make_server

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


class FaultyStore:
    """Stands before the server's application."""

    def __init__(self, application: Application, *, silence_s: float) -> None:
        self._application = application
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._puts = threading.Lock()
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
            return self._answer(environ, start_response)
        if fault not in _WHEN_DONE:
            # The body must be read, or the client would fail to send it before it hears of the failure.
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return self._spoil(fault, environ, start_response, [])
        head: list[Any] = []
        body = self._answer(environ, lambda *told: head.extend(told[:2]))
        return self._spoil(fault, environ, start_response, [head, b"".join(body)])

    def _choose(self) -> Fault | None:
        with self._lock:
            self.requests += 1
            if self._random.random() >= self._share:
                return None
            fault = self._random.choice(list(Fault))
            self.faults[fault] += 1
            return fault

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        if environ["REQUEST_METHOD"] != "PUT":
            return list(self._application(environ, start_response))
        # moto looks for an existing object and stores the new one in two steps, S3 in one.
        with self._puts:
            return list(self._application(environ, start_response))

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


class _QuietHandler(werkzeug_app.MotoRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        return


@contextmanager
def faulty_s3(*, silence_s: float) -> Iterator[tuple[FaultyStore, str]]:
    """The store and its URL; it keeps silent for `silence_s` where it does, which must be longer than clients wait."""
    store = FaultyStore(werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app), silence_s=silence_s)
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=_QuietHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store, f"http://127.0.0.1:{server.server_port}"
    finally:
        store.end()
        server.shutdown()
        thread.join()
        server.server_close()
