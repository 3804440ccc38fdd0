"""Binlogs that are not as usual: statements in other character sets, large files, a server that searches."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from arroyo_mysql.cdc import binlog_events as events
from arroyo_mysql.cdc import binlog_stream
from arroyo_mysql.cdc.binlog_events import Event, read_query
from arroyo_mysql.cdc.binlog_stream import BinlogStream
from arroyo_mysql.cdc.changes import ChangeReader
from arroyo_mysql.cdc.places import Place
from arroyo_mysql.cdc.settings import check_cdc
from arroyo_mysql.cdc.tables import BinlogFacts
from arroyo_mysql.connection import read_connection
from arroyo_mysql.plugin import CdcConstructor
from arroyo_testing.databases import MakeTable, refused, run_until_it_fails

from arroyo_core.errors import ConfigError, DataError, ExternalError

LATIN1, GIB_4 = 8, 1 << 32


@pytest.mark.server
@pytest.mark.parametrize(
    ("statement", "words"),
    [("truncate $t", "emptied by TRUNCATE"), ("drop table $t", "dropped"), ("rename table $t to x", "renamed")],
)
def test_statements_of_a_session_with_another_character_set_are_heeded(
    table: MakeTable, statement: str, words: str
) -> None:
    made = table()
    made.drop()
    made.name = f"`té_{made.name}`"
    made.run("create table $t (id int primary key, name text)")
    made.fill(2)
    source = made.source()
    assert source.run(rows=2).table.num_rows == 2
    source.run(interval_ms=200)
    with closing(made.server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists x")
        cursor.execute("set names latin1")
        connection.query(statement.replace("$t", made.name).encode("latin1"))
    with refused(DataError, words):
        run_until_it_fails(source)
    made.run("drop table if exists x")


def query(text: bytes, status: bytes) -> Event:
    body = struct.pack("<IIBHH", 0, 0, 4, 0, len(status)) + status + b"shop\0" + text
    return Event(events.QUERY, 1, 0, 0, body)


def test_a_statement_is_read_in_the_character_set_that_its_event_tells() -> None:
    before = b"\x00" + bytes(4) + b"\x01" + bytes(8) + b"\x06\x03std" + b"\x03" + bytes(4)
    told = before + b"\x04" + struct.pack("<HHH", LATIN1, 45, 45)
    charsets = {LATIN1: "latin1", 45: "utf8mb4"}
    assert read_query(query("truncate té".encode("latin1"), told), charsets).text == "truncate té"
    assert "drop té" in read_query(query("drop té".encode(), told), charsets).readings
    assert read_query(query("drop té".encode(), before), charsets).readings == ("drop té",)
    assert read_query(query("drop té".encode(), b"\x63\x04"), charsets).readings == ("drop té",)


class Given:
    """A stream of events that are given."""

    def __init__(self, *found: Event) -> None:
        self._found = list(found)

    def receive(self, on_event: Callable[[Event], bool], *, seconds: float) -> bool:
        had = bool(self._found)
        while self._found and on_event(self._found.pop(0)):
            pass
        return had


@pytest.mark.server
def test_a_file_may_be_larger_than_its_events_can_say(table: MakeTable) -> None:
    settings = check_cdc(CdcConstructor().resolve(table().config()))
    stream = Given(
        Event(events.FORMAT, 1, 250, 0, b""),
        Event(events.GTID, 1, GIB_4 - 50, 0, bytes(25)),
        query(b"BEGIN", b""),
        Event(events.XID, 1, 500, 0, bytes(8)),
    )
    reader = ChangeReader(
        settings,
        stream,  # type: ignore[arg-type]
        BinlogFacts(charsets={}, folds_case=False),
        place=Place("binlog.000001", GIB_4 - 100),
        begun=None,
        prepared=(),
        until=None,
        warn=pytest.fail,
    )
    assert reader.read(100, 0) is None
    assert reader.place == Place("binlog.000001", GIB_4 + 500)


@pytest.mark.server
def test_a_place_behind_4_gib_is_refused_where_there_are_no_gtids(table: MakeTable) -> None:
    made = table()
    server = read_connection(made.config().connection)
    with pytest.raises(ConfigError, match="cannot begin behind 4 GiB"):
        BinlogStream(server, Place("binlog.000001", GIB_4), server_id=77, is_mariadb=True)


@pytest.mark.server
def test_a_server_that_looks_for_a_place_may_be_silent_for_longer(
    table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table()
    server = read_connection(made.config().connection)
    ((file, offset, *_),) = made.run("show master status")
    stream = BinlogStream(server, Place(file, offset), server_id=77, is_mariadb=True)
    seen: list[Event] = []

    def see(event: Event) -> bool:
        seen.append(event)
        return True

    def is_given_up(seconds: float) -> bool:
        monkeypatch.setattr(stream, "_heard", time.monotonic() - seconds)
        try:
            stream._check_silence()
        except ExternalError:
            return True
        return False

    with closing(stream):
        while events.FORMAT not in [event.code for event in seen]:
            stream.receive(see, seconds=5)
        # Whatever has come by now.
        monkeypatch.setattr(stream, "_patience", binlog_stream._SEARCH_SECONDS)
        monkeypatch.setattr(stream, "_has_checksums", False)
        stream._event(b"\0" + bytes(4) + bytes([events.GTID_LIST]) + bytes(18))
        assert not is_given_up(300)
        assert is_given_up(601)
        stream._event(b"\0" + bytes(4) + bytes([events.MARIADB_GTID]) + bytes(18))
        assert is_given_up(61)
        assert not is_given_up(30)
