"""What processes of a live job say to each other, and who may listen and speak."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.wire import Connection, MessageKind, prove

SECRET = b"s" * 32
ACCESS = Access(SECRET)


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Heard:
    """Hangs up on whoever gets through."""

    count = 0

    def __call__(self, connection: Connection) -> None:
        self.count += 1
        connection.close()


def pair(ending: ExitStack) -> tuple[Connection, Connection]:
    here, there = (Connection(sock) for sock in socket.socketpair())
    ending.callback(here.close)
    ending.callback(there.close)
    return here, there


@pytest.mark.parametrize("size", [0, 1, 13, 16 << 10, (16 << 10) + 1, 5_000_000])
def test_a_message_comes_as_it_was_sent(ending: ExitStack, size: int) -> None:
    here, there = pair(ending)
    payload = pa.py_buffer(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    threading.Thread(target=here.send, args=(MessageKind.FRAME, b"head", payload), daemon=True).start()
    message = there.receive()
    assert message is not None
    assert (message.kind, message.head, message.payload.equals(payload)) == (MessageKind.FRAME, b"head", True)
    assert message.payload.address % 8 == 0


def test_messages_of_several_threads_do_not_mix(ending: ExitStack) -> None:
    here, there = pair(ending)

    def send(number: int) -> None:
        for _ in range(20):
            here.send(MessageKind.FRAME, b"%d" % number, pa.py_buffer(b"%d" % number * 30_000))

    for number in range(4):
        threading.Thread(target=send, args=(number,), daemon=True).start()
    for _ in range(80):
        message = there.receive()
        assert message is not None
        assert set(message.payload.to_pybytes()) == set(message.head)


def test_an_end_that_is_gone_is_told_from_a_message(ending: ExitStack) -> None:
    here, there = pair(ending)
    here.close()
    assert there.receive() is None
    with pytest.raises(BrokenPipeError):
        there.send(MessageKind.DONE)


def test_half_a_message_is_none(ending: ExitStack) -> None:
    sock, other = socket.socketpair()
    there = Connection(other)
    ending.callback(there.close)
    sock.sendall(struct.pack("<BIQ", MessageKind.FRAME, 4, 100) + b"head" + b"x" * 50)
    sock.close()
    assert there.receive() is None


def test_a_message_of_any_length_is_not_waited_for(ending: ExitStack) -> None:
    sock, other = socket.socketpair()
    ending.callback(sock.close)
    there = Connection(other)
    sock.sendall(struct.pack("<BIQ", MessageKind.FRAME, 4, 2**60))
    assert there.receive() is None


def test_who_does_not_know_the_secret_is_not_heard_and_hears_nothing(ending: ExitStack) -> None:
    heard = Heard()
    listener = Listener(ACCESS, heard, role=b"driver", expected=b"worker", peers=2)
    ending.callback(listener.close)
    with pytest.raises(ConnectionError):
        connect(listener.address, Access(b"another secret"), role=b"worker", expected=b"driver")
    stranger = listener.address.connect()
    ending.callback(stranger.close)
    stranger.sendall(struct.pack("<BIQ", MessageKind.HELLO, 0, 0) * 10)
    # A challenge and a proof, which is worth nothing to who has no secret; then it is closed.
    assert len(read_all(stranger)) == 64
    assert heard.count == 0
    friend = connect(listener.address, ACCESS, role=b"worker", expected=b"driver")
    ending.callback(friend.close)


def test_a_proof_cannot_be_sent_back(ending: ExitStack) -> None:
    """Who knows nothing connects twice, and answers each connection with what the other one says."""
    listener = Listener(ACCESS, Heard(), role=b"peer", expected=b"caller", peers=2)
    ending.callback(listener.close)
    first, second = listener.address.connect(), listener.address.connect()
    ending.callback(first.close)
    ending.callback(second.close)
    nonces = first.recv(32), second.recv(32)
    first.sendall(nonces[1])
    second.sendall(nonces[0])
    proofs = first.recv(32), second.recv(32)
    first.sendall(proofs[1])
    second.sendall(proofs[0])
    assert (read_all(first), read_all(second)) == (b"", b"")


def test_ends_with_the_same_role_do_not_believe_each_other() -> None:
    here, there = socket.socketpair()
    believed: list[bool] = []
    thread = threading.Thread(target=lambda: believed.append(prove(there, SECRET, role=b"a", expected=b"b")))
    thread.start()
    believed.append(prove(here, SECRET, role=b"a", expected=b"b"))
    thread.join()
    assert believed == [False, False]
    here.close()
    there.close()


def test_a_unix_socket_is_in_a_folder_of_its_user(ending: ExitStack) -> None:
    listener = Listener(ACCESS, Heard(), role=b"a", expected=b"b", peers=2)
    folder = Path(listener.address.path).parent
    assert folder.stat().st_mode & 0o077 == 0
    listener.close()
    assert not folder.exists()


def test_a_port_of_one_address_is_taken_where_there_are_several_machines(ending: ExitStack) -> None:
    heard = Heard()
    listener = Listener(ACCESS, heard, role=b"driver", expected=b"worker", peers=2, host="127.0.0.1")
    ending.callback(listener.close)
    friend = connect(listener.address, ACCESS, role=b"worker", expected=b"driver")
    ending.callback(friend.close)
    assert friend.own_host() == "127.0.0.1"
    with pytest.raises(OSError, match=r"."):
        socket.create_connection(("127.0.0.2", listener.address.port), timeout=5)


def read_all(sock: socket.socket) -> bytes:
    found = b""
    try:
        while part := sock.recv(1024):
            found += part
    except ConnectionError:
        pass
    return found
