"""How frames wait between two waves: bounded by credits of the receiver, and in the order in which they came.

A wave of a worker has one mailbox, into which all workers send, and grants each of them the same number of bytes. A
sender whose bytes are spent waits until some were taken. Each wave takes frames in a thread of its own, and the last
one sends to nobody: so it always gets on, and then so do those before it. Watermarks and barriers need no credit.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.runtime.confirmation import RunAbandonedError
from arroyo_core.runtime.frames import Frame, FrameKind
from arroyo_core.runtime.live.credit import Alignment, Credit

#: What may be on its way to one wave of one worker, from all others together, and at least from each.
MAILBOX_BYTES = 64 << 20
LEAST_WINDOW_BYTES = 1 << 20
#: How long a wave waits for frames before it looks whether something else is due.
_LOOK_SECONDS = 0.05


def window_bytes(workers: int) -> int:
    return max(LEAST_WINDOW_BYTES, MAILBOX_BYTES // workers)


class Window:
    """Credit of one worker for one wave of another, which may be waited for."""

    def __init__(self, size: int) -> None:
        self._credit = Credit(size)
        self._is_closed = False
        self._changed = threading.Condition()

    @property
    def is_spent(self) -> bool:
        return self._credit.is_spent

    def take(self, size: int) -> None:
        """Waits while nothing is left. Raises `RunAbandonedError` once closed."""
        with self._changed:
            while self.is_spent and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                raise RunAbandonedError
            self._credit.spend(size)

    def give(self, size: int) -> None:
        with self._changed:
            self._credit.give(size)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A frame, and the worker that it came from."""

    frame: Frame
    worker: int


def size_of(frame: Frame) -> int:
    """What a frame takes of its window."""
    if frame.kind is not FrameKind.DATA:
        return 0
    payload = frame.payload
    return int(payload.nbytes if isinstance(payload, pa.RecordBatch) else payload.size)


class Mailbox:
    """The frames for one wave of one worker in one run."""

    def __init__(self, channels: int, *, on_taken: Callable[[Delivery], None]) -> None:
        """Ends after the barrier of each channel. `on_taken` is called for each delivery before it is handed out."""
        self._deliveries: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._alignment = Alignment(channels)
        self._on_taken = on_taken

    def put(self, delivery: Delivery) -> None:
        self._deliveries.put(delivery)

    def close(self) -> None:
        """Whoever waits for frames gets `RunAbandonedError`."""
        self._deliveries.put(None)

    def __iter__(self) -> Iterator[Frame | None]:
        """Frames as they come, and None where there is none for now."""
        is_quiet = False
        while not self._alignment.is_complete:
            try:
                delivery = self._deliveries.get(is_quiet, _LOOK_SECONDS)
            except queue.Empty:
                is_quiet = True
                yield None
                continue
            if delivery is None:
                raise RunAbandonedError
            is_quiet = False
            self._on_taken(delivery)
            self._alignment.take(delivery.frame.kind)
            yield delivery.frame
