"""The benchmark on few rows: its answers are checked while it runs."""

from __future__ import annotations

import pytest

from benchmarks.delta import __main__ as delta


def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(delta, "ROUNDS", 1)
    delta.run(200, 2)
    shown = capsys.readouterr().out
    assert all(label in shown for label in ("append", "read", "merge", "a commit of one file"))
