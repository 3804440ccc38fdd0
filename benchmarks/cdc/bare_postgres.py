"""What reads a replication slot by hand, with psycopg: messages of `pgoutput` that become tuples of texts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from tests.postgres_server import PostgresServer

from .measuring import Rows

_COUNT, _SIZE = struct.Struct("!H"), struct.Struct("!I")
_INSERT, _UPDATE, _DELETE, _COMMIT, _TEXT, _NEW = b"IUDCtN"
#: Of a message of the stream: its kind, two places in the log and a time; of one about a row its kind and table.
_STREAM_HEAD, _ROW_HEAD = 25, 5


def read_bytes(server: PostgresServer, slot: str, transactions: int) -> int:
    """How many messages about rows there are."""
    found = 0

    def count(message: bytes) -> None:
        nonlocal found
        found += message[0] in (_INSERT, _UPDATE, _DELETE)

    read_stream(server, slot, transactions, count)
    return found


def read_rows(server: PostgresServer, slot: str, transactions: int) -> Rows:
    rows: Rows = [], []
    read_stream(server, slot, transactions, lambda message: decode(message, *rows))
    return rows


def read_rows_by_sql(server: PostgresServer, slot: str) -> Rows:
    """By the function that gives the changes of a slot as rows, and leaves the slot where it is."""
    rows: Rows = [], []
    query = (
        "select data from pg_logical_slot_peek_binary_changes(%s, null, null, "
        "'proto_version', '1', 'publication_names', %s)"
    )
    with server.connect() as connection, connection.cursor(binary=True) as cursor:
        cursor.execute(query, [slot, slot])
        for (message,) in cursor:
            decode(message, *rows)  # type: ignore[arg-type]
    return rows


def read_stream(server: PostgresServer, slot: str, transactions: int, take: Callable[[bytes], None]) -> None:
    """Give the messages of so many transactions. The server is told nothing: the slot stays where it is."""
    where = {name: value for name, value in server.config.items() if name != "database"}
    database = str(server.config["database"])
    with closing(psycopg.connect(dbname=database, replication="database", autocommit=True, **where)) as connection:  # type: ignore[arg-type]
        command = f"START_REPLICATION SLOT {slot} LOGICAL 0/0 (proto_version '1', publication_names '{slot}')"
        stream = connection.pgconn
        stream.send_query(command.encode())
        stream.flush()
        result = stream.get_result()
        assert result is not None
        assert result.status == ExecStatus.COPY_BOTH, result.error_message
        while transactions:
            size, data = stream.get_copy_data(0)
            assert size > 0, stream.error_message
            message = bytes(data)
            if message[:1] == b"w":
                message = message[_STREAM_HEAD:]
                transactions -= message[0] == _COMMIT
                take(message)


def decode(message: bytes, added: list[Any], taken_back: list[Any]) -> None:
    kind = message[0]
    if kind not in (_INSERT, _UPDATE, _DELETE):
        return
    at = _ROW_HEAD
    if message[at] != _NEW:
        row, at = _read_tuple(message, at + 1)
        taken_back.append(row)
    if kind != _DELETE:
        row, at = _read_tuple(message, at + 1)
        added.append(row)


def _read_tuple(data: bytes, at: int) -> tuple[tuple[str | None, ...], int]:
    values: list[str | None] = []
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    for _ in range(count):
        if data[at] == _TEXT:
            (size,) = _SIZE.unpack_from(data, at + 1)
            at += 5
            values.append(data[at : at + size].decode())
            at += size
        else:
            values.append(None)
            at += 1
    return tuple(values), at
