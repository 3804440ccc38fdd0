"""From an event to its committed row, in live workers with short epochs."""

from __future__ import annotations

from pathlib import Path

from . import latency

INTERVALS = ("50ms", "25ms")


def measure(folder: Path) -> dict[str, list[float]]:
    return latency.measure(folder, intervals=INTERVALS, execution="live")
