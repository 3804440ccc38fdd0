"""Calls to the storage of a table that fail when a test says so: before they are done, or after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from arroyo_delta.location import LocalFiles, TableLocation
from deltalake import DeltaTable
from deltalake.table import TableAlterer, TableMerger

from arroyo_core.errors import ExternalError

#: What a commit asks of the storage.
CALLS = (
    (TableLocation, "open"),
    (DeltaTable, "create"),
    (TableAlterer, "add_columns"),
    (DeltaTable, "create_write_transaction"),
    (TableMerger, "execute"),
    (LocalFiles, "sizes"),
    (LocalFiles, "remove"),
)


class Crash(BaseException):
    """The process is gone: nothing may handle this."""


class Fault(StrEnum):
    """What happens at a call."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies when the call is done"
    REFUSED = "the call fails, nothing is done"
    ANSWER_LOST = "the call is done, and its answer is lost"


@dataclass(slots=True)
class Calls:
    """Counts calls, and does something at one of them."""

    #: Given the number of the call, from 1, and what does it; returns its result.
    at: Callable[[int, Callable[[], Any]], Any] = lambda number, call: call()
    names: list[str] = field(default_factory=list)
    #: While it does something itself.
    is_within: bool = False

    def make(self, name: str, call: Callable[[], Any]) -> Any:
        if self.is_within:
            return call()
        self.names.append(name)
        return self.at(len(self.names), call)

    def fail(self, number: int, fault: Fault) -> None:
        """Have call `number` fail so."""

        def at(now: int, call: Callable[[], Any]) -> Any:
            if now != number:
                return call()
            if fault in (Fault.CRASH_AFTER, Fault.ANSWER_LOST):
                call()
            if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
                raise Crash
            if self.names[-1] in ("open", "sizes", "remove"):
                raise ExternalError("a fault of the test")
            raise OSError("a fault of the test")

        self.at = at

    def interrupt(self, number: int, action: Callable[[], None]) -> None:
        """Have somebody else act before call `number`."""

        def at(now: int, call: Callable[[], Any]) -> Any:
            if now == number:
                self.is_within = True
                try:
                    action()
                finally:
                    self.is_within = False
            return call()

        self.at = at

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in CALLS:
            self._wrap(patch, owner, name)

    def _wrap(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        plain = getattr(owner, name)
        is_bound = owner is DeltaTable and name == "create"

        def called(*args: Any, **options: Any) -> Any:
            return self.make(name, lambda: plain(*args, **options))

        patch.setattr(owner, name, staticmethod(called) if is_bound else called)
