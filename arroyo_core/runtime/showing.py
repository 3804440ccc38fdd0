"""Text of operators that is seen before its epoch is committed: from live workers to the driver's standard output."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from arroyo_core.api.visible import visible


class Shown(msgspec.Struct, frozen=True):
    """What an operator shows."""

    operator: str
    #: Written before the first text of the operator only.
    heading: str
    text: str


Show: TypeAlias = Callable[[Shown], None]


class Screen:
    """The driver's standard output, for the texts of one job; any thread may show."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The operators that have shown something.
        self._headed: set[str] = set()

    def show(self, shown: Shown) -> None:
        """Raises `OSError` where it cannot be written."""
        with self._lock:
            text = shown.text if shown.operator in self._headed else shown.heading + shown.text
            self._headed.add(shown.operator)
            # A pipe gets values as they are; CSV has no way to write characters out.
            sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
            sys.stdout.flush()
