"""An S3-protocol server over HTTP on a free port of this machine, which counts what is read from it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BUCKET = "acme"


class ObjectStore:
    """A running server with one bucket; `environment` is what processes need to reach it."""

    def __init__(self) -> None:
        werkzeug_app = pytest.importorskip("moto.moto_server.werkzeug_app", reason="moto[server] plays S3")
        from werkzeug.serving import make_server

        self._app = werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._count, threaded=True, request_handler=werkzeug_app.MotoRequestHandler
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._is_running = True
        #: How often each path was read.
        self.gets: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "FSSPEC_S3_KEY": "test",
            "FSSPEC_S3_SECRET": "test",
        }

    def make_bucket(self) -> None:
        import s3fs

        endpoint = self.environment["FSSPEC_S3_ENDPOINT_URL"]
        s3fs.S3FileSystem(key="test", secret="test", endpoint_url=endpoint).mkdir(BUCKET)

    def stop(self) -> None:
        """Nothing answers at its address from now on."""
        if self._is_running:
            self._is_running = False
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def _count(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "GET":
            self.gets[environ["PATH_INFO"]] += 1
        return self._app(environ, start_response)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    store = ObjectStore()
    try:
        store.make_bucket()
        yield store
    finally:
        store.stop()
