"""Messages of `pgoutput`, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

OID = 7
#: A value that an update leaves out.
UNCHANGED = object()


def begin(commit_lsn: int = 100, xid: int = 1) -> bytes:
    return b"B" + struct.pack("!QQI", commit_lsn, 0, xid)


def commit(end_lsn: int = 110) -> bytes:
    return b"C" + struct.pack("!BQQQ", 0, end_lsn - 10, end_lsn, 0)


def relation(*columns: tuple[str, int], oid: int = OID, name: str = "t", identity: bytes = b"f") -> bytes:
    head = b"R" + struct.pack("!I", oid) + b"public\0" + name.encode() + b"\0" + identity
    parts = [b"\1" + column.encode() + b"\0" + struct.pack("!Ii", kind, -1) for column, kind in columns]
    return head + struct.pack("!H", len(columns)) + b"".join(parts)


def row(values: Sequence[object]) -> bytes:
    parts = [struct.pack("!H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            text = str(value).encode()
            parts.append(b"t" + struct.pack("!I", len(text)) + text)
    return b"".join(parts)


def insert(*values: object, oid: int = OID) -> bytes:
    return b"I" + struct.pack("!I", oid) + b"N" + row(values)


def update(old: Sequence[object] | None, new: Sequence[object], *, mark: bytes = b"O", oid: int = OID) -> bytes:
    before = b"" if old is None else mark + row(old)
    return b"U" + struct.pack("!I", oid) + before + b"N" + row(new)


def delete(*values: object, mark: bytes = b"O", oid: int = OID) -> bytes:
    return b"D" + struct.pack("!I", oid) + mark + row(values)


def truncate(*oids: int) -> bytes:
    return b"T" + struct.pack(f"!IB{len(oids)}I", len(oids), 0, *oids)
