"""Where processes of a job listen for each other."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from arroyo_core.local_folders import make_socket_folder
from arroyo_core.runtime.live.wire import Address, Connection, prove

#: Connections that wait to be accepted; a worker connects to each other one at the same time.
_BACKLOG = 512
#: Those that may be at their proof at the same time; more wait to be accepted.
_AT_PROOF = 64


class Listener:
    """Accepts connections that prove what they know, and hands each over in a thread of its own until it is done."""

    def __init__(
        self,
        secret: bytes,
        handle: Callable[[Connection], None],
        *,
        role: bytes,
        expected: bytes,
        host: str | None = None,
    ) -> None:
        """Listens on a Unix socket that only this user can open, or on a free port of `host`."""
        self._secret = secret
        self._handle = handle
        self._role = role
        self._expected = expected
        self._folder = None if host else make_socket_folder()
        self._sock, self.address = _bind(host, self._folder)
        self._sock.listen(_BACKLOG)
        self._free = threading.Semaphore(_AT_PROOF)
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
            # One that proves nothing must not keep others waiting.
            self._free.acquire()
            threading.Thread(target=self._welcome, args=(sock,), name="arroyo-live-reader", daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        try:
            is_known = prove(sock, self._secret, role=self._role, expected=self._expected)
        except OSError:
            is_known = False
        finally:
            self._free.release()
        try:
            if is_known:
                self._handle(Connection(sock))
        finally:
            sock.close()


def connect(address: Address, secret: bytes, *, role: bytes, expected: bytes) -> Connection:
    """Raises `OSError` where nobody listens, or not who should."""
    sock = address.connect()
    try:
        if not prove(sock, secret, role=role, expected=expected):
            raise ConnectionRefusedError(f"{address} does not know the secret of this stage")
    except OSError:
        sock.close()
        raise
    return Connection(sock)


def _bind(host: str | None, folder: Path | None) -> tuple[socket.socket, Address]:
    if host is None:
        assert folder is not None
        path = str(folder / "s")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(path)
        return sock, Address(path=path)
    sock = socket.create_server((host, 0), backlog=_BACKLOG)
    return sock, Address(host=host, port=sock.getsockname()[1])
