"""A network between live workers, and to and from their driver, that fails: by a seed, or at one message."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from arroyo_core.runtime.frames import EMPTY, FrameKind
from arroyo_core.runtime.live.wire import DRIVER_NUMBER, Connection, Message, MessageKind
from arroyo_testing.couriers import Courier, Traffic, Wait, until


class Fault(StrEnum):
    """What becomes of a message."""

    #: It comes only when nothing else happens any more, as if its sender slept for seconds: all others get as far
    #: as they can without it. What follows it on this connection comes behind it.
    LATE = "late"
    #: It comes after the next messages of other connections.
    OVERTAKEN = "overtaken"
    #: The connection ends before it.
    CUT = "cut"
    #: It comes twice, which no socket does: who receives it must notice, or not mind.
    TWICE = "twice"
    #: A frame with rows does not come, and those after it do.
    LOST = "lost"


#: What may become of any message.
EVERYWHERE = (Fault.CUT, Fault.TWICE, Fault.OVERTAKEN, Fault.LATE)


@dataclass(frozen=True, slots=True)
class Place:
    """One message of all that two ends send to each other in a job, also over connections that follow each other."""

    sender: int
    receiver: int
    #: From 0.
    number: int

    def __str__(self) -> str:
        return f"message {self.number} from {_named(self.sender)} to {_named(self.receiver)}"


class FaultyNetwork:
    """Stands between the ends of all connections, and counts what they send; this one does no harm."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traffic = Traffic()
        #: How many messages an end has sent to another one, but for those of progress.
        self.sent: Counter[tuple[int, int]] = Counter()
        #: What has happened so far.
        self.faults: Counter[Fault] = Counter()

    def wrap(self, connection: Connection, own: int, other: int) -> Connection:
        return _FaultyConnection(connection, self, self._traffic, own, other)

    def decide(self, sender: int, receiver: int, kind: MessageKind, head: bytes) -> Fault | None:
        """What becomes of the next message that an end sends to another one."""
        if kind is MessageKind.PROGRESS:
            # How many there are depends on how long a run takes, and nothing rests on any of them.
            return None
        with self._lock:
            place = Place(sender, receiver, self.sent[sender, receiver])
            self.sent[sender, receiver] += 1
            fault = self.choose(place, kind, head)
            if fault is not None:
                self.faults[fault] += 1
            return fault

    def choose(self, place: Place, kind: MessageKind, head: bytes) -> Fault | None:
        """Is called once for each message, by one thread at a time."""
        return None

    def latency_s(self, sender: int, receiver: int) -> float:
        """How long every message is under way; other messages do not wait for it."""
        return 0.0


class SeededNetwork(FaultyNetwork):
    """Does something to some of the messages, by a seed.

    Threads are as fast as they are: a seed repeats what happens to each message of two ends, not when it does.
    """

    def __init__(self, seed: int, *, rate: float) -> None:
        """`rate` is how many of the messages something happens to."""
        super().__init__()
        self._seed = seed
        self._rate = rate

    def choose(self, place: Place, kind: MessageKind, head: bytes) -> Fault | None:
        rng = random.Random(f"{self._seed}: {place}")
        if rng.random() >= self._rate:
            return None
        possible = list(EVERYWHERE)
        # Nobody would ever notice that a barrier is lost, but by waiting; a socket that loses one is gone.
        if kind is MessageKind.FRAME and head[-1] == FrameKind.DATA:
            possible.append(Fault.LOST)
        return rng.choice(possible)


class SingleFault(FaultyNetwork):
    """Does one thing to one message."""

    def __init__(self, place: Place, fault: Fault) -> None:
        super().__init__()
        self._place = place
        self._fault = fault

    def choose(self, place: Place, kind: MessageKind, head: bytes) -> Fault | None:
        return self._fault if place == self._place else None


class SlowPeer(FaultyNetwork):
    """All that goes to or from one end takes its time."""

    def __init__(self, number: int, *, latency_s: float) -> None:
        super().__init__()
        self._number = number
        self._latency_s = latency_s

    def latency_s(self, sender: int, receiver: int) -> float:
        return self._latency_s if self._number in (sender, receiver) else 0.0


#: How often a message comes, other than once.
_COPIES: dict[Fault | None, int] = {Fault.TWICE: 2, Fault.LOST: 0}


class _FaultyConnection(Connection):
    def __init__(self, inner: Connection, network: FaultyNetwork, traffic: Traffic, own: int, other: int) -> None:
        self._inner = inner
        self._network = network
        self._traffic = traffic
        self._own = own
        self._other = other
        self._sending = threading.Lock()
        self._courier: Courier | None = None

    def send(self, kind: MessageKind, head: bytes = b"", payload: pa.Buffer = EMPTY) -> None:
        with self._sending:
            fault = self._network.decide(self._own, self._other, kind, head)
            if fault is Fault.CUT:
                self.close()
                raise ConnectionResetError("the network has cut the connection")
            wait = self._wait(fault)
            for _ in range(_COPIES.get(fault, 1)):
                self._pass_on(wait, kind, head, payload)

    def receive(self) -> Message | None:
        return self._inner.receive()

    def own_host(self) -> str:
        return self._inner.own_host()

    def close(self) -> None:
        self._inner.close()
        if self._courier is not None:
            self._courier.close()

    def _wait(self, fault: Fault | None) -> Wait | None:
        if fault is Fault.LATE:
            return self._traffic.await_quiet
        if fault is Fault.OVERTAKEN:
            return self._traffic.await_others()
        latency_s = self._network.latency_s(self._own, self._other)
        return until(time.monotonic() + latency_s) if latency_s else None

    def _pass_on(self, wait: Wait | None, kind: MessageKind, head: bytes, payload: pa.Buffer) -> None:
        """What follows a message that waits goes behind it, and nobody waits for that."""
        if self._courier is None and wait is None:
            self._traffic.note()
            self._inner.send(kind, head, payload)
            return
        if self._courier is None:
            self._courier = Courier(self._inner, self._traffic)
        self._courier.take(wait, kind, head, payload)


def _named(number: int) -> str:
    return "the driver" if number == DRIVER_NUMBER else f"worker {number}"
