"""The workers of one stage, as the driver knows them."""

from __future__ import annotations

import contextlib
import queue
import secrets
import struct
import threading
import time
from typing import Protocol

import msgspec
import pyarrow as pa
from google.protobuf.message import DecodeError

from arroyo_core.api import CommitToken
from arroyo_core.errors import ExternalError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import decode_report
from arroyo_core.runtime.frames import EMPTY
from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.listener import Listener
from arroyo_core.runtime.live.tls import make_identity
from arroyo_core.runtime.live.wire import DRIVER_NUMBER, Connection, Message, MessageKind, Wrap
from arroyo_core.runtime.live.worker import DRIVER, NUMBER, WORKER, Hello, Ticket
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.running import RunningTasks
from arroyo_core.runtime.showing import Screen, Shown

#: How often the driver looks whether the stage still runs.
_LOOK_SECONDS = 0.1
#: How long a failed stage has to say why.
_REASON_SECONDS = 1.0


class LiveWorkersError(ExternalError):
    """The workers of a job are gone, or were ended; the job goes on from its last checkpoint with new ones."""

    def __init__(self, message: str, *, cause: Exception | None = None) -> None:
        """`cause` is raised instead where new workers always go, too."""
        super().__init__(message)
        self.cause = cause


class Stage(Protocol):
    """The workers of a job, as whoever started them knows them."""

    def failure(self) -> Exception | None:
        """Why it has ended, if it has."""
        ...

    def end(self) -> None:
        """End what is left of it; may be called twice."""
        ...


class Launcher(Protocol):
    """Starts workers: each calls `work` with the ticket and a number of its own."""

    #: Whether workers run on the driver's machine.
    is_one_machine: bool
    #: The address of the driver that workers elsewhere reach.
    host: str
    #: Whether connections between machines are encrypted.
    is_encrypted: bool
    #: How long another machine may leave what it is sent without an answer.
    network_timeout_s: int

    def start(self, ticket: Ticket, job_id: str) -> Stage: ...


