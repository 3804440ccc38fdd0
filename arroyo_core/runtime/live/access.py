"""What the processes of a stage know, and how they find out about each other that they do."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from arroyo_core.runtime.live.tls import Identity, TlsSocket
from arroyo_core.runtime.live.wire import PROOF_SECONDS, Connection, prove

#: As that of Spark.
NETWORK_TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Access:
    """Comes to workers with their task, through Spark."""

    secret: bytes = field(repr=False)
    #: Where connections are encrypted.
    identity: Identity | None = None
    #: How long a machine may leave what it is sent without an answer.
    timeout_s: int = NETWORK_TIMEOUT_SECONDS

    def open(self, sock: socket.socket, *, role: bytes, expected: bytes, is_server: bool) -> Connection | None:
        """A connection to an end that has the same access, and the role that is expected; None for any other end.

        Raises `OSError` where the other end is gone, does not answer, or speaks otherwise. Until there is a connection
        the socket is the caller's to close.
        """
        sock.settimeout(PROOF_SECONDS)
        if sock.family != socket.AF_UNIX:
            _tune(sock, self.timeout_s)
        stream = sock if self.identity is None else TlsSocket(sock, self.identity, is_server=is_server)
        return Connection(stream) if prove(stream, self.secret, role=role, expected=expected) else None


def _tune(sock: socket.socket, timeout_s: int) -> None:
    """Without this an end would wait for a machine that is gone, or behind a cut, for a quarter of an hour, or ever."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    quarter = max(1, timeout_s // 4)
    options = {
        "TCP_KEEPIDLE": quarter,
        "TCP_KEEPINTVL": quarter,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": timeout_s * 1000,
    }
    for name, value in options.items():
        # Not every system has all of them.
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
