"""A real S3-protocol server over HTTP on a free port of this machine, and a fresh prefix for each test."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "unit/state/support"))


@pytest.fixture(scope="session")
def s3_options():
    moto_server = pytest.importorskip("moto.server", reason="moto[server] plays S3")
    pytest.importorskip("s3fs", reason="s3fs opens s3:// URLs")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "test", "secret": "test", "endpoint_url": f"http://{host}:{port}"}
    import s3fs

    s3fs.S3FileSystem(**options).mkdir("state")
    yield options
    server.stop()


@pytest.fixture
def make_s3_storage(s3_options):
    from arroyo_core.state import StorageProvider

    return lambda: StorageProvider(f"s3://state/{uuid.uuid4().hex}", options=s3_options)
