"""The stream of a replication slot: the messages of its output plugin, and what the server is told in return.

https://www.postgresql.org/docs/current/protocol-replication.html, over psycopg's wrapper of
libpq. One thread uses a stream.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arroyo_core.errors import ExternalError
from arroyo_postgres.cdc.catalogue import quoted
from arroyo_postgres.cdc.lsn import format_lsn
from arroyo_postgres.cdc.pgoutput import MessageError
from arroyo_postgres.connection import Server

if TYPE_CHECKING:
    import psycopg

#: How often the server is told where the source is; it ends a stream that says nothing for `wal_sender_timeout` (60 s).
FEEDBACK_SECONDS = 10.0
#: After this long without a message the server is asked how far it is.
ASK_SECONDS = 0.5
_DATA = struct.Struct("!BQQQ")
_KEEPALIVE = struct.Struct("!BQQB")
_FEEDBACK = struct.Struct("!BQQQQB")
#: Times of the protocol count from 2000.
_EPOCH_SHIFT_US = 946_684_800_000_000
_DATA_KIND, _KEEPALIVE_KIND, _FEEDBACK_KIND = b"wkr"


class ReplicationStream:
    """An open stream. `close` it; the slot stays where it was confirmed to be."""

    def __init__(self, server: Server, *, slot: str, publication: str, lsn: int, name: str) -> None:
        """Begins with the changes that were committed at or after `lsn`. Raises `ArroyoError`."""
        import psycopg
        from psycopg.errors import error_from_result
        from psycopg.pq import ExecStatus

        self._server = server
        self._doing = f"cannot read slot {slot!r}"
        self.connection: psycopg.Connection[Any] = server.connect(name=name, replication=True)
        #: As far as the server has looked for changes; all that it had to say before was said.
        self.sent_lsn = 0
        #: Until here the slot may forget.
        self._confirmed_lsn = 0
        self._told = self._asked = time.monotonic()
        self._pgconn = self.connection.pgconn
        try:
            with server.translating(self._doing):
                row = self.connection.execute("IDENTIFY_SYSTEM").fetchone()
                assert row is not None
                self.system = str(row[0])
                publications = quoted(publication).replace("'", "''")
                command = (
                    f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {format_lsn(lsn)} "
                    f"(proto_version '1', publication_names '{publications}')"
                )
                self._pgconn.send_query(command.encode())
                self._pgconn.flush()
                result = self._pgconn.get_result()
                if result is None or result.status != ExecStatus.COPY_BOTH:
                    raise error_from_result(result) if result else psycopg.OperationalError("no answer")
        except BaseException:
            self.close()
            raise

    def receive(self, on_data: Callable[[bytes], bool], *, seconds: float) -> bool:
        """Give messages of the plugin to `on_data` until it says False, or no more have come.

        Waits for the first one, at most so long. Returns whether there were any. What is not given stays in the stream.
        """
        import psycopg

        with self._server.translating(self._doing):
            try:
                return self._receive(on_data, seconds)
            except OSError as error:
                # The socket of a connection that is gone.
                raise psycopg.OperationalError(str(error)) from error

    def confirm(self, lsn: int) -> None:
        """The server may forget what was committed before: called with what is durable."""
        if lsn > self._confirmed_lsn:
            self._confirmed_lsn = lsn
            self._tell()

    def close(self) -> None:
        self.connection.close()

    def _receive(self, on_data: Callable[[bytes], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        has_any = False
        while True:
            size, message = self._pgconn.get_copy_data(1)
            if size > 0:
                data = bytes(message)
                if data[0] == _DATA_KIND:
                    has_any = True
                    if not on_data(data[_DATA.size :]):
                        break
                elif data[0] == _KEEPALIVE_KIND:
                    self._hear(data)
                continue
            if size < 0:
                self._raise_end()
            left = deadline - time.monotonic()
            # What is here is better handled than kept waiting for more.
            patience = 0.0 if has_any else max(0.0, min(left, ASK_SECONDS))
            if _is_readable(self._pgconn.socket, patience):
                self._pgconn.consume_input()
            elif has_any or left <= 0:
                break
            self._keep_up()
        self._keep_up()
        return has_any

    def _hear(self, data: bytes) -> None:
        if len(data) < _KEEPALIVE.size:
            raise MessageError(f"{self._doing}: the server says where it is in {len(data)} bytes")
        _, lsn, _, wants_answer = _KEEPALIVE.unpack_from(data)
        self.sent_lsn = max(self.sent_lsn, lsn)
        if wants_answer:
            self._tell()

    def _keep_up(self) -> None:
        now = time.monotonic()
        if now - self._asked >= ASK_SECONDS:
            self._asked = now
            self._tell(asks=True)
        elif now - self._told >= FEEDBACK_SECONDS:
            self._tell()

    def _tell(self, *, asks: bool = False) -> None:
        self._told = time.monotonic()
        now_us = time.time_ns() // 1000 - _EPOCH_SHIFT_US
        lsn = self._confirmed_lsn
        self._pgconn.put_copy_data(_FEEDBACK.pack(_FEEDBACK_KIND, max(lsn, self.sent_lsn), lsn, lsn, now_us, asks))
        self._pgconn.flush()

    def _raise_end(self) -> None:
        """Of a stream that the server has ended; with its reason, where it gives one."""
        from psycopg.errors import error_from_result
        from psycopg.pq import ExecStatus

        result = self._pgconn.get_result()
        if result is not None and result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        raise ExternalError(f"{self._doing}: the server has ended the stream")


def _is_readable(descriptor: int, seconds: float) -> bool:
    """Whether something has come, at most so much later."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([descriptor], [], [], seconds)[0])
    # Unlike select it takes descriptors of any number, of which executors may have many.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
