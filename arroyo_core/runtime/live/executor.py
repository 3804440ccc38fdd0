"""`LiveExecutor`: epochs in workers that live on; the driver's side."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import secrets
import threading
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from arroyo_core.errors import ExternalError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import decode_report
from arroyo_core.runtime.live.listener import Listener
from arroyo_core.runtime.live.wire import Connection, Message, MessageKind
from arroyo_core.runtime.live.worker import DRIVER, NUMBER, WORKER, Hello, Ticket
from arroyo_core.runtime.request import EpochRequest

logger = logging.getLogger(__name__)

#: How often the driver looks whether the stage still runs.
_LOOK_SECONDS = 0.1
#: How long a failed stage has to say why.
_REASON_SECONDS = 1.0


#: So often in a row workers may go before they have run an epoch.
TRIES = 4


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

    def start(self, ticket: Ticket, job_id: str) -> Stage: ...


class LiveExecutor:
    """Keeps workers from epoch to epoch. After any failure they are ended, and the next epoch starts others."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._crew: _Crew | None = None
        self._plan: Plan | None = None
        self._runs = itertools.count(1)
        self._lock = threading.Lock()
        #: How many times in a row workers have gone without an epoch in between.
        self._losses = 0

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]:
        try:
            reports = self._crew_for(plan).run(next(self._runs), request)
        except BaseException as error:
            self.close()
            self._losses += isinstance(error, LiveWorkersError)
            if isinstance(error, LiveWorkersError) and error.cause is not None and self._losses >= TRIES:
                raise error.cause from error
            raise
        self._losses = 0
        if any(report.HasField("error") for report in reports):
            self.close()
        return reports

    def cancel(self) -> None:
        crew = self._crew
        if crew is not None:
            crew.cancel()

    def progress(self) -> str:
        crew = self._crew
        return crew.progress() if crew is not None else ""

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def _crew_for(self, plan: Plan) -> _Crew:
        if self._crew is None or self._plan is not plan:
            self.close()
            self._plan = plan
            self._crew = _Crew(plan, self._launcher)
            self._crew.gather()
        return self._crew


class _Crew:
    """The workers of one stage."""

    def __init__(self, plan: Plan, launcher: Launcher) -> None:
        self._plan = plan
        self._launcher = launcher
        self._size = plan.width
        #: What workers sent, None for one that is gone; a number of -1 is this process.
        self._inbox: queue.SimpleQueue[tuple[int, Message | None]] = queue.SimpleQueue()
        self._workers: dict[int, Connection] = {}
        self._secret = secrets.token_bytes(32)
        host = None if launcher.is_one_machine else launcher.host
        self._listener = Listener(self._secret, self._read, role=DRIVER, expected=WORKER, host=host)
        self._stage: Stage | None = None
        self._progress = "the workers have not begun"
        self._is_cancelled = False

    def gather(self) -> None:
        """Start the workers, and tell each of them about the others."""
        import cloudpickle

        is_near = self._launcher.is_one_machine
        ticket = Ticket(self._listener.address, self._secret, self._size, is_near)
        self._stage = self._launcher.start(ticket, self._plan.job_id)
        hellos: list[Hello] = []
        while len(hellos) < self._size:
            self._progress = f"{len(hellos)} of {self._size} workers have begun"
            hellos.append(msgspec.json.decode(self._expect(MessageKind.HELLO).head, type=Hello))
        pickled = pa.py_buffer(cloudpickle.dumps(self._plan))
        known = msgspec.json.encode(sorted(hellos, key=lambda hello: hello.index))
        for worker in self._workers.values():
            worker.send(MessageKind.WELCOME, payload=pickled)
            worker.send(MessageKind.PEERS, known)
        for _ in range(self._size):
            self._expect(MessageKind.READY)

    def run(self, number: int, request: EpochRequest) -> list[pb.ChainReport]:
        """All reports of an epoch; as soon as one of them has an error, those that there are."""
        import cloudpickle

        done = 0
        pickled = pa.py_buffer(cloudpickle.dumps(request))
        try:
            for worker in self._workers.values():
                worker.send(MessageKind.RUN, NUMBER.pack(number), pickled)
        except OSError as error:
            raise self._lost() from error
        reports: list[pb.ChainReport] = []
        while done < self._size:
            self._progress = f"{done} of {self._size} workers have ended the epoch"
            message = self._next()
            if message.kind is MessageKind.REPORT and NUMBER.unpack(message.head) == (number,):
                reports.append(decode_report(message.payload.to_pybytes()))
                if reports[-1].HasField("error"):
                    return reports
            elif message.kind is MessageKind.DONE and NUMBER.unpack(message.head) == (number,):
                done += 1
        return reports

    def cancel(self) -> None:
        self._is_cancelled = True
        self._inbox.put((-1, None))

    def progress(self) -> str:
        return self._progress

    def close(self) -> None:
        self._listener.close()
        # One more may come just now.
        for worker in list(self._workers.values()):
            worker.close()
        if self._stage is not None:
            self._stage.end()

    def _read(self, connection: Connection) -> None:
        hello = connection.receive()
        if hello is None or hello.kind is not MessageKind.HELLO:
            # It knows the secret, so that it is one of ours, and the others wait for it.
            connection.close()
            self._inbox.put((-1, None))
            return
        index = msgspec.json.decode(hello.head, type=Hello).index
        self._workers[index] = connection
        self._inbox.put((index, hello))
        while (message := connection.receive()) is not None:
            self._inbox.put((index, message))
        self._inbox.put((index, None))

    def _expect(self, kind: MessageKind) -> Message:
        while (message := self._next()).kind is not kind:
            pass
        return message

    def _next(self) -> Message:
        """What a worker sends next; raises what ended the stage."""
        while True:
            try:
                _, message = self._inbox.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                failure = self._stage.failure() if self._stage is not None else None
                if failure is not None:
                    raise failure from None
                continue
            if self._is_cancelled:
                raise LiveWorkersError("the epoch was cancelled")
            if message is None:
                raise self._lost()
            return message

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
