"""A commit is interrupted at each of its calls, by each kind of failure, and the table is asked what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from arroyo_postgres.sink import target
from arroyo_testing.databases import SinkCrashSuite

pytestmark = pytest.mark.server


class TestCrashes(SinkCrashSuite):
    begin = "begin isolation level read committed"
    lock = "as held"
    kill_at = (2, 6, 9)

    def pause_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(target._SESSION, "idle_in_transaction_session_timeout", "200ms")

    def pause_at_rows(self, monkeypatch: pytest.MonkeyPatch, pause: Callable[[], None]) -> None:
        original = target.encode_csv

        def encode(rows: Any) -> Any:
            pause()
            return original(rows)

        monkeypatch.setattr(target, "encode_csv", encode)
