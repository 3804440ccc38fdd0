"""TLS between machines, without certificates to manage: the driver makes one for each stage, which both ends must show.

Only the driver needs the package `cryptography`, to make it; the rest is Python's own.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

#: The clocks of machines differ, and stages live for long: nobody judges this certificate by its age.
_VALID = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
#: What is encrypted, or read from the socket, in one piece.
_PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificate of a stage and its key, in PEM. Whoever has the key is one of the stage's processes."""

    certificate: str
    key: str = field(repr=False)


def make_identity() -> Identity:
    """A key that nobody had before, with a certificate that it has signed itself. Needs `cryptography`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "arroyo live stage")])
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALID[0])
        .not_valid_after(_VALID[1])
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(certificate.public_bytes(pem).decode(), private.decode())


class TlsSocket:
    """One end of an encrypted connection. One thread may receive while another one sends.

    `ssl.SSLSocket` does not allow that. Here a lock is held while bytes are encrypted and decrypted, and not while the
    socket waits.
    """

    def __init__(self, sock: socket.socket, identity: Identity, *, is_server: bool) -> None:
        """Raises `OSError` where the other end does not show that it has the key of the same certificate."""
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context(identity, is_server).wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._lock = threading.Lock()
        self._shake_hands()
        if self._tls.getpeercert(binary_form=True) != ssl.PEM_cert_to_DER_cert(identity.certificate):
            raise ConnectionRefusedError("the other end has another certificate than this stage")

    def sendall(self, data: Any) -> None:
        """Of any buffer; one thread at a time."""
        rest = memoryview(data)
        while rest:
            with self._lock:
                rest = rest[self._tls.write(rest[:_PIECE_BYTES]) :]
                sealed = self._outgoing.read()
            self._sock.sendall(sealed)

    def recv_into(self, view: memoryview) -> int:
        """As many bytes as are there, at least one; none where the other end is gone. One thread at a time."""
        while True:
            with self._lock:
                count = self._open(view)
            if count or not view:
                return count
            if not self._fill():
                return 0

    def recv(self, size: int) -> bytes:
        found = bytearray(size)
        return bytes(found[: self.recv_into(memoryview(found))])

    def settimeout(self, seconds: float | None) -> None:
        self._sock.settimeout(seconds)

    def getsockname(self) -> tuple[str, int]:
        host, port, *_ = self._sock.getsockname()
        return host, port

    def shutdown(self, how: int) -> None:
        self._sock.shutdown(how)

    def close(self) -> None:
        self._sock.close()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                is_done = False
            self._sock.sendall(self._outgoing.read())
            if is_done:
                return
            if not self._fill():
                raise ConnectionError("the other end closed the connection")

    def _open(self, view: memoryview) -> int:
        """Decrypt what has come; a record at a time."""
        count = 0
        try:
            while count < len(view):
                more: Any = self._tls.read(len(view) - count, view[count:])
                if not more:
                    break
                count += more
        except ssl.SSLWantReadError:
            pass
        return count

    def _fill(self) -> bool:
        """Wait for bytes of the other end; whether there are more."""
        data = self._sock.recv(_PIECE_BYTES)
        self._incoming.write(data)
        return bool(data)


def _context(identity: Identity, is_server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Names of machines say nothing here: the certificate itself is what is expected.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.certificate)
    if is_server:
        # Nobody comes back to a connection.
        context.num_tickets = 0
    with ExitStack() as pipes:
        # Python takes files only; through pipes the key is on no disk.
        context.load_cert_chain(*(_pipe(text, pipes) for text in (identity.certificate, identity.key)))
    return context


def _pipe(text: str, ending: ExitStack) -> str:
    """A path from which the text, which fits into a pipe, can be read once."""
    reading, writing = os.pipe()
    ending.callback(os.close, reading)
    with os.fdopen(writing, "w") as file:
        file.write(text)
    return f"/dev/fd/{reading}"
