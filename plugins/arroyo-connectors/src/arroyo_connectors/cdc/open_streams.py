"""Streams that stay open between the epochs of one process.

To open one a server may have to read much of its log again. It is only a shortcut: whoever borrows one says where it
must be, and opens another where it is not there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

#: One that nobody has borrowed for so long is closed.
UNUSED_SECONDS = 30.0


class Closable(Protocol):
    """What reads a stream."""

    def close(self) -> None: ...


R = TypeVar("R", bound=Closable)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[R]):
    reader: R
    #: Where it goes on.
    place: Hashable
    timer: threading.Timer


class OpenStreams(Generic[R]):
    """Those of a process, by who uses them. A borrower has its stream alone, and gives it back or closes it.

    Made once, as a module is imported: it lives as long as the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, _Waiting[R]] = {}
        atexit.register(self.close_all)
        os.register_at_fork(after_in_child=self.forget)

    def borrow(self, key: Hashable, place: Hashable) -> R | None:
        """None where there is none that goes on from this place; one that is elsewhere is closed."""
        with self._lock:
            found = self._waiting.pop(key, None)
        if found is None:
            return None
        found.timer.cancel()
        if found.place == place:
            return found.reader
        found.reader.close()
        return None

    def give_back(self, key: Hashable, reader: R, place: Hashable) -> None:
        timer = threading.Timer(UNUSED_SECONDS, self.close, (key,))
        timer.daemon = True
        with self._lock:
            former = self._waiting.pop(key, None)
            self._waiting[key] = _Waiting(reader, place, timer)
        timer.start()
        if former is not None:
            former.timer.cancel()
            former.reader.close()

    def close(self, key: Hashable) -> None:
        """End the stream that waits, if there is one."""
        with self._lock:
            found = self._waiting.pop(key, None)
        if found is not None:
            found.timer.cancel()
            # It is gone for us in any case.
            with contextlib.suppress(Exception):
                found.reader.close()

    def close_all(self) -> None:
        for key in list(self._waiting):
            self.close(key)

    def forget(self) -> None:
        """In a forked process: these connections are the parent's, so that nothing of them may be touched."""
        self._lock = threading.Lock()
        _untouchable.append(self._waiting)
        self._waiting = {}


#: Keeps streams of a parent process from being ended by the garbage collector.
_untouchable: list[object] = []

#: Those of this process, of all sources.
open_streams: OpenStreams[Closable] = OpenStreams()
