"""Events of a binlog, taken apart. Pure; raises `EventError` for bytes that are not what they should be."""

from __future__ import annotations

import contextlib
import functools
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from arroyo_core.errors import DataError
from arroyo_mysql.cdc import binlog_types as types
from arroyo_mysql.cdc.binlog_types import BinlogColumn, Read
from arroyo_mysql.cdc.charsets import decoder_of, is_utf8
from arroyo_mysql.limits import EVENT_BYTES

_P = ParamSpec("_P")
_T = TypeVar("_T")

HEADER_BYTES = 19
_XID = re.compile(r"x'[0-9a-f]*',x'[0-9a-f]*',\d+", re.IGNORECASE)
_HEADER = struct.Struct("<IBIIIH")
QUERY, ROTATE, FORMAT, XID, TABLE_MAP, INCIDENT, HEARTBEAT = 2, 4, 15, 16, 19, 26, 27
ROWS_V1, ROWS_V2 = (23, 24, 25), (30, 31, 32)
GTID, ANONYMOUS_GTID, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, HEARTBEAT_V2, TAGGED_GTID = 33, 34, 38, 39, 40, 41, 42
PREVIOUS_GTIDS, MARIADB_GTID, GTID_LIST, QUERY_COMPRESSED = 35, 162, 163, 165
COMPRESSED_V1, COMPRESSED_V2 = (166, 167, 168), (169, 170, 171)
#: The kind of each rows event: 0 writes, 1 updates, 2 deletes.
ROW_KINDS = {
    code: kind for codes in (ROWS_V1, ROWS_V2, COMPRESSED_V1, COMPRESSED_V2) for kind, code in enumerate(codes)
}
WRITE, UPDATE, DELETE = 0, 1, 2
#: This event was made by the server for whoever reads: it is not in the file.
ARTIFICIAL = 0x20


#: What stands before a statement, up to the character set: how many bytes each has.
_STATUS_SIZES = {0: 4, 1: 8, 3: 4}
_CATALOG_STATUS, _CHARSET_STATUS = 6, 4


class EventError(DataError):
    """A log that cannot be understood: damaged, or of a server that writes it otherwise."""


