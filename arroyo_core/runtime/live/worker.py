"""A worker: subtask i of every chain of every wave, from the start of a stage to its end."""

from __future__ import annotations

import contextlib
import pickle
import struct
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.clocks import task_clock
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.run import Layout, Run, run_number
from arroyo_core.runtime.live.wire import Address, Connection, Message, MessageKind
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.residents import Residents
from arroyo_core.state import WarmCache

#: What each end of a connection is.
DRIVER, WORKER, CALLED, CALLING = b"driver", b"worker", b"called", b"calling"

NUMBER = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a worker needs to join a stage."""

    driver: Address
    secret: bytes
    workers: int
    #: Whether all are on one machine: then they speak through Unix sockets.
    is_one_machine: bool


class Hello(msgspec.Struct, frozen=True):
    """Who a worker is, and where the others reach it."""

    index: int
    path: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Host:
    """What the process of a worker has."""

    plugins: Callable[[], PluginSet]
    cache: WarmCache | None
    #: Is given each connection of the worker, and gives what stands for it; for tests.
    wrap: Callable[[Connection], Connection] = lambda connection: connection


def work(ticket: Ticket, index: int, host: Host) -> bool:
    """Serve a driver until it ends the stage, or is gone; whether nothing is left running in this process."""
    try:
        control = connect(ticket.driver, ticket.secret, role=WORKER, expected=DRIVER)
    except OSError:
        # The stage is over already.
        return True
    worker = _Worker(ticket, index, host, host.wrap(control))
    try:
        worker.serve()
    finally:
        is_clean = worker.close()
    return is_clean


class _Worker:
    def __init__(self, ticket: Ticket, index: int, host: Host, control: Connection) -> None:
        self._ticket = ticket
        self._index = index
        self._host = host
        self._control = control
        self._layout: Layout
        self._peers: dict[int, Connection] = {}
        self._runs: dict[int, Run] = {}
        self._threads: list[threading.Thread] = []
        #: By wave.
        self._residents: defaultdict[int, Residents] = defaultdict(Residents)
        self._lock = threading.Lock()
        self._is_over = False
        own_host = None if ticket.is_one_machine else control.own_host()
        self._listener = Listener(ticket.secret, self._be_called, role=CALLED, expected=CALLING, host=own_host)

    def serve(self) -> None:
        address = self._listener.address
        hello = Hello(self._index, address.path, address.host, address.port)
        # Where the driver or a peer is gone, the other ends notice, too.
        with contextlib.suppress(OSError):
            self._control.send(MessageKind.HELLO, msgspec.json.encode(hello))
            while (message := self._control.receive()) is not None:
                self._handle(message)

    def close(self) -> bool:
        """Give up what runs; whether all of it has ended."""
        with self._lock:
            self._is_over = True
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()
        self._control.close()
        self._listener.close()
        for peer in list(self._peers.values()):
            peer.close()
        for thread in self._threads:
            thread.join(_GRACE_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            return False
        for residents in self._residents.values():
            residents.close()
        return True

    def _handle(self, message: Message) -> None:
        match message.kind:
            case MessageKind.WELCOME:
                plan: Plan = pickle.loads(message.payload)
                self._layout = Layout(plan, self._index, self._ticket.workers)
            case MessageKind.PEERS:
                self._call(msgspec.json.decode(message.head, type=list[Hello]))
            case MessageKind.RUN:
                (number,) = NUMBER.unpack(message.head)
                self._start(number, pickle.loads(message.payload))

    def _call(self, peers: list[Hello]) -> None:
        """Connect to the workers before this one; those behind it call."""
        for peer in peers:
            if peer.index < self._index:
                address = Address(peer.path, peer.host, peer.port)
                connection = self._host.wrap(connect(address, self._ticket.secret, role=CALLING, expected=CALLED))
                self._add(connection, peer.index)
                connection.send(MessageKind.HELLO, NUMBER.pack(self._index))
                threading.Thread(
                    target=self._read, args=(connection, peer.index), name="arroyo-live-reader", daemon=True
                ).start()
        if self._ticket.workers == 1:
            self._control.send(MessageKind.READY)

    def _be_called(self, called: Connection) -> None:
        connection = self._host.wrap(called)
        hello = connection.receive()
        if hello is None:
            return
        (index,) = NUMBER.unpack(hello.head)
        self._add(connection, index)
        self._read(connection, index)

    def _add(self, connection: Connection, index: int) -> None:
        """The last one makes the worker ready; nobody waits for it, so that the end of the stage is noticed."""
        with self._lock:
            self._peers[index] = connection
            is_last = len(self._peers) == self._ticket.workers - 1
        if is_last:
            with contextlib.suppress(OSError):
                self._control.send(MessageKind.READY)

    def _read(self, connection: Connection, index: int) -> None:
        while (message := connection.receive()) is not None:
            run = self._run(run_number(message))
            if run is not None:
                run.receive(message, index)
        # It is gone, and with it this stage.
        connection.close()
        self._control.close()

    def _run(self, number: int) -> Run | None:
        """The run with this number; made when it is first heard of. None for one that is over."""
        with self._lock:
            if self._is_over or (self._runs and number < max(self._runs)):
                return None
            if number not in self._runs:
                self._runs = {number: Run(number, self._layout, self._peers)}
            return self._runs[number]

    def _start(self, number: int, request: EpochRequest) -> None:
        run = self._run(number)
        if run is None:
            return
        host = self._host
        plugins = (request.plugins or host.plugins)()

        def environment(wave: int, attempt: int) -> TaskEnvironment:
            return TaskEnvironment(
                partition=self._index,
                attempt=attempt,
                plugins=plugins,
                clock=task_clock(request),
                is_concurrent=True,
                cache=host.cache,
                abandoned=run.is_abandoned,
                residents=self._residents[wave],
            )

        def report(payload: pa.Buffer) -> None:
            self._control.send(MessageKind.REPORT, NUMBER.pack(number), payload)

        def done() -> None:
            with contextlib.suppress(OSError):
                self._control.send(MessageKind.DONE, NUMBER.pack(number))

        self._threads = run.start(request, environment, report=report, done=done, fail=self._control.close)


#: How long what runs in a worker gets to end with it.
_GRACE_SECONDS = 1.0
