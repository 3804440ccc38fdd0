"""Local files as an adversary's storage: whoever changes one may be dead before the change, or half-way through."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from arroyo_testing.adversary import Adversary, AttemptLostError

#: What Python tells before it changes a file. Arrow's own files, such as those of the warm cache, are not among them.
CHANGES = {"open", "os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class _Watch:
    """An audit hook cannot be removed: there is one, and it looks at one run at a time."""

    def __init__(self) -> None:
        self._adversary: Adversary | None = None
        self._root = ""
        self._last_written = ""
        self._busy = threading.local()
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self, adversary: Adversary, root: Path) -> Iterator[None]:
        self._adversary, self._root, self._last_written = adversary, f"{root}/", ""
        try:
            yield
        finally:
            self._adversary = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        adversary = self._adversary
        if adversary is None or event not in CHANGES or getattr(self._busy, "is_so", False):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(self._root):
            return
        # A source runs beside its task, and whose calls are whose cannot be told there.
        if threading.current_thread() is not threading.main_thread():
            return
        self._busy.is_so = True
        try:
            adversary.at_storage()
            self._last_written = os.fspath(path) if event == "open" else ""
        except AttemptLostError:
            self._tear(adversary)
            raise
        finally:
            self._busy.is_so = False

    def _tear(self, adversary: Adversary) -> None:
        """What a dead attempt wrote last may be half of it; nobody was told about it."""
        if self._last_written and adversary.random.random() < 0.5:
            try:
                os.truncate(self._last_written, Path(self._last_written).stat().st_size // 2)
            except FileNotFoundError:
                return


@lru_cache(maxsize=1)
def _watch() -> _Watch:
    return _Watch()


@contextmanager
def hostile_storage(adversary: Adversary, root: Path) -> Iterator[None]:
    """All files below `root` are the adversary's inside."""
    with _watch().watching(adversary, root):
        yield
