"""Makes the plugin `chaos` known to this process and to all that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "integration" / "chaos_plugin"


@pytest.fixture(autouse=True)
def _chaos_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=":")
    monkeypatch.syspath_prepend(PLUGIN)
