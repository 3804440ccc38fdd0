"""Gives every test a machine without a warm cache."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="package", autouse=True)
def _no_warm_cache():
    """State is read from storage, as on a host that the job never ran on: more calls, and so more points to fail at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARROYO_STATE_CACHE", "off")
        yield
