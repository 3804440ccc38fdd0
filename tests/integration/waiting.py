"""Waiting for something to become true, instead of for some time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, f"waited for {PATIENCE_S} s"
        time.sleep(0.1)
