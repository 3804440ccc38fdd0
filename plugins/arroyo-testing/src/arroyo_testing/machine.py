"""A disk that outlives processes, and processes that die at a chosen call to it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Crash(BaseException):
    """The process is dead: nobody may catch this and go on."""


class Mode(StrEnum):
    """Where in a call the process dies."""

    BEFORE = "before"
    #: Half of the bytes are written; only where a store may show that.
    TORN = "torn"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Die at the call with this number, counted from 1."""

    call: int
    mode: Mode

    def __str__(self) -> str:
        return f"{self.mode} call {self.call}"


@dataclass(frozen=True, slots=True)
class Call:
    """One call that reached storage."""

    kind: str
    path: str
    is_mutation: bool
    can_tear: bool

    def __str__(self) -> str:
        """The call without what is random in names, so that two runs can be compared."""
        return f"{self.kind} {re.sub(r'[0-9a-f]{8,}', '*', self.path)}"


@dataclass(slots=True)
class Disk:
    """Files, and for stores that have them, folders."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def copy(self) -> Disk:
        return Disk(dict(self.files), set(self.folders))


class Life:
    """One process: every call to storage goes through `do`, and after a crash none succeeds.

    With `watch`, the disk is noted as `kill -9` at each point of this life would leave it.
    """

    def __init__(self, crash: CrashPoint | None = None, *, watch: Disk | None = None) -> None:
        self.calls: list[Call] = []
        self.is_dead = False
        self.wrecks: list[tuple[CrashPoint, Disk]] = []
        self._crash = crash
        self._watched = watch
        self._lock = threading.RLock()

    def do(
        self,
        kind: str,
        path: str,
        act: Callable[[], T],
        *,
        is_mutation: bool = False,
        tear: Callable[[], object] | None = None,
    ) -> T:
        """Do `act` once, or die; `tear` is what a process that dies half-way leaves behind.

        Looks for requests to stop or to rescale are neither counted nor places to die: time decides how many there are.
        """
        with self._lock:
            if path.endswith((".stop", ".rescale")) and not is_mutation:
                return act()
            if self.is_dead:
                raise Crash(f"{kind} {path}: the process is dead")
            call = Call(kind, path, is_mutation, tear is not None)
            self.calls.append(call)
            crash = self._crash if self._crash and self._crash.call == len(self.calls) else None
            if self._watched is not None:
                self._note(call, self._watched, tear)
            if crash and crash.mode is Mode.BEFORE:
                self._die(call)
            if crash and crash.mode is Mode.TORN:
                if tear is not None:
                    tear()
                self._die(call)
            try:
                return act()
            finally:
                if self._watched is not None and is_mutation:
                    self.wrecks.append((CrashPoint(len(self.calls), Mode.AFTER), self._watched.copy()))
                if crash:
                    self._die(call)

    def kill(self) -> None:
        """No call succeeds from now on."""
        with self._lock:
            self.is_dead = True

    def _note(self, call: Call, disk: Disk, tear: Callable[[], object] | None) -> None:
        number = len(self.calls)
        whole = disk.copy()
        # After a call that changes nothing is the same as before the next one, so a read has one point.
        self.wrecks.append((CrashPoint(number, Mode.BEFORE), whole))
        if tear is not None:
            tear()
            self.wrecks.append((CrashPoint(number, Mode.TORN), disk.copy()))
            disk.files, disk.folders = dict(whole.files), set(whole.folders)

    def _die(self, call: Call) -> None:
        self.is_dead = True
        raise Crash(f"killed at {call}")
