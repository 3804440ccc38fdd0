"""q5 of Nexmark in live workers, on two cores and on one."""

from __future__ import annotations

from pathlib import Path

from . import cores


def measure(folder: Path) -> dict[str, list[float]]:
    return cores.measure(folder, execution="live")
