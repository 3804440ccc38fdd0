"""Makes the support of these tests importable, and gives every test a machine without a warm cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture(scope="package", autouse=True)
def _no_warm_cache():
    """State is read from storage, as on a host that the job never ran on: more calls, and so more points to fail at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARROYO_STATE_CACHE", "off")
        yield
