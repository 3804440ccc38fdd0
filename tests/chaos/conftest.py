"""Makes the plugin `chaos` known to this process and to all that it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..installed import installed

PLUGIN = Path(__file__).parents[1] / "integration" / "chaos_plugin"


@pytest.fixture(scope="session", autouse=True)
def _chaos_on_path() -> Iterator[None]:
    with installed(PLUGIN):
        yield
