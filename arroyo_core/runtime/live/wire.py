"""Messages between the processes of a live job: stream sockets whose ends have proved to each other what they know.

Whoever can write to such a socket decides what a job computes. So each end proves that it knows the secret of the
stage before anything else is read; the secret itself is never sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from arroyo_core.runtime.frames import EMPTY, MAX_FRAME_BYTES

_START = struct.Struct("<BIQ")
_NONCE_BYTES = 32
_PROOF_BYTES = hashlib.sha256().digest_size
_MAX_HEAD_BYTES = 1 << 20
#: What is smaller is sent with its head in one call.
_JOINED_BYTES = 16 << 10
#: How long the other end may take to prove what it knows.
PROOF_SECONDS = 10.0


class MessageKind(IntEnum):
    """What a message is; each says who sends it."""

    #: Worker to driver: its number, and where others reach it.
    HELLO = 1
    #: Driver to worker: the plan, pickled, in the payload.
    WELCOME = 2
    #: Driver to worker: where each of the others is.
    PEERS = 3
    #: Worker to driver: it is connected to all others.
    READY = 4
    #: Driver to worker: the number of a run, and its request, pickled.
    RUN = 5
    #: Worker to driver: a `ChainReport` of a run.
    REPORT = 6
    #: Worker to driver: all its reports of a run have been sent.
    DONE = 7
    #: Worker to worker: a frame of a run.
    FRAME = 8
    #: Worker to worker: bytes of frames of a run that were taken.
    CREDIT = 9
    #: Worker to driver: text for its standard output, of no run.
    SHOWN = 10
    #: Worker to driver: a `TaskProgress` of a run.
    PROGRESS = 11


@dataclass(frozen=True, slots=True)
class Address:
    """Where a process listens: the path of a Unix socket, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    def connect(self) -> socket.socket:
        """Raises `OSError` where nobody listens."""
        if not self.path:
            return socket.create_connection((self.host, self.port), timeout=PROOF_SECONDS)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(PROOF_SECONDS)
            sock.connect(self.path)
        except OSError:
            sock.close()
            raise
        return sock


@dataclass(frozen=True, slots=True)
class Message:
    kind: MessageKind
    head: bytes
    payload: pa.Buffer


class Stream(Protocol):
    """What we need of a socket; encrypted ones are no `socket.socket`."""

    def sendall(self, data: Any, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def recv_into(self, view: memoryview, /) -> int: ...

    def settimeout(self, seconds: float | None, /) -> None: ...

    def getsockname(self) -> Any: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


class Connection:
    """One end of a socket. Any thread may send; one thread receives."""

    def __init__(self, sock: Stream) -> None:
        """Takes the socket over, after `prove`."""
        sock.settimeout(None)
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, kind: MessageKind, head: bytes = b"", payload: pa.Buffer = EMPTY) -> None:
        """Raises `OSError` where the other end is gone."""
        start = _START.pack(kind, len(head), payload.size) + head
        with self._lock:
            if payload.size <= _JOINED_BYTES:
                self._sock.sendall(start + payload.to_pybytes())
            else:
                self._sock.sendall(start)
                self._sock.sendall(payload)

    def receive(self) -> Message | None:
        """The next message; None when the other end is gone, or this one closed."""
        try:
            start = self._read(_START.size)
            if start is None:
                return None
            kind, head_bytes, payload_bytes = _START.unpack(start)
            if head_bytes > _MAX_HEAD_BYTES or payload_bytes > MAX_FRAME_BYTES:
                # Nobody sends that, so nobody knows what follows.
                self.close()
                return None
            head = self._read(head_bytes)
            payload = self._read(payload_bytes)
        except OSError:
            return None
        if head is None or payload is None:
            return None
        return Message(MessageKind(kind), head.to_pybytes(), payload)

    def own_host(self) -> str:
        """The address of this machine as the other end sees it."""
        host: str = self._sock.getsockname()[0]
        return host

    def close(self) -> None:
        """Ends `receive` in another thread, too."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def _read(self, size: int) -> pa.Buffer | None:
        """Just so many bytes; None where there are fewer."""
        if not size:
            return EMPTY
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        read = 0
        while read < size:
            count = self._sock.recv_into(view[read:])
            if not count:
                return None
            read += count
        return buffer


#: Gives what stands for a connection from now on, given who has it and who is at its other end; for tests.
Wrap: TypeAlias = Callable[[Connection, int, int], Connection]

#: The number of the driver, beside those of workers.
DRIVER_NUMBER = -1


def bare(connection: Connection, own: int, other: int) -> Connection:
    """Nothing stands for it."""
    return connection


def prove(sock: Stream, secret: bytes, *, role: bytes, expected: bytes) -> bool:
    """Whether both ends know the secret; each has a role, so that nobody can send a proof back.

    Raises `OSError` where the other end is gone, or does not answer within the socket's timeout.
    """
    own = secrets.token_bytes(_NONCE_BYTES)
    sock.sendall(own)
    other = _read_exactly(sock, _NONCE_BYTES)
    sock.sendall(_proof(secret, role, own, other))
    return hmac.compare_digest(_read_exactly(sock, _PROOF_BYTES), _proof(secret, expected, other, own))


def _proof(secret: bytes, role: bytes, own: bytes, other: bytes) -> bytes:
    return hmac.digest(secret, role + b"\0" + own + other, hashlib.sha256)


def _read_exactly(sock: Stream, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = sock.recv(size - len(found))
        if not part:
            raise ConnectionError("the other end closed the connection")
        found += part
    return found
