"""The benchmark of odd lines on few of them: its answers are checked while it runs."""

from __future__ import annotations

import pytest

from benchmarks.formats import odd


def test_every_kind_of_line_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(odd, "BAD_LINES", 300)
    odd.run(700)
    shown = capsys.readouterr().out
    for case in odd.cases():
        assert shown.count(f"  {case.label} ") == len(odd.LINES)
    assert "csv: a line end in a quoted value" in shown
