"""Where processes of a job listen for each other."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from arroyo_core.local_folders import make_socket_folder
from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.wire import Address, Connection

#: Connections that wait to be accepted; a worker connects to each other one at the same time.
_BACKLOG = 512
#: Strangers that may be at their proof at the same time, beside all that should come.
_STRANGERS = 64


class Listener:
    """Accepts connections that prove what they know, and hands each over in a thread of its own until it is done."""

    def __init__(
        self,
        access: Access,
        handle: Callable[[Connection], None],
        *,
        role: bytes,
        expected: bytes,
        peers: int,
        host: str | None = None,
    ) -> None:
        """Listens on a Unix socket that only this user can open, or on a free port of `host`, for so many peers."""
        self._access = access
        self._handle = handle
        self._role = role
        self._expected = expected
        self._folder = None if host else make_socket_folder()
        self._sock, self.address = _bind(host, self._folder)
        self._sock.listen(_BACKLOG)
        #: Those at their proof, the oldest first.
        self._unproved: dict[socket.socket, None] = {}
        self._most_unproved = peers + _STRANGERS
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="arroyo-live-listener", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # Closing alone would leave `accept` waiting.
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                return
            self._make_room(sock)
            threading.Thread(target=self._welcome, args=(sock,), name="arroyo-live-reader", daemon=True).start()

    def _make_room(self, sock: socket.socket) -> None:
        """Those that prove nothing must not keep others waiting, however many they are: the oldest one goes."""
        with self._lock:
            self._unproved[sock] = None
            if len(self._unproved) > self._most_unproved:
                oldest = next(iter(self._unproved))
                del self._unproved[oldest]
                with contextlib.suppress(OSError):
                    # Its thread notices, and closes it.
                    oldest.shutdown(socket.SHUT_RDWR)

    def _welcome(self, sock: socket.socket) -> None:
        connection = None
        with contextlib.suppress(OSError):
            connection = self._access.open(sock, role=self._role, expected=self._expected, is_server=True)
        with self._lock:
            self._unproved.pop(sock, None)
        try:
            if connection is not None:
                self._handle(connection)
        finally:
            sock.close()


def connect(address: Address, access: Access, *, role: bytes, expected: bytes) -> Connection:
    """Raises `OSError` where nobody listens, or not who should."""
    sock = address.connect()
    try:
        connection = access.open(sock, role=role, expected=expected, is_server=False)
        if connection is None:
            raise ConnectionRefusedError(f"{address} does not know the secret of this stage")
    except OSError:
        sock.close()
        raise
    return connection


def _bind(host: str | None, folder: Path | None) -> tuple[socket.socket, Address]:
    if host is None:
        assert folder is not None
        path = str(folder / "s")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(path)
        return sock, Address(path=path)
    sock = socket.create_server((host, 0), backlog=_BACKLOG)
    return sock, Address(host=host, port=sock.getsockname()[1])
