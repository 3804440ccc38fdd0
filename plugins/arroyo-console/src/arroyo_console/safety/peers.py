"""Which user of this machine is at the other end of a connection over loopback.

Linux tells whose a TCP socket is, over netlink (`sock_diag`). Elsewhere nobody knows.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import closing
from typing import TypeAlias

#: A host, as a number, and a port.
Address: TypeAlias = tuple[str, int]

_ROOT = 0
_SOCK_DIAG = 4
_BY_FAMILY, _REQUEST = 20, 1
_TIMEOUT_S = 5.0
#: The head of a message: its length, kind, flags, number and sender.
_HEAD = struct.Struct("=IHHII")
#: What is asked: the family, the protocol, and sockets in any state.
_QUESTION = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
#: Any network device, and no cookie.
_ANYWHERE = struct.pack("=IQ", 0, 2**64 - 1)
_ADDRESS_BYTES = 16
#: At the end of an answer: when it expires, both queues, the user and the inode.
_ANSWER = struct.Struct("=IIIII")
_BEFORE_ANSWER = _HEAD.size + 4 + _PORTS.size + 2 * _ADDRESS_BYTES + len(_ANYWHERE)


def is_known_here() -> bool:
    """Whether this machine says whose a socket is: of one of our own, for example."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as client,
            closing(listener.accept()[0]),
        ):
            return user_of(client.getsockname(), listener.getsockname()) == os.getuid()
    except OSError:
        return False


def user_of(client: Address, server: Address) -> int | None:
    """Who has the client's end of a connection; None where nobody has it any more, or nobody says.

    A socket that its process has closed belongs to nobody, and is told as one of root: only its inode says so.
    """
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    places = [socket.inet_pton(family, host).ljust(_ADDRESS_BYTES, b"\0") for host in (client[0], server[0])]
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 2**32 - 1)
    question += _PORTS.pack(client[1], server[1]) + b"".join(places) + _ANYWHERE
    head = _HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as asked:
            asked.settimeout(_TIMEOUT_S)
            asked.send(head + question)
            answer = asked.recv(1 << 12)
    except (OSError, AttributeError):
        return None
    if _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    *_, user, inode = _ANSWER.unpack_from(answer, _BEFORE_ANSWER)
    return int(user) if inode else None


def may_enter(client: Address, server: Address) -> bool:
    """Whether the client is of the user of this process, or root."""
    return user_of(client, server) in (os.getuid(), _ROOT)