def _of_event(read: Callable[_P, _T]) -> Callable[_P, _T]:
    """Makes what is raised for bytes that end too early, or say what they cannot, an `EventError`."""

    @functools.wraps(read)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return read(*args, **kwargs)
        except (IndexError, KeyError, ValueError, struct.error) as error:
            raise EventError(f"the binlog has an event that cannot be read: {error}") from error

    return checked


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `body` is what follows the header."""

    code: int
    server_id: int
    #: Where the next one begins; 0 for events that are not in the file.
    end: int
    flags: int
    body: bytes


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table as the rows that follow have it; `columns` is None where the log does not have their names."""

    table_id: int
    schema: str
    table: str
    columns: tuple[BinlogColumn, ...] | None


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """The beginning of a transaction of MariaDB."""

    text: str
    #: Whether one event follows, without a commit.
    is_standalone: bool
    #: Whether this is a part of an XA transaction: prepared, and ended later.
    is_xa: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A statement, in the database that was the default."""

    schema: str
    #: As the session wrote it; and in UTF-8 where that is something else, for the server writes some itself.
    readings: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.readings[0]


def read_event(data: bytes) -> Event:
    if len(data) < HEADER_BYTES:
        raise EventError(f"the binlog has an event of {len(data)} bytes")
    _, code, server_id, _, end, flags = _HEADER.unpack_from(data)
    return Event(code, server_id, end, flags, data[HEADER_BYTES:])


@_of_event
def read_rotate(body: bytes) -> tuple[str, int]:
    """The file that comes next, and where in it."""
    return body[8:].decode(), struct.unpack_from("<Q", body)[0]


@_of_event
def read_mariadb_gtid(event: Event) -> MariadbGtid:
    number, domain, flags = struct.unpack_from("<QIB", event.body)
    return MariadbGtid(f"{domain}-{event.server_id}-{number}", bool(flags & 1), bool(flags & 0xC0))


@_of_event
def read_mysql_gtid(event: Event) -> str:
    number = struct.unpack_from("<q", event.body, 17)[0]
    return f"{UUID(bytes=event.body[1:17])}:{number}"


@_of_event
def read_query(event: Event, charsets: Mapping[int, str]) -> Query:
    """`charsets` are those of collations, by their numbers."""
    _, _, schema_size, _, status_size = struct.unpack_from("<IIBHH", event.body)
    begin = 13 + status_size
    schema = event.body[begin : begin + schema_size]
    text = event.body[begin + schema_size + 1 :]
    if event.code == QUERY_COMPRESSED:
        text = _inflate(text)
    readings = [text.decode("utf-8", "replace")]
    charset = charsets.get(_client_collation(event.body[13:begin]) or 0, "utf8mb4")
    decode = decoder_of(charset)
    if decode is not None and not text.isascii() and not is_utf8(charset):
        with contextlib.suppress(UnicodeDecodeError):
            readings.insert(0, decode(text))
    return Query(schema.decode("utf-8", "replace"), tuple(dict.fromkeys(readings)))


def _client_collation(status: bytes) -> int | None:
    """What the session wrote its statement in; None where it is not said."""
    at = 0
    while at < len(status):
        code = status[at]
        if code == _CHARSET_STATUS:
            return int.from_bytes(status[at + 1 : at + 3], "little")
        if code == _CATALOG_STATUS:
            at += 2 + status[at + 1]
        elif code in _STATUS_SIZES:
            at += 1 + _STATUS_SIZES[code]
        else:
            return None
    return None


@_of_event
def read_prepared(event: Event) -> set[str]:
    """The XA transaction that is prepared, as statements write it; none where it is committed at once."""
    is_one_phase, number, size, branch = struct.unpack_from("<?III", event.body)
    name = event.body[13 : 13 + size + branch]
    return set() if is_one_phase else {f"X'{name[:size].hex()}',X'{name[size:].hex()}',{number}".lower()}


def find_xid(statement: str) -> str:
    """The XA transaction that a statement names; the statement itself where it is written otherwise."""
    found = _XID.search(statement)
    return found[0].lower() if found else statement


@_of_event
def read_table_name(body: bytes) -> tuple[int, str, str]:
    """The number that rows have, the database and the table."""
    table_id = int.from_bytes(body[:6], "little")
    size = body[8]
    schema = body[9 : 9 + size].decode()
    at = 10 + size
    return table_id, schema, body[at + 1 : at + 1 + body[at]].decode()


@_of_event
def read_table_map(body: bytes, *, is_mariadb: bool) -> TableMap:
    """What is said of a table; the flavours differ in which columns have a collation."""
    table_id, schema, table = read_table_name(body)
    at = 10 + body[8]
    at += 2 + body[at]
    count, at = read_length(body, at)
    codes = list(body[at : at + count])
    size, at = read_length(body, at + count)
    metas = _read_metas(codes, body[at : at + size])
    at += size + (count + 7) // 8
    extra: dict[int, bytes] = {}
    while at < len(body):
        kind = body[at]
        size, at = read_length(body, at + 1)
        extra[kind] = body[at : at + size]
        at += size
    return TableMap(
        table_id, schema, table, _columns(codes, metas, extra, is_mariadb=is_mariadb) if 4 in extra else None
    )


def _read_metas(codes: list[int], data: bytes) -> list[tuple[int, int]]:
    """What is known of each type; enums and sets get their own code in `codes`."""
    metas, at = [], 0
    for place, code in enumerate(codes):
        if code in types.ONE_BYTE:
            metas.append((data[at], 0))
            at += 1
        elif code in types.TWO_BYTES:
            first, second = data[at], data[at + 1]
            at += 2
            if code in (types.STRING, types.ENUM, types.SET):
                real = first if first & 0x30 == 0x30 else first | 0x30
                length = second | ((first & 0x30) ^ 0x30) << 4
                codes[place] = real
                metas.append((length, second))
            elif code in (types.VARCHAR, types.VAR_STRING, types.VARCHAR_COMPRESSED):
                metas.append((first | second << 8, 0))
            else:
                metas.append((first, second))
        else:
            metas.append((0, 0))
    return metas


def _columns(
    codes: list[int], metas: list[tuple[int, int]], extra: dict[int, bytes], *, is_mariadb: bool
) -> tuple[BinlogColumn, ...]:
    with_collation = types.WITH_COLLATION | (types.MARIADB_WITH_COLLATION if is_mariadb else frozenset())
    texts = [place for place, code in enumerate(codes) if code in with_collation]
    collations = _collations(len(texts), extra.get(2), extra.get(3))
    charset_of = dict(zip(texts, collations, strict=True))
    choices = [place for place, code in enumerate(codes) if code in (types.ENUM, types.SET)]
    charset_of |= dict(zip(choices, _collations(len(choices), extra.get(10), extra.get(11)), strict=True))
    numbers = [place for place, code in enumerate(codes) if code in types.NUMERIC]
    signs = extra.get(1, b"")
    unsigned = {
        place for bit, place in enumerate(numbers) if bit < len(signs) * 8 and signs[bit // 8] & 0x80 >> bit % 8
    }
    names = [name.decode() for name in _strings(extra[4])]
    chosen: dict[int, tuple[bytes, ...]] = {}
    for kind, code in ((5, types.SET), (6, types.ENUM)):
        places = [place for place, each in enumerate(codes) if each == code]
        chosen |= dict(zip(places, _string_lists(extra.get(kind, b"")), strict=True))
    return tuple(
        BinlogColumn(
            name=names[place],
            type_code=code,
            meta=metas[place],
            is_unsigned=place in unsigned,
            collation=charset_of.get(place, types.BINARY_CHARSET),
            values=chosen.get(place, ()),
        )
        for place, code in enumerate(codes)
    )


def _collations(count: int, default: bytes | None, each: bytes | None) -> list[int]:
    if each is not None:
        return list(_lengths(each))
    found = list(_lengths(default or b""))
    collations = [found[0] if found else types.BINARY_CHARSET] * count
    for place, collation in zip(found[1::2], found[2::2], strict=True):
        collations[place] = collation
    return collations


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _lengths(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = read_length(data, at)
        yield value


def _strings(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = read_length(data, at)
        yield data[at : at + size]
        at += size


def _string_lists(data: bytes) -> Iterator[tuple[bytes, ...]]:
    at = 0
    while at < len(data):
        count, at = read_length(data, at)
        found = []
        for _ in range(count):
            size, at = read_length(data, at)
            found.append(data[at : at + size])
            at += size
        yield tuple(found)


def _inflate(data: bytes) -> bytes:
    """What MariaDB has compressed: a byte that says how long the length is, the length, and the rest."""
    if not data or data[0] & 0xF0 != 0x80:
        raise EventError("the binlog has an event that is compressed in a way that is not known")
    at = 1 + (data[0] & 7)
    size = int.from_bytes(data[1:at], "big")
    problem = EVENT_BYTES.problem(size)
    if problem is not None:
        raise EventError(f"the binlog has an event that is too large: {problem}")
    unpacking = zlib.decompressobj()
    try:
        # No more than it says, and one byte that shows that there is more.
        found = unpacking.decompress(data[at:], size + 1)
    except zlib.error as error:
        raise EventError(f"the binlog has an event that cannot be unpacked: {error}") from error
    if len(found) != size:
        raise EventError(f"the binlog has an event that unpacks to another size than the {size} bytes that it says")
    return found


def rows_table(body: bytes) -> int:
    """Which table the rows of an event are of."""
    return int.from_bytes(body[:6], "little")


class RowReader:
    """Reads the rows of events of one table map."""

    def __init__(self, readers: Sequence[Read], chosen: Sequence[int]) -> None:
        """`readers` are of all columns, and `chosen` the places of those that are wanted, in order."""
        self._readers = list(readers)
        self._chosen = list(chosen)

    @_of_event
    def read(self, event: Event) -> list[tuple[Any, ...]]:
        """The rows, one after the other; of updates in pairs, before and after."""
        kind = ROW_KINDS[event.code]
        body, at = event.body, 8
        if event.code in ROWS_V2 or event.code in COMPRESSED_V2:
            at += int.from_bytes(body[8:10], "little")
        count, at = read_length(body, at)
        if count != len(self._readers):
            raise EventError(f"the binlog has a row of {count} columns in a table of {len(self._readers)}")
        if not count:
            # A row of no columns has no bytes, and would never end.
            raise EventError("the binlog has rows of a table without columns")
        size = (count + 7) // 8
        images = 2 if kind == UPDATE else 1
        for _ in range(images):
            _check_full(body[at : at + size], count)
            at += size
        data = body[at:]
        if event.code in COMPRESSED_V1 or event.code in COMPRESSED_V2:
            data = _inflate(data)
        return self._read_rows(data, size)

    def _read_rows(self, data: bytes, null_bytes: int) -> list[tuple[Any, ...]]:
        readers, chosen, rows, at, end = self._readers, self._chosen, [], 0, len(data)
        while at < end:
            nulls = int.from_bytes(data[at : at + null_bytes], "little")
            at += null_bytes
            values: list[Any] = []
            for read in readers:
                if nulls & 1:
                    values.append(None)
                else:
                    value, at = read(data, at)
                    values.append(value)
                nulls >>= 1
            rows.append(tuple([values[place] for place in chosen]))
        if at != end:
            raise EventError("the binlog has a row that is longer than its event")
        return rows


def _check_full(bitmap: bytes, count: int) -> None:
    if int.from_bytes(bitmap, "little") & ((1 << count) - 1) != (1 << count) - 1:
        raise EventError(
            "the binlog has rows without all their columns: a session, or the server, had another binlog_row_image "
            "than FULL"
        )
