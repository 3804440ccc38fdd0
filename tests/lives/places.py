"""Where jobs live: an empty folder in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Where a sync costs nothing.
MEMORY = Path("/dev/shm")


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, with all that a job left in it."""
    with tempfile.TemporaryDirectory(prefix="lives-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)
