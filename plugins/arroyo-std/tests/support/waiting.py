"""Waiting for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(is_so: Callable[[], bool]) -> None:
    """What happens in the event loop is looked at from here; the timeout of the test ends it."""
    while not is_so():
        time.sleep(0.01)
