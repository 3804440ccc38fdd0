"""A session in which the server sends its binlog, event by event, as it does to a replica."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable
from uuid import UUID

from arroyo_core.errors import ArroyoError, ConfigError, ExternalError
from arroyo_mysql.cdc.binlog_events import (
    FORMAT,
    GTID_LIST,
    HEADER_BYTES,
    PREVIOUS_GTIDS,
    ROTATE,
    Event,
    EventError,
    read_event,
)
from arroyo_mysql.cdc.places import MysqlGtids, Place
from arroyo_mysql.connection import Server, Session
from arroyo_mysql.errors import error_number
from arroyo_mysql.limits import EVENT_BYTES
from arroyo_mysql.names import text_literal

_DUMP, _DUMP_GTID = 0x12, 0x1E
#: The server says so often that it is there, where it has nothing else to say.
HEARTBEAT_SECONDS = 5
#: After so long without a word the connection is taken for broken.
SILENCE_SECONDS = 60
#: So long while the server looks for a place in a large file, and says nothing.
_SEARCH_SECONDS = 600
_THROUGH_GTID = 4
#: Errors of a server that does not have what was asked for.
_NO_BINLOG = frozenset({1220, 1236, 1373, 1955, 1976})
_CRC32 = 1
#: What comes before the place that was asked for: which file it is, and what was before it.
_HEADS = frozenset({ROTATE, FORMAT, PREVIOUS_GTIDS, GTID_LIST})
_RECEIVE_BYTES = 1 << 18
_WHOLE_PACKET = 0xFFFFFF


class BinlogStream:
    """Opens the binlog behind a place. Sessions that a former life of the source has left are ended by the server."""

    def __init__(self, server: Server, place: Place, *, server_id: int, is_mariadb: bool) -> None:
        """Raises what the server says: `ConfigError` for a binlog that it does not have any more."""
        self._server = server
        self._place = place
        self._doing = f"cannot read the binlog of {server.display()}"
        self._buffer = bytearray()
        self._begin = 0
        #: Of a packet that is larger than 16 MiB what has come.
        self._parts: list[bytes] = []
        self._session = server.connect()
        try:
            with server.translating(self._doing):
                self._ask(self._session, place, server_id, is_mariadb=is_mariadb)
        except BaseException:
            self._session.close()
            raise
        self._socket = self._session.take_socket()
        self._heard = time.monotonic()
        self._patience = _SEARCH_SECONDS

    def receive(self, on_event: Callable[[Event], bool], *, seconds: float) -> bool:
        """Give events until `on_event` says False, or no more have come; waits for the first one, at most so long.

        Returns whether there were any. What is not given stays here. Raises `ExternalError`, and what the server says.
        """
        deadline = time.monotonic() + seconds
        has_any = False
        while True:
            while (packet := self._packet()) is not None:
                has_any = True
                if not on_event(self._event(packet)):
                    return True
                deadline = time.monotonic() + seconds
            # What is here is better handled than kept waiting for more.
            left = deadline - time.monotonic()
            if not self._fill(0.0 if has_any else max(0.0, left)):
                if has_any or time.monotonic() >= deadline:
                    self._check_silence()
                    return has_any
            elif left <= 0:
                # A large event takes its time.
                return has_any

    def close(self) -> None:
        self._session.close()

    def _ask(self, session: Session, place: Place, server_id: int, *, is_mariadb: bool) -> None:
        settings = [
            f"@master_heartbeat_period = {HEARTBEAT_SECONDS * 1_000_000_000}",
            f"@source_heartbeat_period = {HEARTBEAT_SECONDS * 1_000_000_000}",
            "@master_binlog_checksum = @@global.binlog_checksum",
            "@source_binlog_checksum = @@global.binlog_checksum",
            "net_write_timeout = 600",
        ]
        if is_mariadb:
            settings.append("@mariadb_slave_capability = 4")
            if place.gtid is not None:
                settings.append(f"@slave_connect_state = {text_literal(place.gtid)}")
                settings.append("@slave_gtid_strict_mode = 1")
        session.execute("set " + ", ".join(settings))
        ((checksum,),) = session.execute("select @@global.binlog_checksum")
        self._has_checksums = str(checksum).upper() != "NONE"
        if place.gtid is None or is_mariadb:
            file, offset = (place.file, place.offset) if place.gtid is None else ("", 4)
            if offset >= 1 << 32:
                raise ConfigError(
                    f"{self._doing} behind {place.display()}: a replica without GTIDs cannot begin behind 4 GiB of a "
                    "file, which one transaction has made that large. Start the job over, without its state, and turn "
                    "GTIDs on",
                    field="connection",
                )
            session.send(_DUMP, struct.pack("<IHI", offset, 0, server_id) + file.encode())
            return
        known = _encode_gtids(MysqlGtids(place.gtid))
        head = struct.pack("<HIIQ", _THROUGH_GTID, server_id, 0, 4)
        session.send(_DUMP_GTID, head + struct.pack("<I", len(known)) + known)

    def _packet(self) -> bytes | None:
        """The next whole one; None where it has not come."""
        data, at = self._buffer, self._begin
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 3], "little")
            if len(data) - at < 4 + size:
                break
            self._parts.append(bytes(data[at + 4 : at + 4 + size]))
            self._check_size()
            at += 4 + size
            if size < _WHOLE_PACKET:
                self._begin = at
                parts, self._parts = self._parts, []
                return parts[0] if len(parts) == 1 else b"".join(parts)
        if at:
            del data[:at]
            self._begin = 0
        return None

    def _check_size(self) -> None:
        problem = EVENT_BYTES.problem(sum(map(len, self._parts)))
        if problem is not None:
            raise EventError(f"{self._doing}: an event is too large: {problem}")

    def _fill(self, seconds: float) -> bool:
        """Take what has come, at most so much later; whether there was something."""
        # A timeout of 0 would not wait for the rest of a record that is encrypted.
        self._socket.settimeout(max(seconds, 0.001))
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except (TimeoutError, BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            raise ExternalError(f"{self._doing}: {error}") from error
        if not data:
            raise ExternalError(f"{self._doing}: the server has ended the connection")
        self._buffer += data
        self._heard = time.monotonic()
        return True

    def _event(self, packet: bytes) -> Event:
        if packet[:1] == b"\xff":
            raise self._error(packet)
        if packet[:1] != b"\0":
            raise ExternalError(f"{self._doing}: the server has ended the stream")
        data = packet[1:]
        if len(data) < HEADER_BYTES:
            raise EventError(f"{self._doing}: an event has {len(data)} bytes")
        if data[4] not in _HEADS:
            self._patience = SILENCE_SECONDS
        if data[4] == FORMAT:
            # The head of a file says whether what follows has checksums; it has one itself.
            self._has_checksums = data[-5] == _CRC32
        elif self._has_checksums:
            data, checksum = data[:-4], int.from_bytes(data[-4:], "little")
            if zlib.crc32(data) != checksum:
                raise ExternalError(f"{self._doing}: an event does not have its checksum")
        return read_event(data)

    def _error(self, packet: bytes) -> ArroyoError:
        import pymysql

        try:
            pymysql.err.raise_mysql_exception(packet)
        except pymysql.Error as error:
            number, text = error_number(error), " ".join(str(error.args[-1]).split())
            if number not in _NO_BINLOG:
                return self._server.translate(error, self._doing)
        if "same server" in text:
            return ExternalError(
                f"{self._doing}: another replica has the same number, and the server has ended this one: give another "
                f"server_id ({text})"
            )
        return ConfigError(
            f"{self._doing} behind {self._place.display()}: {text} (error {number}). What was changed since is lost "
            "for this job, if the server has removed it, or is another server: start the job over, without its state; "
            "binlog_expire_logs_seconds, or expire_logs_days, says for how long the server keeps its binlog",
            field="connection",
        )

    def _check_silence(self) -> None:
        if time.monotonic() - self._heard > self._patience:
            raise ExternalError(f"{self._doing}: the server has not said anything for {self._patience} seconds")


def _encode_gtids(gtids: MysqlGtids) -> bytes:
    """A set of GTIDs as MySQL wants it: ranges without their ends."""
    parts = [struct.pack("<Q", len(gtids.ranges))]
    for server, ranges in sorted(gtids.ranges.items()):
        parts.append(UUID(server).bytes + struct.pack("<Q", len(ranges)))
        parts.extend(struct.pack("<QQ", first, last + 1) for first, last in ranges)
    return b"".join(parts)
