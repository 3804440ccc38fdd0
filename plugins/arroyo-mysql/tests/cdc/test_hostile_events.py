"""Events that no server writes: each is an error of ours, and takes neither for ever nor all memory."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import pytest
from arroyo_mysql.cdc import binlog_events as events
from arroyo_mysql.cdc.binlog_events import Event, EventError, RowReader
from arroyo_mysql.cdc.binlog_types import BinlogColumn, reader_of

from .test_binlog_stream import make_stream

TABLE_MAP = (
    bytes(8)
    + b"\4shop\0\6orders\0"
    + bytes([3, 3, 15, 254])  # int, varchar, enum
    + bytes([4, 40, 0, 247, 1, 0])
    + bytes([4, 14, *b"\2id\4name\5state"])
    + bytes([2, 1, 45, 6, 4, 1, 2, *b"ok", 10, 1, 45])
)


def rows(body: bytes, code: int = 30) -> Event:
    return Event(code, 1, 0, 0, body)


def reader() -> RowReader:
    columns = [
        BinlogColumn("id", 3, (0, 0)),
        BinlogColumn("name", 15, (40, 0), collation=45),
        BinlogColumn("price", 246, (20, 4)),
        BinlogColumn("at", 18, (6, 0)),
        BinlogColumn("day", 10, (0, 0)),
        BinlogColumn("state", 247, (1, 1), collation=45, values=(b"a", b"b")),
    ]
    return RowReader([reader_of(column, "utf8mb4") for column in columns], range(len(columns)))


def test_rows_of_no_columns_do_not_go_on_for_ever() -> None:
    with pytest.raises(EventError, match="without columns"):
        RowReader([], []).read(rows(bytes(8) + b"\2\0" + b"\0" + b"some bytes"))


def packed(size: int, data: bytes) -> bytes:
    return b"\x84" + size.to_bytes(4, "big") + zlib.compress(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(10, bytes(64 << 20)), "another size than the 10 bytes"),
        (packed(64, bytes(10)), "another size than the 64 bytes"),
        (packed(3 << 30, bytes(10)), "too large: .*ARROYO_MAX_MYSQL_EVENT_BYTES"),
        (b"\x84\0\0\0\4nothing", "cannot be unpacked"),
        (b"\x90\0", "compressed in a way that is not known"),
    ],
)
def test_events_that_expand_are_bounded(data: bytes, words: str) -> None:
    with pytest.raises(EventError, match=words):
        events._inflate(data)


def test_what_is_packed_as_it_says_is_read() -> None:
    assert events._inflate(packed(5, b"hello")) == b"hello"


READS: dict[str, Any] = {
    "rotate": events.read_rotate,
    "table name": events.read_table_name,
    "table map": lambda body: events.read_table_map(body, is_mariadb=False),
    "gtid": lambda body: events.read_mysql_gtid(rows(body)),
    "gtid of MariaDB": lambda body: events.read_mariadb_gtid(rows(body)),
    "prepared": lambda body: events.read_prepared(rows(body)),
    "statement": lambda body: events.read_query(rows(body, events.QUERY), {}),
    "statement of MariaDB": lambda body: events.read_query(rows(body, events.QUERY_COMPRESSED), {}),
    "rows": lambda body: reader().read(rows(body)),
    "rows of MariaDB": lambda body: reader().read(rows(body, 169)),
}
GOOD = {"table map": TABLE_MAP, "table name": TABLE_MAP, "rotate": struct.pack("<Q", 4) + b"binlog.000002"}


def test_the_event_that_is_changed_is_a_good_one() -> None:
    table = events.read_table_map(TABLE_MAP, is_mariadb=False)
    assert table.columns is not None
    assert [column.name for column in table.columns] == ["id", "name", "state"]


@pytest.mark.parametrize("name", READS)
def test_any_bytes_are_read_or_are_an_error_of_ours(name: str) -> None:
    chance = random.Random(7)
    good = GOOD.get(name, bytes(8) + b"\2\0\6\xff" + bytes(60))
    for _ in range(3_000):
        body = bytearray(good[: chance.randrange(len(good) + 1)] if chance.random() < 0.3 else good)
        for _ in range(chance.randrange(6)):
            if body:
                body[chance.randrange(len(body))] = chance.choice((0, 1, 0x7F, 0xFB, 0xFE, 0xFF, chance.randrange(256)))
        try:
            READS[name](bytes(body))
        except events.DataError:
            continue


def test_an_event_in_packets_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROYO_MAX_MYSQL_EVENT_BYTES", "1KiB")
    endless = (b"\x08\0\0\0" + bytes(8)) * 1_000
    stream = make_stream(monkeypatch, endless, 4096)
    with pytest.raises(EventError, match="too large"):
        stream.receive(lambda each: True, seconds=1)


@pytest.mark.parametrize("size", [0, 1, 5, 18])
def test_an_event_without_a_head_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    packet = b"\0" + bytes(size)
    monkeypatch.setattr("arroyo_mysql.cdc.binlog_stream._WHOLE_PACKET", 64)
    stream = make_stream(monkeypatch, len(packet).to_bytes(3, "little") + b"\0" + packet, 4096)
    monkeypatch.setattr("arroyo_mysql.cdc.binlog_stream._WHOLE_PACKET", 64)
    with pytest.raises(EventError, match=f"an event has {size} bytes"):
        stream.receive(lambda each: True, seconds=0.01)
