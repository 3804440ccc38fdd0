"""A commit is interrupted at each of its calls, by each kind of failure, and the table is asked what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from arroyo_mysql.sink import target
from arroyo_testing.databases import SinkCrashSuite

pytestmark = pytest.mark.server


class TestCrashes(SinkCrashSuite):
    begin = "start transaction"
    lock = "on duplicate key update epoch = epoch"
    kill_at = (2, 6, 14)

    def pause_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(target, "IDLE_S", 1)

    def pause_at_rows(self, monkeypatch: pytest.MonkeyPatch, pause: Callable[[], None]) -> None:
        original = target.row_literals

        def literals(rows: Any) -> Any:
            pause()
            return original(rows)

        monkeypatch.setattr(target, "row_literals", literals)
