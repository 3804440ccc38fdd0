"""The benchmark on few rows: its answers are checked while it runs."""

from __future__ import annotations

import pytest

from benchmarks.iceberg import __main__ as iceberg


def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(iceberg, "ROUNDS", 1)
    monkeypatch.setattr(iceberg, "CHANGED", 0.1)
    iceberg.run(200, 2)
    shown = capsys.readouterr().out
    assert all(label in shown for label in ("append", "read", "merge", "a commit of one file"))
