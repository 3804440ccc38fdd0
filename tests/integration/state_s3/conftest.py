"""A real S3-protocol server over HTTP on a free port of this machine, and a fresh prefix for each test."""

from __future__ import annotations

import threading
import uuid

import pytest


class AtomicPuts:
    """Lets one PUT in at a time: moto looks for an existing object and stores the new one in two steps, S3 in one."""

    def __init__(self, app):
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] != "PUT":
            return self._app(environ, start_response)
        with self._lock:
            return list(self._app(environ, start_response))


@pytest.fixture(scope="session")
def s3_options():
    werkzeug_app = pytest.importorskip("moto.moto_server.werkzeug_app", reason="moto[server] plays S3")
    s3fs = pytest.importorskip("s3fs", reason="s3fs opens s3:// URLs")
    from werkzeug.serving import make_server

    app = AtomicPuts(werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=werkzeug_app.MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    options = {"key": "test", "secret": "test", "endpoint_url": f"http://127.0.0.1:{server.server_port}"}
    s3fs.S3FileSystem(**options).mkdir("state")
    yield options
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def make_s3_storage(s3_options):
    from arroyo_core.state import StorageProvider

    return lambda: StorageProvider(f"s3://state/{uuid.uuid4().hex}", options=s3_options)
