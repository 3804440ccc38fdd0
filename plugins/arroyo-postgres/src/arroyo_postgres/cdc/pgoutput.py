"""Reads the messages of PostgreSQL's output plugin `pgoutput`, protocol version 1: pure functions over bytes.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html. Messages about transactions and tables
are read one by one, those about rows all at once, column by column. Whatever the bytes are, errors are `MessageError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from arroyo_core.errors import DataError

BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE = b"BCRIUDT"
#: Say nothing about rows: where a transaction comes from, types, messages of programs.
IGNORED = frozenset(b"OYM")
#: After the kind and the number of the table.
_TUPLE_AT = 6
_HEAD = struct.Struct("!BI")
_BEGIN = struct.Struct("!BQQI")
_COMMIT = struct.Struct("!BBQQQ")
_COLUMN = struct.Struct("!Ii")

NULL, UNCHANGED, TEXT, BINARY = b"nutb"
_OLD, _KEY, _NEW = b"OKN"

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


class MessageError(DataError):
    """Bytes that are no message of `pgoutput`, or one that this version does not know."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; `commit_lsn` is where its commit is."""

    commit_lsn: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """It is complete; what follows was committed at or after `end_lsn`."""

    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a table as rows have it from now on."""

    name: str
    type_oid: int
    type_modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as its rows are written from now on."""

    oid: int
    schema: str
    name: str
    #: d: the primary key, n: nothing, f: all columns, i: an index.
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables are empty."""

    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Where the values of one column are in the bytes of all messages."""

    kinds: Bytes
    starts: Places
    lengths: Places

    def take(self, rows: Places) -> Values:
        return Values(kinds=self.kinds[rows], starts=self.starts[rows], lengths=self.lengths[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Rows that were taken back and added, in the order of the messages; of one message first what it takes back."""

    data: Bytes
    columns: tuple[Values, ...]
    #: The number of the message of each row.
    messages: Places
    is_retract: npt.NDArray[np.bool_]

    def take(self, rows: Places) -> RowChanges:
        columns = tuple(column.take(rows) for column in self.columns)
        return RowChanges(
            data=self.data, columns=columns, messages=self.messages[rows], is_retract=self.is_retract[rows]
        )


def read_table(message: bytes) -> int:
    """The number of the table that a message about a row is about."""
    if len(message) < _TUPLE_AT:
        raise _cut_off(message)
    oid: int = _HEAD.unpack_from(message)[1]
    return oid


def read_begin(message: bytes) -> Begin:
    if len(message) != _BEGIN.size:
        raise _cut_off(message)
    _, lsn, _, xid = _BEGIN.unpack(message)
    return Begin(lsn, xid)


def read_commit(message: bytes) -> Commit:
    if len(message) != _COMMIT.size:
        raise _cut_off(message)
    _, _, _, end_lsn, _ = _COMMIT.unpack(message)
    return Commit(end_lsn)


def read_relation(message: bytes) -> Relation:
    try:
        oid = _HEAD.unpack_from(message)[1]
        schema, at = _text(message, _HEAD.size)
        name, at = _text(message, at)
        identity, count = struct.unpack_from("!BH", message, at)
        at += 3
        columns = []
        for _ in range(count):
            column, at = _text(message, at + 1)  # before the name: whether it is part of the key
            type_oid, modifier = _COLUMN.unpack_from(message, at)
            at += _COLUMN.size
            columns.append(RelationColumn(column, type_oid, modifier))
    except (struct.error, UnicodeDecodeError) as error:
        raise _cut_off(message) from error
    if at != len(message):
        raise _cut_off(message)
    # An empty name means pg_catalog.
    return Relation(oid, schema or "pg_catalog", name, chr(identity), tuple(columns))


def read_truncate(message: bytes) -> Truncate:
    try:
        _, count = _HEAD.unpack_from(message)
        if len(message) != _HEAD.size + 1 + 4 * count:
            raise _cut_off(message)
        return Truncate(struct.unpack_from(f"!{count}I", message, _HEAD.size + 1))
    except struct.error as error:
        raise _cut_off(message) from error


def read_rows(messages: Sequence[bytes], column_count: int, *, has_changes: bool = True) -> RowChanges:
    """The rows of messages of the kinds insert, update and delete, all about one table with so many columns.

    Without `has_changes` only rows of inserts count. With it every update and delete has to have the row before it, all
    of it, as with `REPLICA IDENTITY FULL`; what an update has left out, because it is large and has not changed, is
    taken from there.
    """
    data = np.frombuffer(b"".join(messages), dtype=np.uint8)
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    if len(messages) and lengths.min() < _TUPLE_AT:
        raise _cut_off(messages[int(np.argmin(lengths))])
    ends = np.cumsum(lengths)
    begins = ends - lengths
    kinds, marks = data[begins], data[begins + _TUPLE_AT - 1]
    if not np.isin(kinds, np.frombuffer(bytes([INSERT, UPDATE, DELETE]), np.uint8)).all():
        raise MessageError("a message about a row is of none of the kinds insert, update and delete")
    reader = _TupleReader(data, column_count)
    # What was there before: deletes and updates, of which some may come without.
    has_old = (kinds == DELETE) | ((kinds == UPDATE) & (marks != _NEW))
    has_new = kinds != DELETE
    if not has_changes:
        has_old[:] = False
        has_new = kinds == INSERT
    else:
        _check_old(kinds, marks)
    old_rows, new_rows = np.flatnonzero(has_old), np.flatnonzero(has_new)
    old, after = reader.read(begins[old_rows] + _TUPLE_AT, ends[old_rows])
    at = begins + _TUPLE_AT - 1
    at[old_rows] = after
    _check_end(at[has_old & ~has_new], ends[has_old & ~has_new])
    at, new_ends = at[new_rows], ends[new_rows]
    if (at >= new_ends).any() or (data[at] != _NEW).any():
        raise MessageError("a message about a row has no new row where there must be one")
    new, after = reader.read(at + 1, new_ends)
    _check_end(after, new_ends)
    order = np.argsort(np.concatenate([old_rows * 2, new_rows * 2 + 1]), kind="stable")
    # For a row that is new the place of the one before it, for what it has left out; -1 where there is none.
    places = np.full(len(messages), -1, dtype=np.int64)
    places[old_rows] = np.arange(len(old_rows))
    columns = tuple(
        _join(before, _fill(now, before, places[new_rows])).take(order) for before, now in zip(old, new, strict=True)
    )
    messages_of = np.concatenate([old_rows, new_rows])[order]
    return RowChanges(data=data, columns=columns, messages=messages_of, is_retract=order < len(old_rows))


class _TupleReader:
    """Reads tuples at many places at once."""

    def __init__(self, data: Bytes, column_count: int) -> None:
        # Some bytes more, so that what is cut off can be read before that is noticed.
        self._padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
        self._column_count = column_count

    def read(self, at: Places, ends: Places) -> tuple[list[Values], Places]:
        """The values of each column, and where the tuples end."""
        at = at.copy()
        self._check(at + 2, ends)
        counts = self._padded[at].astype(np.int64) << 8 | self._padded[at + 1]
        if (counts != self._column_count).any():
            found = int(counts[counts != self._column_count][0])
            raise MessageError(f"a row has {found} columns, and its table {self._column_count}")
        at += 2
        columns = []
        for _ in range(self._column_count):
            self._check(at + 1, ends)
            kinds = self._padded[at]
            has_value = kinds == TEXT
            if not (has_value | (kinds == NULL) | (kinds == UNCHANGED)).all():
                raise MessageError("a value is neither a text, nor null, nor unchanged")
            self._check(at + 1 + 4 * has_value, ends)
            lengths = np.where(has_value, self._length(at + 1), 0)
            starts = at + 1 + 4 * has_value
            at = starts + lengths
            self._check(at, ends)
            columns.append(Values(kinds=kinds, starts=starts, lengths=lengths))
        return columns, at

    def _length(self, at: Places) -> Places:
        length = np.zeros(len(at), dtype=np.int64)
        for byte in range(4):
            length = length << 8 | self._padded[np.minimum(at + byte, len(self._padded) - 1)]
        return length

    def _check(self, needed: Places, ends: Places) -> None:
        if (needed > ends).any():
            raise MessageError("a message about a row is cut off")


def _check_old(kinds: Bytes, marks: Bytes) -> None:
    """Every update and delete has the whole row before it."""
    changed = (kinds == UPDATE) | (kinds == DELETE)
    if (changed & (marks != _OLD)).any():
        raise DataError(
            "a change has the key of the row before it, or nothing, and not the row: it was made before the table had "
            "REPLICA IDENTITY FULL"
        )


def _check_end(at: Places, ends: Places) -> None:
    if (at != ends).any():
        raise MessageError("a message about a row is longer than the row")


def _fill(now: Values, before: Values, places: Places) -> Values:
    """The values of rows with those that they have left out."""
    left_out = now.kinds == UNCHANGED
    if not left_out.any():
        return now
    rows = places[left_out]
    if (rows < 0).any():
        raise MessageError("a row has left out a value, and the row before it is not there")
    kinds, starts, lengths = now.kinds.copy(), now.starts.copy(), now.lengths.copy()
    kinds[left_out], starts[left_out], lengths[left_out] = before.kinds[rows], before.starts[rows], before.lengths[rows]
    if (kinds == UNCHANGED).any():
        raise MessageError("a value is left out, and left out of the row before it, too")
    return Values(kinds=kinds, starts=starts, lengths=lengths)


def _join(first: Values, second: Values) -> Values:
    return Values(
        kinds=np.concatenate([first.kinds, second.kinds]),
        starts=np.concatenate([first.starts, second.starts]),
        lengths=np.concatenate([first.lengths, second.lengths]),
    )


def _text(message: bytes, at: int) -> tuple[str, int]:
    """The text that ends with a zero, and what is behind it."""
    end = message.find(b"\0", at)
    if end < 0:
        raise _cut_off(message)
    return message[at:end].decode(), end + 1


def _cut_off(message: bytes) -> MessageError:
    kind = chr(message[0]) if message and 32 < message[0] < 127 else "?"
    return MessageError(f"a message of kind {kind!r} has not the form that it should have ({len(message)} bytes)")
