"""A stateful epoch of 1,000 rows in live workers, beside the same micro-batch of Structured Streaming."""

from __future__ import annotations

from pathlib import Path

from . import small


def measure(folder: Path) -> dict[str, list[float]]:
    return small.measure(folder, execution="live")
