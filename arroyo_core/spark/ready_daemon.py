"""A Python daemon that loads its modules while Spark's JVM starts, instead of after.

Spark starts its daemon for the first task of a session, and waits for it. What it starts is `daemon_entry`, which
hands its pipes and its environment to the daemon that the driver has started; that goes on as if it were Spark's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from arroyo_core.spark import daemon
from arroyo_core.spark.daemon_entry import ADDRESS_VARIABLE

MODULE = "arroyo_core.spark.ready_daemon"


class ReadyDaemon:
    """The driver's side: a process that waits to be asked for, and goes when Spark or the driver does."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="arroyo-daemon-"))
        address = str(self._folder / "socket")
        #: For what Spark starts as its daemon.
        self.environment = {ADDRESS_VARIABLE: address}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(address)
            # From now on it can be asked for; it answers when it has loaded its modules.
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(listener.fileno())],
                env=os.environ | daemon.daemon_environment(),
                pass_fds=[listener.fileno()],
                # By the end of its input it sees that the driver has gone.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                # Ctrl-C is for the driver.
                process_group=0,
            )
        self._waiting = threading.Thread(target=self._wait, name="arroyo-ready-daemon", daemon=True)
        self._waiting.start()

    def stop(self) -> None:
        """End it, unless it serves Spark already."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _wait(self) -> None:
        self._process.wait()
        self.stop()
        # One that was killed has left its socket.
        shutil.rmtree(self._folder, ignore_errors=True)


def serve(listener: socket.socket) -> bool:
    """Wait until Spark asks for a daemon, and take the place of the process that it started; False if it never does."""
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    # Whoever asks next is to become a daemon itself.
    address = Path(listener.getsockname())
    address.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        address.parent.rmdir()
    if listener not in ready:
        return False
    connection, _ = listener.accept()
    listener.close()
    _, pipes, _, _ = socket.recv_fds(connection, 1, 3)
    process = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(process["environ"])
    with contextlib.suppress(OSError):
        os.chdir(process["folder"])
    sys.path[:] = daemon.unzipped(process["path"])
    sys.argv[1:] = process["argv"]
    # The process that Spark started lasts as long as this one, and not as long as its workers.
    os.register_at_fork(after_in_child=connection.close)
    return True


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    daemon.load()
    if serve(listener):
        daemon.run()


if __name__ == "__main__":
    main()
