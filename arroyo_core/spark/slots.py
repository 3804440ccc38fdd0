"""How many tasks a Spark on this machine runs at once."""

from __future__ import annotations

import os
import re

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")


def slots_of(master: str) -> int:
    """How many tasks run at once in the driver's JVM; none unless the master is `local`."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return 0
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1] or 1)
