"""A worker: subtask i of every chain of every wave, from the start of a stage to its end."""

from __future__ import annotations

import contextlib
import pickle
import struct
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa

from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.clocks import task_clock
from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.pulse import Pulse
from arroyo_core.runtime.live.run import Layout, Outcome, Run, run_number
from arroyo_core.runtime.live.wire import DRIVER_NUMBER, Address, Connection, Message, MessageKind, Wrap, bare
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.residents import Residents
from arroyo_core.runtime.showing import Shown
from arroyo_core.state import WarmCache

#: What each end of a connection is.
DRIVER, WORKER, CALLED, CALLING = b"driver", b"worker", b"called", b"calling"

NUMBER = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a worker needs to join a stage."""

    driver: Address
    access: Access
    workers: int
    #: Whether all are on one machine: then they speak through Unix sockets.
    is_one_machine: bool
    #: Whether waves go on with the next epoch before the driver asks for it.
    is_eager: bool = True


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
    #: Is given each connection of the worker.
    wrap: Wrap = bare


def work(ticket: Ticket, index: int, host: Host) -> bool:
    """Serve a driver until it ends the stage, or is gone; whether nothing is left running in this process."""
    try:
        control = connect(ticket.driver, ticket.access, role=WORKER, expected=DRIVER)
    except OSError:
        # The stage is over already.
        return True
    worker = _Worker(ticket, index, host, host.wrap(control, index, DRIVER_NUMBER))
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
        #: Those that are not over: the one that the driver asks for, and those that have begun here or elsewhere.
        self._runs: dict[int, Run] = {}
        #: The last one that is over.
        self._over = 0
        #: By wave.
        self._residents: defaultdict[int, Residents] = defaultdict(Residents)
        self._lock = threading.Lock()
        #: What has not come yet of the plan, which is the driver's, and the connections to peers.
        self._awaited = {DRIVER_NUMBER, *range(ticket.workers)} - {index}
        self._is_over = False
        self._pulse = Pulse(lambda run, told: control.send(MessageKind.PROGRESS, NUMBER.pack(run), told))
        own_host = None if ticket.is_one_machine else control.own_host()
        self._listener = Listener(
            ticket.access, self._be_called, role=CALLED, expected=CALLING, peers=ticket.workers, host=own_host
        )

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
        self._pulse.close()
        self._control.close()
        self._listener.close()
        for peer in list(self._peers.values()):
            peer.close()
        threads = [thread for run in runs for thread in run.threads.values()]
        for thread in threads:
            thread.join(_GRACE_SECONDS)
        if any(thread.is_alive() for thread in threads):
            return False
        for residents in self._residents.values():
            residents.close()
        return True

    def _handle(self, message: Message) -> None:
        match message.kind:
            case MessageKind.WELCOME:
                plan: Plan = pickle.loads(message.payload)
                self._layout = Layout(plan, self._index, self._ticket.workers)
                self._have(DRIVER_NUMBER)
            case MessageKind.PEERS:
                self._call(msgspec.json.decode(message.head, type=list[Hello]))
            case MessageKind.RUN:
                (number,) = NUMBER.unpack(message.head)
                self._start(number, pickle.loads(message.payload))

    def _show(self, shown: Shown) -> None:
        self._control.send(MessageKind.SHOWN, payload=pa.py_buffer(msgspec.msgpack.encode(shown)))

    def _call(self, peers: list[Hello]) -> None:
        """Connect to the workers before this one; those behind it call."""
        for peer in peers:
            if peer.index < self._index:
                address = Address(peer.path, peer.host, peer.port)
                called = connect(address, self._ticket.access, role=CALLING, expected=CALLED)
                connection = self._host.wrap(called, self._index, peer.index)
                self._add(connection, peer.index)
                connection.send(MessageKind.HELLO, NUMBER.pack(self._index))
                threading.Thread(
                    target=self._read, args=(connection, peer.index), name="arroyo-live-reader", daemon=True
                ).start()

    def _be_called(self, called: Connection) -> None:
        hello = called.receive()
        if hello is None:
            return
        (index,) = NUMBER.unpack(hello.head)
        connection = self._host.wrap(called, self._index, index)
        self._add(connection, index)
        self._read(connection, index)

    def _add(self, connection: Connection, index: int) -> None:
        """Nobody waits for the last one, so that the end of the stage is noticed."""
        with self._lock:
            self._peers[index] = connection
        self._have(index)

    def _have(self, number: int) -> None:
        """One more has come of the plan and the peers. The last one makes the worker ready, whichever it is.

        Only then does the driver ask for a run, and peers send frames. They come through other connections than the
        plan, and may be there before it.
        """
        with self._lock:
            if number not in self._awaited:
                return
            self._awaited.remove(number)
            if self._awaited:
                return
        with contextlib.suppress(OSError):
            self._control.send(MessageKind.READY)

    def _read(self, connection: Connection, index: int) -> None:
        try:
            while (message := connection.receive()) is not None:
                # Who it is was said already.
                is_of_run = message.kind in (MessageKind.FRAME, MessageKind.CREDIT)
                run = self._run(run_number(message)) if is_of_run else None
                if run is not None:
                    run.receive(message, index)
        finally:
            # It is gone, or nobody reads what it sends: that is the end of this stage.
            connection.close()
            self._control.close()

    def _run(self, number: int) -> Run | None:
        """The run with this number; made when it is first heard of. None for one that is over."""
        with self._lock:
            if self._is_over or number <= self._over:
                return None
            if number not in self._runs:
                self._runs[number] = Run(number, self._layout, self._peers)
            return self._runs[number]

    def _start(self, number: int, request: EpochRequest) -> None:
        """The driver asks for a run: begin what has not begun of it."""
        run = self._run(number)
        if run is None:
            return
        # From here on, however late a wave begins.
        task_clock(request)
        for wave in run.confirm(request):
            self._start_wave(run, wave, request)
        if not self._layout.waves:
            self._outcome(number).done()

    def _start_early(self, last: Run, wave: int) -> None:
        """Begin a wave of the run after `last`, whose barrier it has sent."""
        run = self._run(last.number + 1)
        if run is None:
            return
        with self._lock:
            if run.early is None:
                run.early = last.following()
        self._start_wave(run, wave, run.early)

    def _start_wave(self, run: Run, wave: int, request: EpochRequest) -> None:
        host = self._host
        environment = TaskEnvironment(
            partition=self._index,
            attempt=run.attempt(wave),
            plugins=(request.plugins or host.plugins)(),
            clock=task_clock(request),
            is_concurrent=True,
            cache=host.cache,
            abandoned=run.is_abandoned,
            residents=self._residents[wave],
            confirmation=run.confirmation(),
            show=self._show,
            watch=lambda task: self._pulse.watch(run.number, task, request.beat_ms),
            on_barrier=partial(self._start_early, run, wave) if self._ticket.is_eager else None,
        )
        run.start(wave, request, environment, self._outcome(run.number))

    def _outcome(self, number: int) -> Outcome:
        def report(payload: pa.Buffer) -> None:
            self._control.send(MessageKind.REPORT, NUMBER.pack(number), payload)

        def done() -> None:
            with self._lock:
                self._runs.pop(number, None)
                self._over = number
            with contextlib.suppress(OSError):
                self._control.send(MessageKind.DONE, NUMBER.pack(number))

        return Outcome(report, done, self._control.close)


#: How long what runs in a worker gets to end with it.
_GRACE_SECONDS = 1.0
