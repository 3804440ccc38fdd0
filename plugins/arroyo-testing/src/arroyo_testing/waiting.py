"""Waiting for something to become true, instead of for some time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300


def wait_until(
    is_true: Callable[[], bool],
    *,
    patience_s: float = PATIENCE_S,
    interval_s: float = 0.02,
    problem: Callable[[], str] = lambda: "it did not become true",
) -> None:
    """Look again and again; `problem` says what is wrong if it takes too long. For what nobody can be told about."""
    deadline = time.monotonic() + patience_s
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited for {patience_s} s: {problem()}")
        time.sleep(interval_s)
