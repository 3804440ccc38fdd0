"""An epoch without rows in live workers, beside a bare Spark job."""

from __future__ import annotations

from pathlib import Path

from . import empty


def measure(folder: Path) -> dict[str, list[float]]:
    return empty.measure(folder, execution="live")
