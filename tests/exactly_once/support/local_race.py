"""One of two drivers that run a job on the same local folder, each in a process of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arroyo_core.state import storage

from .laboratory import make_plugins, plan_job, run_job

_POLL_S = 0.002


def drive(
    root: str, source: str, *, after_files: int, is_first: bool, sink: Mapping[str, Any] | None = None
) -> tuple[bool, str, str]:
    """Run the job once its folder has so many files; whether it finished, or the kind and the text of the error."""
    over = Path(root, "first-is-over")
    while _count_files(root) < after_files and not over.exists():
        threading.Event().wait(_POLL_S)
    storage._provider.cache_clear()
    try:
        plugins = make_plugins()
        return run_job(plan_job(plugins, root, source=source, sink=sink), plugins).is_finished, "", ""
    except Exception as error:
        return False, type(error).__name__, str(error)
    finally:
        if is_first:
            over.touch()


def _count_files(root: str) -> int:
    return sum(len(names) for _, _, names in os.walk(root))
