"""What the numbers depend on; nothing that names the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from ..modules import ROOT


def about() -> dict[str, object]:
    """The machine, the day, and the commit."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = models[0] if models else model
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory_gib, 1),
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "java": java_version(),
        "commit": commit(),
        # Of the last minute: much more than there are cores means that others were at work.
        "load": round(os.getloadavg()[0], 1),
    }


def commit() -> str:
    """The last commit that changed the code of the packages, with a plus where that differs from it."""
    if not (ROOT / ".git").exists():
        return "unknown"
    measured = ("arroyo_core", "plugins/*/src")
    name = _output("git", "log", "-1", "--format=%h", "--abbrev=10", "--", *measured) or "unknown"
    return name + ("+" if _output("git", "status", "--porcelain", "--", *measured) else "")


def java_version() -> str:
    """As `java -version` says it, on stderr; empty where there is none."""
    parts = _output("java", "-version").split('"')
    return parts[1] if len(parts) > 1 else ""


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if done.returncode else (done.stdout or done.stderr).strip()
