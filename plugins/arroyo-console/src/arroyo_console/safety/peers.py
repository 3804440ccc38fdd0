"""Which user of this machine is at the other end of a connection over loopback.

Linux lists its TCP sockets with the users that have them. Elsewhere nobody knows.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path
from typing import TypeAlias

#: A host, as a number, and a port.
Address: TypeAlias = tuple[str, int]

#: By the version of the addresses.
_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_ROOT = 0


def is_known_here() -> bool:
    """Whether this machine says whose a socket is."""
    return _TABLES[4].exists()


def user_of(client: Address, server: Address) -> int | None:
    """Who has the client's end of a connection; None where nobody has it any more.

    A socket that its process has closed belongs to nobody, and is listed as one of root: only its inode says so.
    """
    wanted = (_written(client), _written(server))
    try:
        lines = _TABLES[ipaddress.ip_address(client[0]).version].read_text().splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        _, local, remote, _, _, _, _, user, _, inode, *_ = line.split()
        if (local, remote) == wanted and inode != "0":
            return int(user)
    return None


def may_enter(client: Address, server: Address) -> bool:
    """Whether the client is of the user of this process, or root."""
    return user_of(client, server) in (os.getuid(), _ROOT)


def _written(address: Address) -> str:
    """As the kernel writes it: words of 32 bits in the order of bytes of this machine, in hexadecimal digits."""
    packed = ipaddress.ip_address(address[0]).packed
    words = (int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
