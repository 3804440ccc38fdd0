"""A clock that a test moves by hand."""

from __future__ import annotations


class FakeClock:
    """Stands still until `advance` is called."""

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def advance(self, seconds: float) -> None:
        self._now_us += round(seconds * 1_000_000)

    def move_to(self, now_us: int) -> None:
        self._now_us = now_us
