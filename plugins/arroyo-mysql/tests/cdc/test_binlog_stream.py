"""Packets of a stream, as they come in pieces: without a server."""

from __future__ import annotations

import time

import pytest
from arroyo_mysql.cdc import binlog_stream
from arroyo_mysql.cdc.binlog_events import Event
from arroyo_mysql.cdc.binlog_stream import BinlogStream

WHOLE = 8


class Pieces:
    """Gives what a socket would, a piece at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[at : at + size] for at in range(0, len(data), size)]

    def settimeout(self, seconds: float) -> None:
        pass

    def recv(self, size: int) -> bytes:
        if not self._pieces:
            raise TimeoutError
        return self._pieces.pop(0)


def packets(event: bytes) -> bytes:
    """An event as the server sends it, where a packet has at most so many bytes."""
    data = b"\0" + event
    parts = [data[at : at + WHOLE] for at in range(0, len(data) + 1, WHOLE)]
    return b"".join(len(part).to_bytes(3, "little") + b"\0" + part for part in parts)


def make_stream(monkeypatch: pytest.MonkeyPatch, data: bytes, size: int) -> BinlogStream:
    monkeypatch.setattr(binlog_stream, "_WHOLE_PACKET", WHOLE)
    stream = BinlogStream.__new__(BinlogStream)
    stream._buffer, stream._begin, stream._parts = bytearray(), 0, []
    stream._socket, stream._has_checksums = Pieces(data, size), False
    stream._heard, stream._doing = time.monotonic(), "reading"
    return stream


def event(body: bytes) -> bytes:
    return b"\0" * 4 + b"\x03" + b"\0" * 14 + body


@pytest.mark.parametrize("size", [1, 5, 11, 12, 13, 64, 4096])
def test_events_in_many_packets_are_put_together_whatever_pieces_come(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    bodies = [bytes(range(count)) for count in (0, 4, 5, 12, 13, 200)]
    stream = make_stream(monkeypatch, b"".join(packets(event(body)) for body in bodies), size)
    found: list[Event] = []
    while stream.receive(lambda each: found.append(each) or True, seconds=0):
        pass
    while len(found) < len(bodies):
        stream.receive(lambda each: found.append(each) or True, seconds=0)
    assert [each.body for each in found] == bodies


def test_parts_of_a_large_event_leave_the_buffer_and_control_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packets(event(bytes(4000)))
    stream = make_stream(monkeypatch, data, 100)
    looks = 0
    found: list[Event] = []
    while not found:
        stream.receive(lambda each: found.append(each) or True, seconds=0)
        looks += 1
        assert len(stream._buffer) < 2 * 100
    assert looks >= len(data) // 100
    assert found[0].body == bytes(4000)
