"""What reads a binlog by hand, over PyMySQL's packets: rows of `orders`, and of nothing else, as tuples."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.mysql_server import MysqlServer, find_binary

from .measuring import Rows

#: A file and an offset in it.
Place = tuple[str, int]

_DUMP, _NON_BLOCKING, _SERVER_ID = 0x12, 1, 4711
_HEADER, _TABLE_MAP = 19, 19
#: Rows events of MariaDB, and of MySQL.
_WRITES, _UPDATES, _DELETES = (23, 30), (24, 31), (25, 32)
_V2 = 30
#: The columns that have one size.
_ID, _CUSTOMER, _PRICE = struct.Struct("<q"), struct.Struct("<i"), struct.Struct("<d")


def place_now(server: MysqlServer) -> Place:
    file, offset = server.execute("show master status")[0][:2]
    return file, offset


def read_bytes(server: MysqlServer, place: Place) -> int:
    """How many events about rows there are."""
    return sum(event[4] in (*_WRITES, *_UPDATES, *_DELETES) for event in events(server, place))


def read_rows(server: MysqlServer, place: Place) -> Rows:
    added: list[Any] = []
    taken_back: list[Any] = []
    tables: dict[bytes, bool] = {}
    for event in events(server, place):
        code, table = event[4], event[_HEADER : _HEADER + 6]
        if code == _TABLE_MAP:
            tables[table] = _table_name(event) == b"orders"
        elif code in _WRITES + _UPDATES + _DELETES and tables[table]:
            is_update = code in _UPDATES
            rows = _rows(event, bitmaps=1 + is_update)
            if is_update:
                taken_back += rows[::2]
                added += rows[1::2]
            else:
                (added if code in _WRITES else taken_back).extend(rows)
    return added, taken_back


def read_by_program(server: MysqlServer, place: Place) -> tuple[int, int, int]:
    """By `mariadb-binlog`, which writes the rows as SQL into a file: how many of each kind."""
    config = server.config
    command = [find_binary("mariadb-binlog"), "--no-defaults", "--read-from-remote-server", "--to-last-log"]
    command += [f"--{name}={config[name]}" for name in ("host", "port", "user")]
    command += ["--verbose", "--base64-output=decode-rows", f"--start-position={place[1]}", place[0]]
    with tempfile.TemporaryFile() as out:
        environment = os.environ | {"MYSQL_PWD": str(config["password"])}
        subprocess.run(command, stdout=out, stderr=subprocess.PIPE, env=environment, check=True)
        out.seek(0)
        text = out.read()
    inserts, updates, deletes = (text.count(b"\n### " + word) for word in (b"INSERT INTO", b"UPDATE", b"DELETE FROM"))
    return inserts, updates, deletes


def events(server: MysqlServer, place: Place) -> Iterator[bytes]:
    """Until the end of the binlog, without their checksums."""
    with closing(server.connect()) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("select @@global.binlog_checksum")
            ((checksum,),) = cursor.fetchall()
        end = None if checksum == "NONE" else -4
        file, offset = place
        connection._execute_command(_DUMP, struct.pack("<IHI", offset, _NON_BLOCKING, _SERVER_ID) + file.encode())
        while not (packet := connection._read_packet()).is_eof_packet():
            yield packet.get_all_data()[1:end]


def _table_name(event: bytes) -> bytes:
    at = _HEADER + 8
    at += event[at] + 2
    return event[at + 1 : at + 1 + event[at]]


def _rows(event: bytes, *, bitmaps: int) -> list[tuple[Any, ...]]:
    at = _HEADER + 8
    if event[4] >= _V2:
        at += int.from_bytes(event[at : at + 2], "little")
    # The number of columns, and which of them are there: all eight.
    at += 1 + bitmaps
    rows, end = [], len(event)
    while at < end:
        nulls, at = event[at], at + 1
        values: list[Any] = []
        for column in _COLUMNS:
            if nulls & 1:
                values.append(None)
            else:
                value, at = column(event, at)
                values.append(value)
            nulls >>= 1
        rows.append(tuple(values))
    return rows


def _text(data: bytes, at: int) -> tuple[Any, int]:
    end = at + 1 + data[at]
    return data[at + 1 : end].decode(), end


def _time(data: bytes, at: int) -> tuple[Any, int]:
    """`datetime(6)`: bits of a year and month, day, hour, minute and second, then microseconds."""
    bits = int.from_bytes(data[at : at + 5], "big") & 0x7FFFFFFFFF
    date, clock = bits >> 17, bits & 0x1FFFF
    year, month = divmod(date >> 5, 13)
    micros = int.from_bytes(data[at + 5 : at + 8], "big")
    return datetime(year, month, date & 31, clock >> 12, clock >> 6 & 63, clock & 63, micros), at + 8


def _total(data: bytes, at: int) -> tuple[Any, int]:
    """`decimal(12,2)`: one digit, nine digits, and two behind the point; here never below zero."""
    whole = (data[at] ^ 0x80) * 1_000_000_000 + int.from_bytes(data[at + 1 : at + 5], "big")
    return Decimal(f"{whole}.{data[at + 5]:02}"), at + 6


_COLUMNS: tuple[Callable[[bytes, int], tuple[Any, int]], ...] = (
    lambda data, at: (_ID.unpack_from(data, at)[0], at + 8),
    lambda data, at: (_CUSTOMER.unpack_from(data, at)[0], at + 4),
    _text,
    lambda data, at: (_PRICE.unpack_from(data, at)[0], at + 8),
    lambda data, at: (data[at], at + 1),
    _time,
    _text,
    _total,
)
