"""A network between live workers, and to their driver, that fails by a seed."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from enum import StrEnum

import pyarrow as pa

from arroyo_core.runtime.frames import EMPTY, FrameKind
from arroyo_core.runtime.live.wire import Connection, Message, MessageKind

#: How late a message may be: long enough for others to overtake it.
_LATE_SECONDS = 0.005


class Fault(StrEnum):
    """What becomes of a message."""

    #: It is sent after a while, and so is what follows it on this connection.
    LATE = "late"
    #: The connection ends before it.
    CUT = "cut"
    #: A frame comes twice, which no socket does: who receives it must notice.
    TWICE = "twice"
    #: A frame with rows does not come, and those after it do.
    LOST = "lost"


class FaultyNetwork:
    """Wraps connections of workers. Each has faults of its own, by the seed and the order in which they are made.

    Threads are as fast as they are: a seed repeats what happens to each connection, not the time at which it does.
    """

    def __init__(self, seed: int, *, rate: float) -> None:
        """`rate` is how many of the messages something happens to."""
        self._seed = seed
        self._rate = rate
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        #: What has happened so far.
        self.faults: Counter[Fault] = Counter()

    def wrap(self, connection: Connection) -> Connection:
        return _FaultyConnection(connection, self, random.Random(f"{self._seed}:{next(self._numbers)}"))

    def choose(self, rng: random.Random, kind: MessageKind, head: bytes) -> Fault | None:
        if rng.random() >= self._rate:
            return None
        possible = [Fault.LATE, Fault.CUT]
        if kind is MessageKind.FRAME:
            possible.append(Fault.TWICE)
            # Nobody would ever notice that a barrier is lost, but by waiting; a socket that loses one is gone.
            if head[-1] == FrameKind.DATA:
                possible.append(Fault.LOST)
        fault = rng.choice(possible)
        with self._lock:
            self.faults[fault] += 1
        return fault


class _FaultyConnection(Connection):
    def __init__(self, inner: Connection, network: FaultyNetwork, rng: random.Random) -> None:
        self._inner = inner
        self._network = network
        self._rng = rng
        self._sending = threading.Lock()

    def send(self, kind: MessageKind, head: bytes = b"", payload: pa.Buffer = EMPTY) -> None:
        with self._sending:
            fault = self._network.choose(self._rng, kind, head)
            if fault is Fault.CUT:
                self._inner.close()
                raise ConnectionResetError("the network has cut the connection")
            if fault is Fault.LATE:
                time.sleep(self._rng.random() * _LATE_SECONDS)
            if fault is Fault.TWICE:
                self._inner.send(kind, head, payload)
            if fault is not Fault.LOST:
                self._inner.send(kind, head, payload)

    def receive(self) -> Message | None:
        return self._inner.receive()

    def own_host(self) -> str:
        return self._inner.own_host()

    def close(self) -> None:
        self._inner.close()
