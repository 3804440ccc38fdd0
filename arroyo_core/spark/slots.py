"""How many tasks a Spark on this machine runs at once, where several jobs share it.

A source holds its task for as long as an epoch lasts, mostly waiting. Jobs of which each has its own tasks at once do
not wait for each other; a thread of the JVM and a Python worker for each task is what that costs.
"""

from __future__ import annotations

import os
import re

from arroyo_core.errors import SetupError
from arroyo_core.spark.target import LOCAL_MASTER, Target

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")


def shared_master(target: Target, slots: int) -> str:
    """The master for jobs that run `slots` tasks at once together; raises `SetupError` where they cannot share it."""
    if target.is_connect:
        raise SetupError(
            f"several pipelines cannot share a session of Spark Connect ({target}), which does not tell their "
            "progress apart: run each with a command of its own"
        )
    # More threads than cores, because most of them wait; somebody who has chosen a number has it.
    return f"local[{max(slots, os.cpu_count() or 1)}]" if target.master == LOCAL_MASTER else target.master


def slots_of(master: str) -> int:
    """How many tasks run at once in the driver's JVM; none unless the master is `local`."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return 0
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1] or 1)
