"""What Spark starts as its Python daemon: finds the one that the driver has ready, or becomes one.

Spark waits for it, so it must not wait for pyarrow: neither this module nor its packages import it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
from pathlib import Path

#: Where the driver's daemon listens, if it has one.
ADDRESS_VARIABLE = "ARROYO_READY_DAEMON"


def hand_over(address: str) -> bool:
    """Let the daemon that listens there serve Spark, over our pipes and in our environment, until it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(address)
        except OSError:
            # It serves already, or is gone: Spark asks for another daemon where the first one has died.
            return False
        socket.send_fds(connection, [b"\0"], [0, 1, 2])
        process = {"environ": dict(os.environ), "path": sys.path, "argv": sys.argv[1:], "folder": str(Path.cwd())}
        connection.sendall(json.dumps(process).encode())
        connection.shutdown(socket.SHUT_WR)
        _wait(connection)
    return True


def _wait(connection: socket.socket) -> None:
    """Until the other end is closed; by a program that takes less memory than this one, where there is one.

    Spark may end this process; the other one sees by its standard input that it is to go, too.
    """
    program = shutil.which("cat")
    if program is not None:
        os.dup2(connection.fileno(), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        with contextlib.suppress(OSError):
            os.execv(program, [program])
    while connection.recv(1024):
        pass


def main() -> None:
    address = os.environ.get(ADDRESS_VARIABLE)
    if address is None or not hand_over(address):
        from arroyo_core.spark import daemon

        daemon.main()


if __name__ == "__main__":
    main()
