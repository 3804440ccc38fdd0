"""How a person's wish to stop reaches the sources."""

from __future__ import annotations

import threading
from pathlib import Path


class StopSignal:
    """Asked for on the driver; sources on the same machine see the file and end their epoch at once.

    Sources elsewhere end it when its budget is spent.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._event = threading.Event()

    @property
    def file(self) -> str | None:
        return str(self._file) if self._file is not None else None

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        """Safe in a signal handler; may be called twice."""
        self._event.set()
        if self._file is not None:
            self._file.touch()
