"""Who does not know the secret of a stage can neither read what its processes say, nor say anything: tried."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace

import pytest
from arroyo_testing.live import ThreadLauncher

from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.live import listener as listening
from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.executor import LiveExecutor
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.wire import Connection, MessageKind, prove
from arroyo_core.runtime.live.worker import CALLED, CALLING, DRIVER, WORKER, Host, Ticket, work

from ....other_user import try_as_other_user

SECRET = b"s" * 32
ACCESS = Access(SECRET)
#: Of a nonce, and of a proof.
PART = 32
HOSTS = [pytest.param(None, id="Unix socket"), pytest.param("127.0.0.1", id="TCP")]


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Door:
    """A listener that notes what those say who get through."""

    def __init__(self, ending: ExitStack, host: str | None) -> None:
        self._ending = ending
        self.heard: list[bytes] = []
        self._listener = Listener(ACCESS, self._hear, role=DRIVER, expected=WORKER, peers=2, host=host)
        self.address = self._listener.address
        ending.callback(self._listener.close)

    def knock(self) -> socket.socket:
        sock = self.address.connect()
        self._ending.callback(sock.close)
        return sock

    def friend(self) -> None:
        """One who knows the secret gets through, whatever others do."""
        connection = connect(self.address, ACCESS, role=WORKER, expected=DRIVER)
        self._ending.callback(connection.close)
        connection.send(MessageKind.HELLO, b"friend")
        answer = connection.receive()
        assert answer is not None
        assert answer.head == b"heard"

    def _hear(self, connection: Connection) -> None:
        message = connection.receive()
        if message is not None:
            self.heard.append(message.head)
            connection.send(MessageKind.DONE, b"heard")


@pytest.fixture(params=HOSTS)
def door(request: pytest.FixtureRequest, ending: ExitStack) -> Door:
    return Door(ending, request.param)


def message(kind: MessageKind, head: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<BIQ", kind, len(head), len(payload)) + head + payload


def read(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := sock.recv(size - len(found))):
        found += part
    return found


def read_all(sock: socket.socket) -> bytes:
    found = b""
    try:
        while part := sock.recv(1024):
            found += part
    except ConnectionError:
        pass
    return found


def say_at_once(door: Door) -> None:
    """Messages without a proof, as many bytes as a proof has and more."""
    sock = door.knock()
    sock.sendall(message(MessageKind.FRAME, b"head", b"rows" * 100))
    # A challenge, and a proof that is worth nothing to who has no secret.
    assert len(read_all(sock)) <= 2 * PART


def send_a_wrong_proof(door: Door) -> None:
    sock = door.knock()
    sock.sendall(bytes(PART) + bytes(PART) + message(MessageKind.HELLO, b"wrong"))
    assert len(read_all(sock)) <= 2 * PART


def send_its_own_proof_back(door: Door) -> None:
    """The nonce and the proof of the door itself: its proof is that of another role."""
    sock = door.knock()
    sock.sendall(read(sock, PART))
    sock.sendall(read(sock, PART) + message(MessageKind.HELLO, b"reflected"))
    assert read_all(sock) == b""


def send_the_proof_of_another_connection(door: Door) -> None:
    """In between of one who knows the secret, all bytes of whom are sent again."""
    said = overheard(door)
    sock = door.knock()
    sock.sendall(said)
    assert len(read_all(sock)) <= 2 * PART


def overheard(door: Door) -> bytes:
    """What one who knows the secret sends, up to a first message."""
    sock = TappedSocket(door.knock())
    assert prove(sock, SECRET, role=WORKER, expected=DRIVER)
    connection = Connection(sock)
    connection.send(MessageKind.HELLO, b"friend")
    assert connection.receive() is not None
    connection.close()
    return bytes(sock.said)


class TappedSocket(socket.socket):
    """Notes what is sent."""

    def __init__(self, sock: socket.socket) -> None:
        seconds = sock.gettimeout()
        super().__init__(sock.family, sock.type, fileno=sock.detach())
        self.settimeout(seconds)
        self.said = bytearray()

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
        self.said.extend(data)
        super().sendall(data, flags)


def prove_another_role(door: Door) -> None:
    """A worker that is called by others knows the secret, and is not one that reports to the driver."""
    for role in (CALLED, CALLING, DRIVER):
        connection = connect(door.address, ACCESS, role=role, expected=DRIVER)
        # It may be closed before this is sent.
        with suppress(OSError):
            connection.send(MessageKind.HELLO, b"role")
        assert connection.receive() is None
        connection.close()


def know_the_secret_of_an_older_stage(door: Door) -> None:
    with pytest.raises(ConnectionError):
        connect(door.address, Access(b"o" * 32), role=WORKER, expected=DRIVER)


@pytest.mark.parametrize(
    "attack",
    [
        say_at_once,
        send_a_wrong_proof,
        send_its_own_proof_back,
        send_the_proof_of_another_connection,
        prove_another_role,
        know_the_secret_of_an_older_stage,
    ],
    ids=lambda attack: attack.__name__,
)
def test_a_stranger_is_not_heard(door: Door, attack: Callable[[Door], None]) -> None:
    attack(door)
    door.friend()
    assert set(door.heard) == {b"friend"}


def test_who_proves_nothing_keeps_nobody_waiting(door: Door, ending: ExitStack) -> None:
    """More than may be at their proof at once, and none of them ever ends it."""
    for number in range(5 * listening._STRANGERS):
        sock = door.knock()
        if number % 2:
            sock.sendall(b"half of a nonce")
    door.friend()
    # The oldest ones have been closed, and not the last ones.
    assert len(door._listener._unproved) <= door._listener._most_unproved


def test_another_user_cannot_open_a_unix_socket(ending: ExitStack) -> None:
    door = Door(ending, None)
    code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    assert try_as_other_user(code, door.address.path) == "PermissionError: [Errno 13] Permission denied"


NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 60}},
    {"id": "sums", "operator": "test.totals", "inputs": ["rows"]},
    {"id": "out", "operator": "test.sink", "inputs": ["sums"]},
]
TOTALS = {key: sum(n for n in range(60) if n % 5 == key) for key in range(5)}
SETTINGS = {"parallelism": 2, "checkpoint": {"interval": "1h", "rows": 8}}


class Noting(ThreadLauncher):
    """Keeps the tickets that it gives out."""

    def __init__(self, plugins, address):
        super().__init__(plugins, address=address)
        self.tickets: list[Ticket] = []

    def start(self, ticket, job_id):
        self.tickets.append(ticket)
        return super().start(ticket, job_id)


@pytest.fixture(params=["", "127.0.0.1"], ids=["Unix socket", "TCP"])
def launcher(lab, request):
    return Noting(lab.plugins, request.param)


@pytest.fixture
def job(lab, launcher):
    executor = LiveExecutor(launcher)
    job = lab.job(NODES, executor=executor, **SETTINGS)
    yield job
    executor.close()


def finish(lab, job):
    while not job.is_ended:
        job.step()
    return {row["key"]: row["n"] for row in lab.trace.rows}, len(lab.trace.rows)


def test_strangers_at_every_door_of_a_job_change_nothing(lab, job, monkeypatch, ending):
    """Frames, reports and requests, at the driver's door and at those of all workers, while the job runs."""
    doors = []
    bind = listening._bind

    def noted(host, folder):
        found = bind(host, folder)
        doors.append(found[1])
        return found

    monkeypatch.setattr(listening, "_bind", noted)
    lab.run_until(job, Committed, 2)
    assert len(doors) == 3
    for address in doors:
        for kind in MessageKind:
            sock = address.connect()
            ending.callback(sock.close)
            sock.sendall(bytes(2 * PART) + message(kind, struct.pack("<QHiiiiqqb", *[3] * 9), b"rows"))
            assert len(read_all(sock)) <= 2 * PART
    assert finish(lab, job) == (TOTALS, 5)
    assert job.result.restarts == 0


def test_a_worker_of_an_older_stage_can_neither_join_nor_report(lab, job, launcher):
    lab.run_until(job, Committed, 2)
    executor = job.executor
    next(iter(executor._crew._workers.values())).close()
    lab.go_on_until(job, Committed, 3)
    older, present = launcher.tickets
    assert older.access.secret != present.access.secret
    workers = dict(executor._crew._workers)
    host = Host(lambda: lab.plugins, cache=None)
    # With its own ticket it finds nobody; with the present address it cannot prove anything.
    for ticket in (older, replace(present, access=older.access)):
        assert work(ticket, 0, host)
        with pytest.raises(OSError, match=r"."):
            connect(ticket.driver, older.access, role=WORKER, expected=DRIVER)
    assert executor._crew._workers == workers
    assert finish(lab, job) == (TOTALS, 5)
    assert job.result.restarts == 1
