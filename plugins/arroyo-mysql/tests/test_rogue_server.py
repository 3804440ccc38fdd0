"""A server that means harm: it asks for the password, or for a file of whoever connects."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.connection_pb2 import Connection

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError

PASSWORD = "s3cr3tPassw0rd"
#: Protocol 41, plugins to log in, connect with a database; no TLS.
_CAPABILITIES = 0x000FF7DF & ~0x800
_OK = b"\0\0\0\2\0\0\0"


class Rogue:
    """Speaks MySQL's protocol without TLS, remembers what it was sent, and answers as it is told."""

    def __init__(self, *, login: Callable[[Rogue], None], answer: bytes = _OK) -> None:
        self._login = login
        self._answer = answer
        self.received = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(10)

    def send(self, number: int, body: bytes) -> None:
        self._socket.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)

    def receive(self) -> tuple[int, bytes]:
        head = self._exactly(4)
        body = self._exactly(int.from_bytes(head[:3], "little"))
        self.received += body
        return head[3], body

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the client has gone")
            data += part
        return data

    def _serve(self) -> None:
        try:
            self._socket, _ = self._listener.accept()
            with self._socket:
                self._socket.settimeout(10)
                low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
                greeting = b"\x0a8.0.36\0" + struct.pack("<I", 7) + b"a" * 8 + b"\0"
                greeting += struct.pack("<HBHHB", low, 45, 2, high, 21) + bytes(10) + b"b" * 12 + b"\0"
                self.send(0, greeting + b"mysql_native_password\0")
                self.receive()
                self._login(self)
                # Statements of the client's own at the beginning of a session.
                while True:
                    number, statement = self.receive()
                    is_own = statement[1:].lower().startswith((b"set ", b"set\n"))
                    self.send(number + 1, _OK if is_own else self._answer)
        except OSError:
            return


@pytest.fixture
def rogues() -> Iterator[Any]:
    made: list[Rogue] = []

    def start(**settings: Any) -> Rogue:
        made.append(Rogue(**settings))
        return made[-1]

    yield start
    for each in made:
        each.close()


def server_at(rogue: Rogue, **config: Any) -> Server:
    settings = {"host": "127.0.0.1", "port": rogue.port, "database": "shop", "user": "me", "password": PASSWORD}
    return read_connection(with_defaults(Connection(**{**settings, **config})))


def asking(plugin: bytes, data: bytes = b"") -> Callable[[Rogue], None]:
    def login(rogue: Rogue) -> None:
        rogue.send(2, b"\xfe" + plugin + b"\0" + data)
        number, _ = rogue.receive()
        rogue.send(number + 1, _OK)

    return login


def welcoming(rogue: Rogue) -> None:
    rogue.send(2, _OK)


@pytest.mark.parametrize("sslmode", ["prefer", "disable"])
@pytest.mark.parametrize(("plugin", "data"), [(b"mysql_clear_password", b""), (b"dialog", b"\x04Password: ")])
def test_the_password_is_not_sent_in_clear(rogues: Any, plugin: bytes, data: bytes, sslmode: str) -> None:
    rogue = rogues(login=asking(plugin, data))
    with pytest.raises(ConfigError, match="asks for the password in clear") as raised:
        server_at(rogue, sslmode=sslmode).connect()
    rogue.close()
    assert PASSWORD.encode() not in rogue.received
    assert raised.value.field == "connection.sslmode"


def test_a_file_of_this_host_is_not_sent(rogues: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of this host")
    rogue = rogues(login=welcoming, answer=b"\xfb" + str(secret).encode())
    server = server_at(rogue)
    with (
        closing(server.connect()) as session,
        pytest.raises(ConfigError, match=r"cannot read: .*LOAD_LOCAL"),
        server.translating("cannot read"),
    ):
        session.execute("select 1")
    rogue.close()
    assert b"of this host" not in rogue.received