class Crew:
    """The workers of one stage."""

    def __init__(
        self, plan: Plan, launcher: Launcher, screen: Screen, running: RunningTasks, *, is_eager: bool, wrap: Wrap
    ) -> None:
        self._plan = plan
        self._is_eager = is_eager
        self._wrap = wrap
        self._runs = 0
        self._last: CommitToken | None = None
        #: What came of runs that have begun before they were asked for.
        self._early: list[tuple[int, Message]] = []
        self._launcher = launcher
        self._screen = screen
        self._running = running
        self._size = plan.width
        #: What workers sent, None for one that is gone; `DRIVER_NUMBER` is this process.
        self._inbox: queue.SimpleQueue[tuple[int, Message | None]] = queue.SimpleQueue()
        self._workers: dict[int, Connection] = {}
        identity = make_identity() if launcher.is_encrypted else None
        self._access = Access(secrets.token_bytes(32), identity, launcher.network_timeout_s)
        host = None if launcher.is_one_machine else launcher.host
        self._listener = Listener(self._access, self._read, role=DRIVER, expected=WORKER, peers=self._size, host=host)
        self._stage: Stage | None = None
        self._progress = "the workers have not begun"
        self._is_cancelled = False
        #: Of this process, not of a worker.
        self._failure: Exception | None = None
        self._is_gathered = False
        self._is_closed = False
        #: A worker is either closed with the others, or finds that they are.
        self._lock = threading.Lock()
        #: The plan, pickled, until all workers have it.
        self._welcome: pa.Buffer = EMPTY

    def start(self) -> None:
        """Have the workers started; nobody waits for them yet."""
        import cloudpickle

        is_near = self._launcher.is_one_machine
        ticket = Ticket(self._listener.address, self._access, self._size, is_near, self._is_eager)
        self._stage = self._launcher.start(ticket, self._plan.job_id)
        # While they start.
        self._welcome = pa.py_buffer(cloudpickle.dumps(self._plan))

    def gather(self) -> None:
        """Wait until all workers are there, and tell each of them about the others; once."""
        if self._is_gathered:
            return
        hellos: dict[int, Hello] = {}
        try:
            while len(hellos) < self._size:
                self._progress = f"{len(hellos)} of {self._size} workers have begun"
                index, message = self._expect(MessageKind.HELLO)
                hellos[index] = msgspec.json.decode(message.head, type=Hello)
                # It reads the plan while others start.
                self._workers[index].send(MessageKind.WELCOME, payload=self._welcome)
            known = msgspec.json.encode([hello for _, hello in sorted(hellos.items())])
            for worker in self._workers.values():
                worker.send(MessageKind.PEERS, known)
        except OSError as error:
            raise self._lost() from error
        ready: set[int] = set()
        while len(ready) < self._size:
            ready.add(self._expect(MessageKind.READY)[0])
        self._is_gathered, self._welcome = True, EMPTY

    def can_go_on_with(self, request: EpochRequest) -> bool:
        return not self._is_closed and (self._last is None or request.follows(self._last))

    def run(self, request: EpochRequest) -> list[pb.ChainReport]:
        """All reports of an epoch; as soon as one of them has an error, those that there are."""
        self._runs += 1
        self._last = request.token
        self._running.begin(self._runs)
        try:
            return self._run(self._runs, request)
        finally:
            self._running.end(self._runs)

    def _run(self, number: int, request: EpochRequest) -> list[pb.ChainReport]:
        import cloudpickle

        done: set[int] = set()
        pickled = pa.py_buffer(cloudpickle.dumps(request))
        try:
            for worker in self._workers.values():
                worker.send(MessageKind.RUN, NUMBER.pack(number), pickled)
        except OSError as error:
            raise self._lost() from error
        reports: list[pb.ChainReport] = []
        while len(done) < self._size:
            self._progress = f"{len(done)} of {self._size} workers have ended the epoch"
            index, message = self._next_of(number)
            if message.kind is MessageKind.DONE:
                done.add(index)
                continue
            reports.append(decode_report(message.payload.to_pybytes()))
            self._running.report(number, reports[-1])
            if reports[-1].HasField("error"):
                return reports
        return reports

    def _next_of(self, number: int) -> tuple[int, Message]:
        """What comes next of a run, a report or the word that there are no more, and from whom.

        What comes of later runs is kept.
        """
        for place, (_, message) in enumerate(self._early):
            if NUMBER.unpack(message.head) == (number,):
                return self._early.pop(place)
        while True:
            index, message = self._next()
            if message.kind not in (MessageKind.REPORT, MessageKind.DONE):
                continue
            (of,) = NUMBER.unpack(message.head)
            if of == number:
                return index, message
            if of > number:
                self._early.append((index, message))

    def cancel(self) -> None:
        self._is_cancelled = True
        self._inbox.put((DRIVER_NUMBER, None))

    def progress(self) -> str:
        return self._progress

    def dismiss(self) -> None:
        """Have the workers end, and wait for nothing."""
        self._listener.close()
        with self._lock:
            self._is_closed = True
            workers = list(self._workers.values())
        for worker in workers:
            worker.close()

    def close(self) -> None:
        self.dismiss()
        if self._stage is not None:
            self._stage.end()

    def _read(self, connection: Connection) -> None:
        hello = connection.receive()
        if hello is None or hello.kind is not MessageKind.HELLO:
            # It knows the secret, so that it is one of ours, and the others wait for it.
            connection.close()
            self._inbox.put((DRIVER_NUMBER, None))
            return
        index = msgspec.json.decode(hello.head, type=Hello).index
        connection = self._wrap(connection, DRIVER_NUMBER, index)
        with self._lock:
            if self._is_closed:
                connection.close()
                return
            self._workers[index] = connection
        self._inbox.put((index, hello))
        while (message := connection.receive()) is not None:
            if message.kind is MessageKind.SHOWN:
                # Not through the inbox, which nobody looks into between two epochs.
                self._show(message)
            elif message.kind is MessageKind.PROGRESS:
                self._tell(message)
            else:
                self._inbox.put((index, message))
        self._inbox.put((index, None))

    def _show(self, message: Message) -> None:
        try:
            self._screen.show(msgspec.msgpack.decode(message.payload, type=Shown))
        except OSError as error:
            self._failure = ExternalError(f"cannot write rows to the standard output: {error}")
            self._inbox.put((DRIVER_NUMBER, None))

    def _tell(self, message: Message) -> None:
        # Nothing rests on what cannot be read.
        with contextlib.suppress(DecodeError, struct.error):
            (run,) = NUMBER.unpack(message.head)
            self._running.tell(run, pb.TaskProgress.FromString(message.payload.to_pybytes()))

    def _expect(self, kind: MessageKind) -> tuple[int, Message]:
        while (found := self._next())[1].kind is not kind:
            pass
        return found

    def _next(self) -> tuple[int, Message]:
        """What a worker sends next, and which; raises what ended the stage."""
        while True:
            try:
                index, message = self._inbox.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                failure = self._stage.failure() if self._stage is not None else None
                if failure is not None:
                    raise failure from None
                continue
            if self._is_cancelled:
                raise LiveWorkersError("the epoch was cancelled")
            if self._failure is not None:
                raise self._failure
            if message is None:
                raise self._lost()
            return index, message

    def _lost(self) -> Exception:
        """A worker is gone: who started it may know why."""
        until = time.monotonic() + _REASON_SECONDS
        while self._stage is not None and time.monotonic() < until:
            with contextlib.suppress(Exception):
                failure = self._stage.failure()
                if failure is not None:
                    return failure
            time.sleep(0.01)
        return LiveWorkersError("a worker of the job is gone")
