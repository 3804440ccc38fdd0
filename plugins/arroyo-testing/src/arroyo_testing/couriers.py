"""Messages that are under way for a while, in the order in which they were sent."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from arroyo_core.runtime.live.wire import Connection, MessageKind

#: Returns when a message may come.
Wait: TypeAlias = Callable[[], None]

#: A network in which nothing was sent for so long is quiet: whoever could go on has done so.
QUIET_SECONDS = 0.03
#: So many messages of others overtake one.
OVERTAKING = 5


class Traffic:
    """What all connections of a network send."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def note(self) -> None:
        """A message is sent."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def await_quiet(self) -> None:
        """Wait until nobody has sent anything for a while."""
        with self._changed:
            while self._changed.wait(QUIET_SECONDS):
                pass

    def await_others(self) -> Wait:
        """Waits until some more messages are sent than now, or none is."""
        with self._changed:
            until = self._count + OVERTAKING

        def wait() -> None:
            with self._changed:
                while self._count < until and self._changed.wait(QUIET_SECONDS):
                    pass

        return wait


def until(at: float) -> Wait:
    """Waits until a moment of `time.monotonic`."""
    # Time itself has to pass: the message is under way.
    return lambda: time.sleep(max(0.0, at - time.monotonic()))


class Courier:
    """Brings the messages of one connection, in a thread of its own that ends with it."""

    def __init__(self, connection: Connection, traffic: Traffic) -> None:
        self._connection = connection
        self._traffic = traffic
        self._messages: queue.SimpleQueue[tuple[Wait | None, MessageKind, bytes, pa.Buffer] | None] = (
            queue.SimpleQueue()
        )
        self._is_broken = False
        threading.Thread(target=self._run, name="arroyo-courier", daemon=True).start()

    def take(self, wait: Wait | None, kind: MessageKind, head: bytes, payload: pa.Buffer) -> None:
        """Raises `OSError` where the other end has turned out to be gone."""
        if self._is_broken:
            raise ConnectionResetError("the other end is gone")
        self._messages.put((wait, kind, head, payload))

    def close(self) -> None:
        """What is still under way is lost."""
        self._messages.put(None)

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            wait, kind, head, payload = message
            if wait is not None:
                wait()
            self._traffic.note()
            try:
                self._connection.send(kind, head, payload)
            except OSError:
                self._is_broken = True
                self._connection.close()
                return
