"""Connections that are encrypted: nobody in between reads what is sent, and nobody else gets through."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pyarrow as pa
import pytest
from arroyo_testing.live import live_executor

from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.tls import Identity, make_identity
from arroyo_core.runtime.live.wire import Address, Connection, MessageKind
from arroyo_core.runtime.live.worker import DRIVER, WORKER

SECRET = b"s" * 32
PLAIN = b"a row that nobody else may read; " * 1000


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def identity() -> Identity:
    return make_identity()


class Echo:
    """Sends back what it hears."""

    def __init__(self, access: Access, ending: ExitStack) -> None:
        self.heard = 0
        listener = Listener(access, self._answer, role=DRIVER, expected=WORKER, peers=1, host="127.0.0.1")
        ending.callback(listener.close)
        self.address = listener.address

    def _answer(self, connection: Connection) -> None:
        while (message := connection.receive()) is not None:
            self.heard += 1
            connection.send(message.kind, message.head, message.payload)


class Proxy:
    """Stands between two ends, passes on what they send, and keeps it."""

    def __init__(self, target: Address, ending: ExitStack) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        ending.callback(self._server.close)
        self.address = Address(host="127.0.0.1", port=self._server.getsockname()[1])
        self.seen = bytearray()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        caller, _ = self._server.accept()
        called = self._target.connect()
        back = threading.Thread(target=self._pass, args=(called, caller))
        self._threads.append(back)
        back.start()
        self._pass(caller, called)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        # The other one may be closed already.
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                self.seen.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("is_encrypted", [True, False], ids=["encrypted", "in clear"])
def test_who_is_in_between_sees_rows_only_where_they_are_not_encrypted(
    ending: ExitStack, identity: Identity, is_encrypted: bool
) -> None:
    access = Access(SECRET, identity if is_encrypted else None)
    proxy = Proxy(Echo(access, ending).address, ending)
    connection = connect(proxy.address, access, role=WORKER, expected=DRIVER)
    connection.send(MessageKind.FRAME, b"the head of a frame", pa.py_buffer(PLAIN))
    answer = connection.receive()
    assert answer is not None
    assert (answer.head, answer.payload.to_pybytes()) == (b"the head of a frame", PLAIN)
    connection.close()
    proxy.join()
    assert len(proxy.seen) > 2 * len(PLAIN)
    # Of any 16 bytes in a row of what was sent, there and back.
    pieces = {PLAIN[start : start + 16] for start in range(64)} | {b"the head of a fr"}
    assert {piece in proxy.seen for piece in pieces} == {not is_encrypted}


@pytest.mark.parametrize("size", [0, 1, 16 << 10, (16 << 10) + 1, 5_000_000])
def test_a_message_comes_as_it_was_sent(ending: ExitStack, identity: Identity, size: int) -> None:
    access = Access(SECRET, identity)
    connection = connect(Echo(access, ending).address, access, role=WORKER, expected=DRIVER)
    ending.callback(connection.close)
    payload = pa.py_buffer(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    threading.Thread(target=connection.send, args=(MessageKind.FRAME, b"head", payload), daemon=True).start()
    answer = connection.receive()
    assert answer is not None
    assert (answer.head, answer.payload.equals(payload)) == (b"head", True)


def test_threads_send_while_another_one_receives(ending: ExitStack, identity: Identity) -> None:
    access = Access(SECRET, identity)
    connection = connect(Echo(access, ending).address, access, role=WORKER, expected=DRIVER)
    ending.callback(connection.close)

    def send(number: int) -> None:
        for _ in range(30):
            connection.send(MessageKind.FRAME, b"%d" % number, pa.py_buffer(b"%d" % number * 100_000))

    for number in range(4):
        threading.Thread(target=send, args=(number,), daemon=True).start()
    for _ in range(120):
        answer = connection.receive()
        assert answer is not None
        assert set(answer.payload.to_pybytes()) == set(answer.head)


def test_a_peer_with_another_certificate_is_refused(ending: ExitStack, identity: Identity) -> None:
    """Though it knows the secret; and so it refuses who has the right one."""
    echo = Echo(Access(SECRET, identity), ending)
    stranger = Access(SECRET, make_identity())
    with pytest.raises(OSError, match="certificate"):
        connect(echo.address, stranger, role=WORKER, expected=DRIVER)
    assert echo.heard == 0


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_peer_that_does_not_encrypt_is_refused(ending: ExitStack, identity: Identity, side: str) -> None:
    plain, encrypted = Access(SECRET), Access(SECRET, identity)
    echo = Echo(plain if side == "server" else encrypted, ending)
    with pytest.raises(OSError, match=r"."):
        connect(echo.address, encrypted if side == "server" else plain, role=WORKER, expected=DRIVER)
    assert echo.heard == 0


def test_a_peer_with_the_certificate_must_know_the_secret_too(ending: ExitStack, identity: Identity) -> None:
    echo = Echo(Access(SECRET, identity), ending)
    with pytest.raises(ConnectionError):
        connect(echo.address, Access(b"o" * 32, identity), role=WORKER, expected=DRIVER)
    assert echo.heard == 0


def test_neither_the_secret_nor_the_key_is_shown(identity: Identity) -> None:
    shown = repr(Access(b"known to few", identity))
    assert "known to few" not in shown
    assert "PRIVATE KEY" not in shown
    assert "CERTIFICATE" in shown


def test_a_job_whose_workers_encrypt_is_exact(lab):
    nodes = [
        {"id": "rows", "operator": "test.rows", "config": {"count": 60}},
        {"id": "both", "operator": "test.passing", "inputs": ["rows"], "config": {"keys": ["n"], "lives_on": True}},
        {"id": "out", "operator": "test.sink", "inputs": ["both"]},
    ]
    executor = live_executor(lab.plugins, address="127.0.0.1", is_encrypted=True)
    try:
        result = lab.run(nodes, executor=executor, parallelism=3, checkpoint={"interval": "1h", "rows": 12})
    finally:
        executor.close()
    assert (result.is_finished, result.restarts) == (True, 0)
    assert lab.trace.numbers() == Counter(range(60))
