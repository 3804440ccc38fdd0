"""A feed in this process, for tests: of this distribution, and of pipelines that read it."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit


class FakeFeed:
    """Serves `partitions` until it is closed. `status` is what it answers: 200, or a failure."""

    def __init__(self, partitions: dict[str, list[str]], *, token: str = "") -> None:
        self.partitions = partitions
        self.token = token
        self.status = HTTPStatus.OK
        #: With a failure: how many seconds to wait.
        self.retry_after: int | None = None
        #: The paths that were asked for.
        self.requests: list[str] = []
        self._server = HTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, path: str, authorization: str) -> tuple[HTTPStatus, object]:
        self.requests.append(path)
        if self.token and authorization != f"Bearer {self.token}":
            return HTTPStatus.UNAUTHORIZED, None
        if self.status != HTTPStatus.OK:
            return self.status, None
        parts = urlsplit(path)
        _, _, *name = parts.path.split("/")
        if not name:
            return HTTPStatus.OK, list(self.partitions)
        lines = self.partitions.get(unquote(name[0]))
        if lines is None:
            return HTTPStatus.NOT_FOUND, None
        query = parse_qs(parts.query)
        start = int(query["from"][0])
        return HTTPStatus.OK, lines[start : start + int(query["limit"][0])]


def _handler(feed: FakeFeed) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = feed.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if feed.retry_after is not None and status != HTTPStatus.OK:
                self.send_header("Retry-After", str(feed.retry_after))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler
