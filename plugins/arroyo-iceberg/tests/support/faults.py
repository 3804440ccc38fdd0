"""Calls to the catalog and to the storage that fail when a test says so: before they are done, or after."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from sqlalchemy.exc import OperationalError


class Crash(BaseException):
    """The process is gone: nothing may handle this."""


class Fault(StrEnum):
    """What happens at a call."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies when the call is done"
    REFUSED = "the call fails, nothing is done"
    ANSWER_LOST = "the call is done, and its answer is lost"


class Calls:
    """Counts the calls of commits, and does something at one of them."""

    #: What is watched: those of the catalog call those of the storage within them.
    WATCHED = (
        (SqlCatalog, "load_table"),
        (SqlCatalog, "commit_table"),
        (RestCatalog, "load_table"),
        (RestCatalog, "commit_table"),
        (PyArrowFile, "open"),
        (PyArrowFile, "create"),
        (PyArrowFileIO, "delete"),
    )

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        #: Given the number of the call, from 1, its name, and what does it; returns its result.
        self.at: Callable[[int, str, Callable[[], Any]], Any] = _pass
        self.names: list[str] = []
        #: A process that died does nothing more, whatever its code still says.
        self.is_dead = False
        self.is_watching = False
        self._lock = threading.RLock()
        for owner, name in self.WATCHED:
            monkeypatch.setattr(owner, name, self._watch(name, getattr(owner, name)))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Of the calls inside, from the first one on."""
        self.names, self.is_dead, self.is_watching = [], False, True
        try:
            yield
        finally:
            self.at, self.is_dead, self.is_watching = _pass, False, False

    @contextmanager
    def as_another_process(self) -> Iterator[None]:
        """Calls inside are not of the process that is watched."""
        before, self.is_watching = self.is_watching, False
        try:
            yield
        finally:
            self.is_watching = before

    def fail(self, number: int, fault: Fault) -> None:
        """Have call `number` fail so."""

        def at(now: int, name: str, call: Callable[[], Any]) -> Any:
            if now != number:
                return call()
            if fault in (Fault.CRASH_AFTER, Fault.ANSWER_LOST):
                call()
            if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
                self.is_dead = True
                raise Crash
            raise _failure(name)

        self.at = at

    def refuse_what_is_done(self) -> None:
        """The catalog says that a commit met another one, and has made it: a proxy sent the request twice."""

        def at(now: int, name: str, call: Callable[[], Any]) -> Any:
            result = call()
            if name == "commit_table":
                raise CommitFailedException("a fault of the test")
            return result

        self.at = at

    def _watch(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            if self.is_dead:
                raise Crash
            if not self.is_watching:
                return call(*args, **options)
            with self._lock:
                self.names.append(name)
                number = len(self.names)
            return self.at(number, name, lambda: call(*args, **options))

        return watched


def _pass(number: int, name: str, call: Callable[[], Any]) -> Any:
    return call()


def _failure(name: str) -> Exception:
    if name in ("load_table", "commit_table"):
        return OperationalError("a fault of the test", {}, Exception())
    return OSError("a fault of the test")
